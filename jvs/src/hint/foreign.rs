//! What people type who know other tools, and what it is called here. Where the meaning is
//! the same, the word is an alias instead and not in this table.

/// Words after a command (`jvs` for those at the beginning), and the answer to them.
pub(crate) const FOREIGN: &[(&str, &[&str], &str)] = &[
    // git, jj, hg, svn
    ("jvs", &["commit", "ci", "save", "checkpoint", "backup", "record"], "to take a snapshot: jvs snapshot NOTE"),
    ("jvs", &["add", "stage", "track"], "nothing has to be added: a snapshot has all files of the worktree: jvs snapshot NOTE"),
    ("jvs", &["stash"], "to keep the files as they are: jvs snapshot NOTE; to go back to the head: jvs restore @ --in-place --reason TEXT"),
    ("jvs", &["checkout", "co", "switch", "goto"], "for single files: jvs restore PATH, or of a snapshot: jvs restore SNAPSHOT PATH; for all files beside the others: jvs restore SNAPSHOT --into NAME; in place: jvs restore SNAPSHOT --in-place --reason TEXT; to go to another worktree: cd \"$(jvs worktree path NAME)\""),
    ("jvs", &["revert", "reset", "rollback", "discard"], "to put files back as the head has them: jvs restore PATH; all of them: jvs restore @ --in-place --reason TEXT; to take the last operation back: jvs undo"),
    ("jvs", &["branch", "fork", "clone"], "to work beside the others, from the head: jvs worktree create NAME --from @; see which worktrees there are: jvs worktree list"),
    ("jvs", &["st", "stat"], "to see what changed: jvs status"),
    ("jvs", &["blame", "annotate"], "to see in which snapshots a file changed: jvs history PATH; who did what: jvs audit"),
    ("jvs", &["reflog", "op"], "to see what was done: jvs undo --list; everything: jvs audit"),
    ("jvs", &["push", "pull", "fetch", "sync", "update", "remote"], "there is nothing to send: all who mount the volume see the same repository; see how it is: jvs status"),
    ("jvs", &["merge", "rebase", "cherry-pick"], "nothing is merged: one session writes at a time; to take single files from a snapshot: jvs restore SNAPSHOT PATH"),
    // restic, borg, lakeFS
    ("jvs", &["prune", "cleanup", "clean", "purge", "expire"], "to remove old snapshots: jvs gc --dry-run, then jvs gc; a single one: jvs forget SNAPSHOT"),
    ("jvs", &["check", "fsck", "scrub", "repair", "fix"], "to check the repository: jvs doctor --strict; the bytes of snapshots: jvs verify --all"),
    ("jvs", &["snapshots", "list", "backups"], "to list snapshots: jvs history; worktrees: jvs worktree list; locks: jvs lock list"),
    ("jvs", &["mount", "dump", "extract"], "to read a snapshot's files where they are: cd \"$(jvs path SNAPSHOT)\"; to have them as a worktree: jvs restore SNAPSHOT --into NAME"),
    ("jvs", &["drop", "abandon", "expunge"], "to remove one snapshot: jvs forget SNAPSHOT"),
    ("jvs", &["describe", "details"], "to see all about a snapshot, and what changed in it: jvs show SNAPSHOT"),
    ("jvs", &["find", "search", "grep"], "to search the notes of snapshots: jvs history --grep TEXT; to list files: jvs ls SNAPSHOT --recursive"),
    ("jvs", &["tags"], "to list tags: jvs tag --list"),
    ("jvs", &["worktrees", "wt", "workspace"], "to list worktrees: jvs worktree list"),
    // flock, etcdctl, consul, terraform
    ("jvs", &["unlock", "free", "force-unlock"], "to release this session's lock: jvs lock release; to see who has it and what can be done: jvs lock why"),
    ("jvs", &["locks"], "to list locks: jvs lock list"),
    ("jvs", &["renew", "refresh", "heartbeat", "extend"], "to renew this session's lease: jvs lock renew"),
    ("jvs", &["steal", "break", "takeover", "force"], "to see whether it can be taken, and how: jvs lock why; to take a lock that was left behind: jvs lock steal --reason TEXT"),
    ("jvs", &["reclaim"], "to take a lock from a live holder, where the policy allows it: jvs lock reclaim --reason TEXT"),
    ("jvs", &["transfer", "handover"], "to hand the lock to the next in line: jvs lock transfer; to a certain session: jvs lock transfer --to SESSION"),
    ("jvs", &["freeze"], "to keep everybody out for a while: jvs lock freeze --for 1h --reason TEXT"),
    ("jvs", &["unfreeze", "thaw"], "to lift a freeze: jvs lock unfreeze"),
    ("jvs", &["wait"], "to wait in line for the lock: jvs lock acquire --wait"),
    ("jvs", &["watch", "monitor", "top"], "to watch a lock: jvs lock watch; all of them, for programs: jvs events --follow"),
    ("jvs", &["why", "who", "explain"], "to see who holds the lock and why: jvs lock why"),
    ("jvs", &["whoami", "sessions", "login"], "to see which session this is: jvs session show; all of yours: jvs session list"),
    ("jvs", &["exec", "with", "do"], "to run a command under the lock: jvs run COMMAND"),
    // of any tool
    ("jvs", &["rm", "remove", "delete", "del"], "to remove a worktree: jvs worktree remove NAME; a tag: jvs tag --delete NAME; a snapshot: jvs forget SNAPSHOT; old ones: jvs gc"),
    ("jvs", &["create", "new", "mk"], "to create a repository: jvs init PATH; a worktree: jvs worktree create NAME"),
    ("jvs", &["mv", "move", "rename"], "to rename a worktree: jvs worktree rename OLD NEW"),
    ("jvs", &["cd", "pwd", "where"], "to go to a worktree: cd \"$(jvs worktree path NAME)\""),
    ("jvs", &["version", "ver"], "to see the version: jvs --version"),
    ("jvs", &["set", "get", "settings", "policy"], "to see the settings: jvs config list; to change one: jvs config set KEY VALUE"),
    ("jvs", &["health", "metrics"], "to see what is wrong: jvs doctor; for Prometheus: jvs doctor --format prometheus"),
    ("worktree", &["add", "new", "make"], "to create one: jvs worktree create NAME"),
    ("worktree", &["delete", "del", "prune"], "to remove one: jvs worktree remove NAME"),
    ("worktree", &["mv", "move"], "to rename one: jvs worktree rename OLD NEW"),
    ("worktree", &["show", "status", "info"], "to see all of them with their locks: jvs worktree list; one with its changes: jvs status -w NAME"),
    ("worktree", &["lock"], "to take its lock: jvs lock acquire -w NAME"),
    ("worktree", &["unlock"], "to release its lock: jvs lock release -w NAME"),
    ("lock", &["take", "get", "hold", "lock", "on"], "to take it: jvs lock acquire"),
    ("lock", &["unlock", "free", "drop", "off", "rm", "delete"], "to release it: jvs lock release"),
    ("lock", &["break", "force", "takeover", "kill"], "to see whether it can be taken, and how: jvs lock why"),
    ("lock", &["show", "info", "who", "holder"], "to see who has it: jvs lock status; why, and what can be done: jvs lock why"),
    ("lock", &["wait"], "to wait in line for it: jvs lock acquire --wait"),
    ("lock", &["refresh", "extend", "heartbeat"], "to renew the lease: jvs lock renew"),
    ("lock", &["thaw"], "to lift a freeze: jvs lock unfreeze"),
    ("config", &["show", "view", "dump"], "to see all settings: jvs config list; one: jvs config get KEY"),
    ("config", &["unset", "reset", "delete", "rm"], "to see the defaults: jvs config list; to restore one: jvs config set KEY VALUE"),
    ("session", &["rm", "delete", "remove", "end", "kill"], "to forget a session: jvs session forget ID"),
    ("session", &["info", "status", "whoami"], "to see which session this is: jvs session show"),
    // Options.
    ("lock acquire", &["--timeout", "--block", "-t"], "to wait in line for at most this long: jvs lock acquire --wait=10m"),
    ("lock acquire", &["--ttl"], "to say how long the lease lasts without renewal: jvs lock acquire --lease 1m; for how long it is renewed: jvs lock acquire --for 1h"),
    ("lock acquire", &["--message", "-m", "--reason", "--comment"], "to leave a note for others: jvs lock acquire --note TEXT"),
    ("lock acquire", &["--force", "-f"], "a live lock is not taken by force: see who has it and what can be done: jvs lock why"),
    ("lock steal", &["--force", "-f"], "a live lock is not taken by force: see who has it and what can be done: jvs lock why"),
    ("lock reclaim", &["--force", "-f"], "to declare an emergency, where the policy allows it: jvs lock reclaim --emergency --reason TEXT"),
    ("run", &["--timeout", "--block", "-t"], "to wait in line for at most this long: jvs run --wait=10m -- COMMAND"),
    ("history", &["-p", "--patch", "--stat"], "to see what changed in a snapshot: jvs show SNAPSHOT -p; between two: jvs diff A B -p"),
    ("history", &["--follow"], "to see in which snapshots a file changed: jvs history PATH"),
    ("show", &["--stat"], "it has the sizes anyway: jvs show SNAPSHOT; the lines: jvs show SNAPSHOT -p"),
    ("diff", &["--cached", "--staged"], "nothing is staged: the files are compared with the head: jvs diff"),
    ("diff", &["--color-words", "--words"], "to see which words differ: jvs diff --word-diff"),
    ("gc", &["--prune"], "it removes at once: jvs gc; to see only what would be removed: jvs gc --dry-run"),
    ("history", &["--oneline"], "it has one line per snapshot anyway: jvs history"),
    ("history", &["--limit", "--max-count"], "to see only the newest: jvs history -n 10"),
    ("restore", &["--target", "--to", "-t", "--output", "--as", "--name"], "to restore to a new worktree: jvs restore SNAPSHOT --into NAME"),
    ("restore", &["--source", "-s"], "the snapshot comes first: jvs restore SNAPSHOT PATH"),
    ("restore", &["--staged", "--worktree-only"], "nothing is staged: jvs restore PATH"),
    ("restore", &["--force", "-f"], "to replace the worktree's files: jvs restore SNAPSHOT --in-place --reason TEXT"),
    ("gc", &["-n"], "to see only what would be removed: jvs gc --dry-run"),
    ("worktree remove", &["-f"], "to remove it with its files: jvs worktree remove NAME --force"),
];

/// The answer to `word` after `command`, if it is one of another tool.
pub(crate) fn answer(command: &str, word: &str) -> Option<&'static str> {
    let known = FOREIGN.iter().find(|(after, words, _)| *after == command && words.contains(&word));
    known.map(|(_, _, answer)| *answer)
}

/// How many generations before the head a snapshot is that git would call `name`.
pub(crate) fn generations(name: &str) -> Option<usize> {
    let rest = ["HEAD", "head", "@"].iter().find_map(|head| name.strip_prefix(head))?;
    let mut back: usize = 0;
    let mut rest = rest.chars().peekable();
    while let Some(step) = rest.next() {
        let digits: String = std::iter::from_fn(|| rest.next_if(char::is_ascii_digit)).collect();
        back = back.checked_add(match (step, digits.as_str()) {
            ('~' | '^', "") | ('^', "1") => 1,
            ('~', number) => number.parse().ok()?,
            _ => return None,
        })?;
    }
    // Nobody counts that far in minus signs.
    (back <= 9).then_some(back)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_calls_an_ancestor_is_understood() {
        for (name, back) in [
            ("HEAD", Some(0)),
            ("HEAD~2", Some(2)),
            ("HEAD^", Some(1)),
            ("@^^", Some(2)),
            ("@~1^", Some(2)),
            ("HEAD~", Some(1)),
            ("HEAD^2", None),
            ("HEAD~99999999999999999999", None),
            ("HEADS", None),
            ("v1", None),
        ] {
            assert_eq!(generations(name), back, "{name}");
        }
    }

    #[test]
    fn no_word_is_listed_twice_for_one_command() {
        let all = FOREIGN.iter().flat_map(|(after, words, _)| words.iter().map(move |w| (after, w)));
        let mut all: Vec<_> = all.collect();
        all.sort();
        let listed = all.len();
        all.dedup();
        assert_eq!(all.len(), listed);
    }

    #[test]
    fn no_word_that_means_something_here_is_called_foreign() {
        for (after, words, _) in FOREIGN {
            let mut command = crate::args::tree();
            for verb in after.split(' ').filter(|verb| *verb != "jvs") {
                command = command.find_subcommand(verb).expect("a command").clone();
            }
            for word in *words {
                let option = |arg: &clap::Arg| {
                    let long = arg.get_long().is_some_and(|long| *word == format!("--{long}"));
                    long || arg.get_short().is_some_and(|short| *word == format!("-{short}"))
                };
                assert!(command.find_subcommand(word).is_none(), "{after} {word}");
                assert!(!command.get_arguments().any(option), "{after} {word}");
            }
        }
    }
}
