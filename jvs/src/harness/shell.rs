//! Which commands of a shell are known to read only.
//!
//! A shell can write in more ways than anybody lists. So a command counts as writing
//! unless every part of it is a plain call of a program that is listed here, with no
//! option that is known to write. `jvs` is listed: it looks after the lock itself.

use std::iter::Peekable;
use std::str::Chars;

/// What a command does, as far as its words tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShellUse {
    /// It writes nothing.
    Reads,
    /// It takes the lock of where it runs, and what follows is only run if it got it.
    Acquires,
    /// Nobody can tell that it does not write.
    Writes,
    /// It gives a lock back, and may write after that.
    WritesUnlocked,
}

impl ShellUse {
    /// Of `command`, given by a session that is called `session`.
    pub(crate) fn of(command: &str, session: &str) -> Self {
        let Some(parts) = parts(command) else { return of_more_than_calls(command) };
        let mut line = Line::default();
        for (n, part) in parts.iter().enumerate() {
            let next = parts.get(n + 1).map(|next| next.after);
            line.runs(part, next, session);
        }
        match line {
            Line { writes_unlocked: true, .. } => ShellUse::WritesUnlocked,
            Line { writes: true, .. } => ShellUse::Writes,
            Line { writes_locked: true, .. } => ShellUse::Acquires,
            _ => ShellUse::Reads,
        }
    }
}

/// What is known of a line of calls, from its beginning to one of them.
#[derive(Default)]
struct Line {
    /// The lock was taken, and whatever comes next is only run if it was.
    locked: bool,
    /// A lock was given back that the session may have had before.
    released: bool,
    /// The directory may be another than at the beginning.
    moved: bool,
    writes: bool,
    writes_locked: bool,
    writes_unlocked: bool,
}

impl Line {
    fn runs(&mut self, part: &Part, next: Option<Joint>, session: &str) {
        // After `;` and the like it does not matter how that ended.
        self.locked &= matches!(part.after, Joint::And | Joint::Pipe);
        // A pipeline ends as the last of its calls does, and runs all of them at once.
        let alone = part.after != Joint::Pipe && next != Some(Joint::Pipe);
        match verb(&part.words) {
            _ if part.redirected => self.write(),
            Verb::Acquires(by) if alone && !self.moved && by.is_none_or(|by| by == session) => {
                self.locked = true;
            }
            Verb::Acquires(_) => {}
            Verb::Releases => (self.locked, self.released) = (false, true),
            Verb::RunsLocked => self.writes_locked = true,
            Verb::Moves => self.moved = true,
            Verb::Reads => {}
            Verb::Writes => {
                self.write();
                // Within a loop, or by another shell.
                let all = part.words.join(" ");
                if all.contains("jvs") && all.contains("lock release") {
                    (self.locked, self.released) = (false, true);
                }
            }
        }
    }

    fn write(&mut self) {
        match (self.locked, self.released) {
            (true, _) => self.writes_locked = true,
            (false, true) => self.writes_unlocked = true,
            (false, false) => self.writes = true,
        }
    }
}

/// Of what is no line of plain calls: it writes, and perhaps after a release.
fn of_more_than_calls(command: &str) -> ShellUse {
    let releases = |(before, _): &(&str, &str)| {
        before.rsplit([';', '&', '|', '\n']).next().is_some_and(|call| call.contains("jvs"))
    };
    let Some((_, after)) = command.split_once("lock release").filter(releases) else {
        return ShellUse::Writes;
    };
    match ShellUse::of(&format!(": {after}"), "") {
        ShellUse::Reads => ShellUse::Writes,
        _ => ShellUse::WritesUnlocked,
    }
}

/// What stands between two commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Joint {
    /// Nothing: it is the first.
    Start,
    And,
    Pipe,
    /// Whatever runs the next one, no matter how this one ends.
    Other,
}

/// A plain call of a program.
#[derive(Debug)]
struct Part {
    after: Joint,
    words: Vec<String>,
    /// Into a file, or from what is written in the command itself.
    redirected: bool,
}

impl Part {
    fn new(after: Joint) -> Self {
        Part { after, words: Vec::new(), redirected: false }
    }
}

/// A command line, cut into calls.
struct Cutter<'c> {
    chars: Peekable<Chars<'c>>,
    parts: Vec<Part>,
    word: Option<String>,
    /// Lines that end the texts which begin with the next line.
    texts: Vec<String>,
}

/// The calls that a command line consists of; `None` if it is more than plain calls.
fn parts(command: &str) -> Option<Vec<Part>> {
    let chars = command.chars().peekable();
    let parts = vec![Part::new(Joint::Start)];
    let mut cutter = Cutter { chars, parts, word: None, texts: Vec::new() };
    while let Some(c) = cutter.chars.next() {
        cutter.take(c)?;
    }
    cutter.finish();
    Some(cutter.parts)
}

impl Cutter<'_> {
    /// `None` for what is not plain.
    fn take(&mut self, c: char) -> Option<()> {
        match c {
            '\'' | '"' => self.quoted(c)?,
            '\\' => match self.chars.next()? {
                '\n' => {}
                c => self.push(c),
            },
            // What is run inside of a word, and groups.
            '`' | '(' | ')' | '{' | '}' => return None,
            '$' if matches!(self.chars.peek(), Some('(' | '{')) => return None,
            '>' => self.redirected()?,
            '<' if matches!(self.chars.peek(), Some('(' | '>' | '&')) => return None,
            '<' if self.chars.next_if_eq(&'<').is_some() => self.text_begins()?,
            '<' => self.finish(),
            '#' if self.word.is_none() => while self.chars.next_if(|c| *c != '\n').is_some() {},
            // What a shell that does not know `&>` makes of it is taken into account.
            '&' if self.parts.len() > 1 && self.chars.peek() == Some(&'>') => {
                self.finish();
                self.chars.next();
                self.redirected()?;
            }
            '\n' if !self.texts.is_empty() => {
                self.skip_texts()?;
                self.joined(c)?;
            }
            ';' | '\n' | '&' | '|' => self.joined(c)?,
            c if c.is_whitespace() => self.finish(),
            c => self.push(c),
        }
        Some(())
    }

    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn finish(&mut self) {
        if let (Some(part), Some(word)) = (self.parts.last_mut(), self.word.take()) {
            part.words.push(word);
        }
    }

    fn quoted(&mut self, quote: char) -> Option<()> {
        self.word.get_or_insert_default();
        loop {
            match self.chars.next()? {
                c if c == quote => return Some(()),
                c if quote == '\'' => self.push(c),
                '`' => return None,
                '$' if self.chars.peek() == Some(&'(') => return None,
                '\\' => {
                    let c = self.chars.next()?;
                    self.push(c);
                }
                c => self.push(c),
            }
        }
    }

    /// A number before it is a stream.
    fn redirected(&mut self) -> Option<()> {
        let numbered = self.word.as_ref().is_some_and(|w| w.bytes().all(|b| b.is_ascii_digit()));
        match numbered {
            true => self.word = None,
            false => self.finish(),
        }
        while self.chars.next_if(|c| matches!(c, '>' | '|')).is_some() {}
        let mut target = redirected_to(&mut self.chars);
        if target.is_empty() {
            while self.chars.next_if(|c| *c == ' ').is_some() {}
            target = redirected_to(&mut self.chars);
        }
        if !["&1", "&2", "/dev/null"].contains(&target.as_str()) {
            // What else belongs to the name of the file is as good as a word.
            self.parts.last_mut()?.redirected = true;
        }
        Some(())
    }

    /// After `<<`: up to a line that is named here, or after `<<<` a word.
    fn text_begins(&mut self) -> Option<()> {
        self.finish();
        self.parts.last_mut()?.redirected = true;
        if self.chars.next_if_eq(&'<').is_some() {
            return Some(());
        }
        let _ = self.chars.next_if_eq(&'-');
        while self.chars.next_if_eq(&' ').is_some() {}
        let quote = self.chars.next_if(|c| matches!(c, '\'' | '"'));
        let name = |c: &char| c.is_alphanumeric() || *c == '_';
        let end: String = std::iter::from_fn(|| self.chars.next_if(name)).collect();
        if let Some(quote) = quote {
            self.chars.next_if_eq(&quote)?;
        }
        (!end.is_empty()).then(|| self.texts.push(end))
    }

    fn skip_texts(&mut self) -> Option<()> {
        for end in std::mem::take(&mut self.texts) {
            loop {
                self.chars.peek()?;
                let line: String = self.chars.by_ref().take_while(|c| *c != '\n').collect();
                if line.trim_start_matches('\t') == end {
                    break;
                }
            }
        }
        Some(())
    }

    fn joined(&mut self, c: char) -> Option<()> {
        self.finish();
        let twice = self.chars.next_if_eq(&c).is_some();
        let after = match (c, twice) {
            ('&', true) => Joint::And,
            ('|', false) => Joint::Pipe,
            _ => Joint::Other,
        };
        // `|&` and `;&` are not plain.
        if matches!(self.chars.peek(), Some('&' | '|' | ';')) {
            return None;
        }
        self.parts.push(Part::new(after));
        Some(())
    }
}

/// The word that a redirection names, as far as it is plain.
fn redirected_to(chars: &mut Peekable<Chars<'_>>) -> String {
    let plain = |c: &char| !c.is_whitespace() && !";|<>()'\"$`\\".contains(*c);
    std::iter::from_fn(|| chars.next_if(plain)).collect()
}

/// Programs that write nothing, whatever they are told.
const READERS: &[&str] = &[
    ":",
    "[",
    "basename",
    "cat",
    "cd",
    "cksum",
    "cmp",
    "column",
    "comm",
    "cut",
    "df",
    "diff",
    "dirname",
    "du",
    "echo",
    "egrep",
    "expr",
    "false",
    "fgrep",
    "fold",
    "free",
    "getconf",
    "grep",
    "groups",
    "head",
    "id",
    "join",
    "jq",
    "ls",
    "lsof",
    "md5sum",
    "nl",
    "nproc",
    "od",
    "paste",
    "pgrep",
    "printenv",
    "ps",
    "pwd",
    "readlink",
    "realpath",
    "rev",
    "seq",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "sleep",
    "stat",
    "strings",
    "tac",
    "tail",
    "test",
    "tr",
    "true",
    "tty",
    "type",
    "uname",
    "uptime",
    "wc",
    "whereis",
    "which",
    "who",
    "whoami",
];

/// Verbs of git that write nothing to speak of.
const GIT: &[&str] = &[
    "blame",
    "cat-file",
    "describe",
    "diff",
    "grep",
    "log",
    "ls-files",
    "ls-tree",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "status",
];

/// What a call means for a line that it is part of.
enum Verb<'w> {
    /// It takes the lock of where it is, for good: for the session of this name, if it says one.
    Acquires(Option<&'w str>),
    /// It gives locks back.
    Releases,
    /// It runs something under the lock of where it is.
    RunsLocked,
    /// It goes to another directory, and reads.
    Moves,
    Reads,
    Writes,
}

fn verb(words: &[String]) -> Verb<'_> {
    let all: Vec<&str> = words.iter().map(String::as_str).collect();
    match &all[..] {
        ["jvs" | "/bin/jvs" | "/usr/bin/jvs", rest @ ..] => jvs_verb(rest),
        ["cd", ..] => Verb::Moves,
        _ if is_reading(words) => Verb::Reads,
        _ => Verb::Writes,
    }
}

/// Options of jvs that are followed by a value.
const VALUED: &[&str] = &[
    "-w",
    "--worktree",
    "--repo",
    "--session",
    "--note",
    "--lease",
    "--purpose",
    "--for",
    "--while",
];

/// What `jvs` does with the lock, and outside of what it looks after itself.
fn jvs_verb<'w>(words: &[&'w str]) -> Verb<'w> {
    let mut plain = Vec::new();
    let mut options = Vec::new();
    let mut session = None;
    let mut rest = words.iter().copied();
    while let Some(word) = rest.next() {
        match word {
            "--" => break,
            "--session" => session = rest.next(),
            word if word.starts_with("--session=") => session = word.strip_prefix("--session="),
            word if VALUED.contains(&word) => {
                options.push(word);
                rest.next();
            }
            word if word.starts_with('-') => options.push(word),
            word => plain.push(word),
        }
    }
    let has = |names: &[&str]| options.iter().any(|it| names.iter().any(|n| it.starts_with(n)));
    let elsewhere = has(&["-w", "--worktree", "--repo"]);
    match &plain[..] {
        // A lease that nobody keeps, or for a time, may be over before the next call.
        ["lock", "acquire"] => {
            let known = |it: &&str| {
                ["--json", "--wait", "--no-watch", "--note", "--lease", "--purpose"].contains(it)
                    || ["--wait=", "--note=", "--lease=", "--purpose="]
                        .iter()
                        .any(|known| it.starts_with(known))
            };
            match options.iter().all(known) {
                true => Verb::Acquires(session),
                false => Verb::Reads,
            }
        }
        ["lock", "release", ..] | ["session", "forget", ..] => Verb::Releases,
        ["run" | "shell", ..] if elsewhere => Verb::Writes,
        ["run" | "shell", ..] => {
            let leads = |it: &&str| it.contains(['/', '~', '$', '*']) || it.contains("..");
            match words.iter().any(leads) {
                true => Verb::RunsLocked,
                false => Verb::Reads,
            }
        }
        // These write files that no lock is asked for.
        ["man", _, ..] | ["init" | "demo", ..] => Verb::Writes,
        ["audit", ..] if has(&["--html", "--tla"]) => Verb::Writes,
        _ => Verb::Reads,
    }
}

/// Is it a call of a program that is known to write nothing?
fn is_reading(words: &[String]) -> bool {
    let Some((program, rest)) = words.split_first() else { return true };
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    let program = ["/bin/", "/usr/bin/"].iter().find_map(|dir| program.strip_prefix(dir));
    let program = program.unwrap_or(&words[0]);
    let none = |bad: &[&str]| !rest.iter().any(|it| bad.iter().any(|bad| it.starts_with(bad)));
    match program {
        program if READERS.contains(&program) => true,
        "find" => none(&["-delete", "-exec", "-ok", "-fprint", "-fls"]),
        "rg" => none(&["--pre", "--hostname-bin"]),
        "file" => none(&["-C", "--compile"]),
        "tree" => none(&["-o", "--output"]),
        "sort" => {
            let short =
                |it: &&str| !it.starts_with("--") && it.starts_with('-') && it.contains('o');
            none(&["--o", "--compress", "-T", "--temp"]) && !rest.iter().any(short)
        }
        "uniq" => rest.iter().filter(|it| !it.starts_with('-')).count() <= 1,
        "date" => rest.iter().all(|it| it.starts_with('+') || ["-u", "-R", "-Is"].contains(it)),
        "printf" => none(&["-v"]),
        "command" => rest.first().is_some_and(|it| ["-v", "-V"].contains(it)),
        "env" | "hostname" => rest.is_empty(),
        "sed" => matches!(&rest[..], ["-n", script, files @ ..]
            if prints_lines(script) && !files.iter().any(|it| it.starts_with('-'))),
        "git" => {
            let verb = match &rest[..] {
                ["--no-pager", rest @ ..] | ["-C", _, rest @ ..] => rest,
                rest => rest,
            };
            verb.first().is_some_and(|verb| GIT.contains(verb))
                && none(&[
                    "--output",
                    "--ext-diff",
                    "--textconv",
                    "--open-files",
                    "-O",
                    "--filters",
                ])
        }
        _ => false,
    }
}

/// A script for sed that prints lines by their numbers, and nothing else.
fn prints_lines(script: &str) -> bool {
    let range = script.strip_suffix('p');
    range.is_some_and(|range| range.bytes().all(|b| b.is_ascii_digit() || b == b',' || b == b'$'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(command: &str) -> ShellUse {
        ShellUse::of(command, "s")
    }

    #[test]
    fn plain_calls_of_readers_only_read() {
        for command in [
            "",
            "ls -la",
            "cat a b | grep -n 'x > y' | head -5",
            "cd sub && git status --short; git log -3",
            "git --no-pager diff HEAD~1 -- src",
            "grep -rn \"two words\" . 2>/dev/null",
            "ls nowhere 2>&1 | wc -l",
            "ls nowhere 2>/dev/null; ls >/dev/null 2>&1",
            "cat a > /dev/null",
            "cat < a",
            "find . -name '*.rs' -type f",
            "sed -n 1,20p a",
            "echo \"$HOME\" $USER",
            "sort -u a | uniq -c",
            "/usr/bin/env",
            "jvs lock acquire --wait=90s",
            "jvs run -- make",
            "ls # a comment > x",
            "test -f a || echo no",
            "ls \\\n  -l",
        ] {
            assert_eq!(uses(command), ShellUse::Reads, "{command}");
        }
    }

    #[test]
    fn whatever_is_not_known_to_read_writes() {
        for command in [
            "make",
            "rm -rf x",
            "echo x > a",
            "echo x >> a",
            "echo x >a",
            "cat a >| b",
            "ls 2> log",
            "cat <<EOF\nx\nEOF",
            "echo $(rm x)",
            "echo `rm x`",
            "echo \"$(rm x)\"",
            "echo \"`rm x`\"",
            "cat <(rm x)",
            "ls; rm x",
            "ls & rm x",
            "ls\nrm x",
            "ls | xargs rm",
            "find . -delete",
            "find . -exec rm {} +",
            "sort -o a a",
            "sort -uo a a",
            "uniq a b",
            "sed -i s/a/b/ x",
            "sed -n 'w x' a",
            "tree -o x",
            "git checkout .",
            "git diff --output=x",
            "git -c alias.status='!rm x' status",
            "./ls",
            "X=1 ls",
            "env rm x",
            "command rm x",
            "if true; then rm x; fi",
            "f() { rm x; }",
            "(rm x)",
            "cat 'unbalanced",
            "$EDITOR x",
            "tee x",
            "date -s now",
            "! rm x",
            "time rm x",
            "ls |& tee x",
            "echo x >&a",
            "echo a>b",
            "rg --pre ./x y",
            "printf -v x y; eval $x",
        ] {
            assert_eq!(uses(command), ShellUse::Writes, "{command}");
        }
    }

    #[test]
    fn what_only_follows_the_lock_may_follow_it() {
        for (command, wanted) in [
            ("jvs lock acquire && make", ShellUse::Acquires),
            ("jvs lock acquire --wait=90s --session s && make | tee log", ShellUse::Acquires),
            ("jvs lock acquire --wait=90s --session s && make | tail", ShellUse::Acquires),
            (
                "jvs lock acquire --note 'a b' && cd x && make && jvs lock release",
                ShellUse::Acquires,
            ),
            ("jvs lock acquire; make", ShellUse::Writes),
            ("jvs lock acquire || make", ShellUse::Writes),
            ("jvs lock acquire && true || make", ShellUse::Writes),
            ("jvs lock acquire & make", ShellUse::Writes),
            ("jvs lock acquire -w other && make", ShellUse::Writes),
            ("jvs lock acquire --repo /x && make", ShellUse::Writes),
            ("jvs lock acquire --session other && make", ShellUse::Writes),
            ("jvs --session=s lock acquire && make", ShellUse::Acquires),
            ("jvs lock status && make", ShellUse::Writes),
            ("jvs lock acquire --help && make", ShellUse::Writes),
            ("make && jvs lock acquire", ShellUse::Writes),
            ("jvs lock acquire 2>&1 | tail -3 && make", ShellUse::Writes),
            ("jvs lock acquire | cat && make", ShellUse::Writes),
            ("true | jvs lock acquire && make", ShellUse::Writes),
            ("jvs lock acquire >log && make", ShellUse::Writes),
            ("jvs lock acquire &>/dev/null && make", ShellUse::Writes),
            ("cd other && jvs lock acquire && make", ShellUse::Writes),
            ("jvs lock acquire 2>&1 && make 2>&1 | tail", ShellUse::Acquires),
            ("jvs lock acquire && echo a > f", ShellUse::Acquires),
            ("jvs lock acquire --wait=5m --note \"x\" && echo a >> f", ShellUse::Acquires),
            ("jvs lock acquire && make &> log", ShellUse::Acquires),
            ("jvs lock acquire && make > \"a b\" 2> c", ShellUse::Acquires),
            ("jvs lock acquire && cat > f <<'E'\na; b > c\nE\n", ShellUse::Acquires),
            ("jvs lock acquire && cat > f <<E\na\nE\nmake", ShellUse::Writes),
            ("jvs lock acquire --no-keeper --lease 1s && sleep 4 && make", ShellUse::Writes),
            ("jvs lock acquire --for 1s && sleep 4 && make", ShellUse::Writes),
        ] {
            assert_eq!(uses(command), wanted, "{command}");
        }
    }

    #[test]
    fn what_follows_a_release_is_not_held() {
        for (command, wanted) in [
            ("jvs snapshot done && jvs lock release && make", ShellUse::WritesUnlocked),
            ("jvs lock acquire && jvs lock release && make", ShellUse::WritesUnlocked),
            ("jvs lock release; echo x > f", ShellUse::WritesUnlocked),
            ("(jvs lock release); make", ShellUse::WritesUnlocked),
            ("for f in a b; do jvs lock release; make; done", ShellUse::WritesUnlocked),
            ("jvs lock release && jvs lock acquire && make; make", ShellUse::WritesUnlocked),
            ("jvs lock release && jvs lock acquire && make", ShellUse::Acquires),
            ("make && jvs snapshot done && jvs lock release", ShellUse::Writes),
            ("echo $(make) && jvs lock release && git status", ShellUse::Writes),
            ("jvs lock release && ls", ShellUse::Reads),
        ] {
            assert_eq!(uses(command), wanted, "{command}");
        }
    }

    #[test]
    fn jvs_is_only_trusted_with_what_it_locks_itself() {
        for (command, wanted) in [
            ("jvs run -w other touch x", ShellUse::Writes),
            ("jvs --repo /r run touch x", ShellUse::Writes),
            ("jvs man .", ShellUse::Writes),
            ("jvs audit --html f", ShellUse::Writes),
            ("jvs schema status > f", ShellUse::Writes),
            ("jvs run touch ../worktrees/other/x", ShellUse::Acquires),
            ("jvs run -- gcc -w x.c", ShellUse::Reads),
            ("jvs man", ShellUse::Reads),
            ("jvs -w other status", ShellUse::Reads),
        ] {
            assert_eq!(uses(command), wanted, "{command}");
        }
    }
}
