//! What is shown at the end of each page of help: commands to begin with. A test types
//! every one of them in a repository.

/// A command, and what it is good for.
pub(crate) struct Example {
    pub(crate) why: &'static str,
    pub(crate) line: &'static str,
}

macro_rules! examples {
    ($($page:literal: $($why:literal => $line:literal),+;)*) => {
        /// Those of a command, by its name without `jvs`.
        pub(crate) fn of(page: &str) -> &'static [Example] {
            match page {
                $($page => &[$(Example { why: $why, line: $line }),+],)*
                _ => &[],
            }
        }
    };
}

examples! {
    "":
        "Make a repository, and go to its first worktree" => "jvs init project && cd project/main",
        "Wait for the lock, build under it, release it" => "jvs run --wait make",
        "Keep what is there now" => "jvs snapshot \"it builds\"";
    "init":
        "A new repository with the empty worktree main" => "jvs init project",
        "Take over a directory as it is: its files move to src/main" => "jvs init src --adopt",
        "For all users of the directory's group" => "jvs init team --shared";
    "worktree":
        "A second worktree, with the files of the last snapshot" =>
            "jvs worktree create fix --from @",
        "Go there" => "cd \"$(jvs worktree path fix)\"";
    "worktree create":
        "An empty worktree" => "jvs worktree create fix",
        "One that begins with the files of a snapshot" => "jvs worktree create hotfix --from v1";
    "worktree list":
        "All worktrees, and which of them has something new" => "jvs worktree list";
    "worktree path":
        "Go to a worktree" => "cd \"$(jvs worktree path next)\"";
    "worktree rename":
        "Give it a better name" => "jvs worktree rename next release";
    "worktree remove":
        "Remove it with its files" => "jvs worktree remove next --force";
    "lock":
        "Take the lock, and say what for" => "jvs lock acquire --note \"release 1.4\"",
        "Who has it, and how to get it" => "jvs lock why",
        "Release it" => "jvs lock release";
    "lock acquire":
        "Take it, and tell others what for" => "jvs lock acquire --note \"release 1.4\"",
        "Wait in line for at most an hour" => "jvs lock acquire --wait=1h",
        "Keep it until a process ends" => "jvs lock acquire --while $$";
    "lock renew":
        "Extend the lease now" => "jvs lock renew";
    "lock release":
        "Let others have it" => "jvs lock release";
    "lock status":
        "For people" => "jvs lock status",
        "For scripts" => "jvs lock status --json";
    "lock list":
        "All locks of the repository" => "jvs lock list";
    "lock why":
        "Who has it, and every way to get it" => "jvs lock why";
    "lock watch":
        "On a terminal a table of all locks, elsewhere a line per change" => "jvs lock watch";
    "lock steal":
        "Take the lock of a holder that is gone" => "jvs lock steal --reason \"its host is down\"",
        "The same where clocks cannot be trusted" =>
            "jvs lock steal --observe --reason \"its host is down\"";
    "lock reclaim":
        "Take your own lock from your other session" =>
            "jvs lock reclaim --reason \"I went home\"";
    "lock transfer":
        "Hand it to a session that waits in line" => "jvs lock transfer --to bob";
    "lock freeze":
        "Nobody writes while a backup runs" => "jvs lock freeze --for 30m --reason \"nightly backup\"";
    "lock unfreeze":
        "The backup is done" => "jvs lock unfreeze --reason \"backup done\"";
    "run":
        "Wait for the lock, build under it, release it" => "jvs run --wait make",
        "The same, and keep what was built" => "jvs run --wait --snapshot \"it builds\" make";
    "shell":
        "A shell that holds the lock until it ends" => "jvs shell --wait --note \"by hand\"";
    "session":
        "Who am I, and what do I hold?" => "jvs session";
    "session show":
        "Who am I, and what do I hold?" => "jvs session show";
    "session list":
        "My sessions on this machine" => "jvs session list";
    "session forget":
        "Forget one that has ended" => "jvs session forget old";
    "snapshot":
        "Keep what is there now" => "jvs snapshot \"it builds\"",
        "And give it a name" => "jvs snapshot \"release\" --tag v2";
    "status":
        "What changed since the last snapshot, and who has the lock" => "jvs status",
        "And what is ignored, and why" => "jvs status --ignored";
    "history":
        "The ten newest" => "jvs history -n 10",
        "Those in which one file changed" => "jvs history src/main.c",
        "How all worktrees descend from each other" => "jvs history --graph";
    "info":
        "All that is known of a tagged snapshot" => "jvs info v1";
    "show":
        "What changed in the last snapshot" => "jvs show",
        "The same, line by line" => "jvs show v1 -p";
    "ls":
        "What the last snapshot has" => "jvs ls",
        "Sizes of what is below src" => "jvs ls v1 src --long --recursive";
    "cat":
        "A file as it was" => "jvs cat v1 src/main.c";
    "path":
        "Read a file where it is" => "wc -l \"$(jvs path v1 src/main.c)\"",
        "Search all files of the last snapshot" => "grep -rn main \"$(jvs path)\"";
    "tag":
        "Name the last snapshot" => "jvs tag v2",
        "Name the one before it" => "jvs tag @- before",
        "All tags" => "jvs tag --list";
    "diff":
        "What changed since the last snapshot, line by line" => "jvs diff -p",
        "Which words of a text" => "jvs diff --word-diff -- notes.txt",
        "What changed between two, in one directory" => "jvs diff v1 @ -- src";
    "restore":
        "One file, as it is in the head" => "jvs restore src/main.c",
        "As it was in an older snapshot" => "jvs restore v1 src/main.c",
        "All files as a new worktree, beside this one" => "jvs restore v1 --into old";
    "undo":
        "What was done, and what would be done about it" => "jvs undo --dry-run",
        "Take it back" => "jvs undo",
        "All operations, newest first" => "jvs undo --list";
    "redo":
        "What would be done again" => "jvs redo --dry-run";
    "verify":
        "Every byte of all snapshots" => "jvs verify --all";
    "gc":
        "What would be removed" => "jvs gc --dry-run",
        "Keep the newest ten of each worktree, and what is younger than a week" =>
            "jvs gc --keep-last 10 --keep-within 7d",
        "One a day for a week, one a month for a year" =>
            "jvs gc --keep-daily 7 --keep-monthly 12";
    "forget":
        "What would be removed" => "jvs forget v1 --force --dry-run",
        "A snapshot that should not have been taken" =>
            "jvs forget @- --force --reason \"a password in it\"";
    "doctor":
        "A quick look" => "jvs doctor",
        "Everything, and what would be done about it" => "jvs doctor --repair --dry-run";
    "audit":
        "What was done today" => "jvs audit --since 1d",
        "Who held what, as a page for a browser" => "jvs audit --html locks.html",
        "Prove that nothing is missing" => "jvs audit --verify";
    "events":
        "What became of all locks today" => "jvs events --since 1d",
        "Of one worktree, with renewals" => "jvs events -w main --renewals";
    "agent":
        "Claude Code cannot write without the lock any more" => "jvs agent install claude",
        "Which agents is something installed for?" => "jvs agent status";
    "agent install":
        "Deny writes without the lock" => "jvs agent install claude",
        "Take it with the first write, and keep what each turn did" =>
            "jvs agent install codex --auto --checkpoint",
        "What would change?" => "jvs agent install gemini --dry-run";
    "agent status":
        "All agents, in this worktree" => "jvs agent status",
        "What is installed for all of my repositories" => "jvs agent status --user";
    "agent uninstall":
        "Put the files back as they were" => "jvs agent uninstall claude";
    "hook":
        "As an agent asks, by hand" => "echo '{}' | jvs hook claude PreToolUse";
    "config":
        "What may be set" => "jvs config list";
    "config list":
        "Every key, its value and its meaning" => "jvs config list";
    "config get":
        "One value" => "jvs config get lock.lease_duration_ms";
    "config set":
        "Keep the newest hundred snapshots" => "jvs config set retention.keep_last 100";
    "completions":
        "For bash, now" => "source <(jvs completions bash)",
        "For zsh, in a directory of $fpath" => "jvs completions zsh > _jvs",
        "For fish, in ~/.config/fish/completions" => "jvs completions fish > jvs.fish";
    "man":
        "Install the manual" => "jvs man man1",
        "Read a page without installing it" => "jvs man | man -l -";
    "schema":
        "What a program may rely on" => "jvs schema lock acquire",
        "The commands that have one" => "jvs schema --list";
    "demo":
        "See what the lock does" => "jvs demo";
}
