//! Which commands of a shell are known to read only.
//!
//! A shell can write in more ways than anybody lists. So a command counts as writing
//! unless every part of it is a plain call of a program that is listed here, with no
//! option that is known to write. `jvs` is listed: it looks after the lock itself.

use std::collections::BTreeSet;
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
}

impl ShellUse {
    /// Of `command`, given by a session that is called `session`.
    pub(crate) fn of(command: &str, session: &str) -> Self {
        let Some(parts) = parts(command) else { return ShellUse::Writes };
        if parts.iter().all(|part| is_reading(&part.words)) {
            return ShellUse::Reads;
        }
        let mut rest = parts.iter();
        let first = rest.next().filter(|first| is_acquire(&first.words, session));
        match first.is_some() && rest.all(|part| matches!(part.after, Joint::And | Joint::Pipe)) {
            true => ShellUse::Acquires,
            false => ShellUse::Writes,
        }
    }
}

/// `command` with the names of the home directory that its shell knows spelled out.
pub(crate) fn at_home(command: &str, home: &str) -> String {
    let named = command.replace("${HOME}", home).replace("$HOME", home);
    let mut text = String::with_capacity(named.len());
    let mut before = ' ';
    let mut rest = named.chars().peekable();
    while let Some(c) = rest.next() {
        // It stands for the directory only at the beginning of a word.
        let begins = before.is_whitespace() || ";&|<>(=:".contains(before);
        let ends = rest.peek().is_none_or(|next| *next == '/' || next.is_whitespace());
        match c {
            '~' if begins && ends => text.push_str(home),
            c => text.push(c),
        }
        before = c;
    }
    text
}

/// Words of a command that may name files, whatever it does: at most 64 of them, those that
/// look like paths first. What is written by it may be in it as well, and has many words.
pub(crate) fn words_of(command: &str) -> Vec<&str> {
    const WORDS_MAX: usize = 64;
    let ends = |c: char| c.is_whitespace() || "'\"`;&|<>(){}=$".contains(c);
    let words = command.split(ends).filter(|word| !word.is_empty() && !word.starts_with('-'));
    let mut seen = BTreeSet::new();
    let words = words.filter(|word| seen.insert(*word));
    let (paths, names): (Vec<&str>, Vec<&str>) =
        words.take(WORDS_MAX * 4).partition(|word| word.contains('/') || word.starts_with('.'));
    paths.into_iter().chain(names).take(WORDS_MAX).collect()
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
}

/// A command line, cut into calls.
struct Cutter<'c> {
    chars: Peekable<Chars<'c>>,
    parts: Vec<Part>,
    word: Option<String>,
}

/// The calls that a command line consists of; `None` if it is more than plain calls.
fn parts(command: &str) -> Option<Vec<Part>> {
    let first = Part { after: Joint::Start, words: Vec::new() };
    let chars = command.chars().peekable();
    let mut cutter = Cutter { chars, parts: vec![first], word: None };
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
            '<' if matches!(self.chars.peek(), Some('<' | '(' | '>' | '&')) => return None,
            '<' => self.finish(),
            '#' if self.word.is_none() => while self.chars.next_if(|c| *c != '\n').is_some() {},
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

    /// Only to where nothing is kept; a number before it is a stream.
    fn redirected(&mut self) -> Option<()> {
        let word = self.word.take().unwrap_or_default();
        if !word.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let mut target = redirected_to(&mut self.chars);
        if target.is_empty() {
            while self.chars.next_if(|c| *c == ' ').is_some() {}
            target = redirected_to(&mut self.chars);
        }
        ["&1", "&2", "/dev/null"].contains(&target.as_str()).then_some(())
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
        self.parts.push(Part { after, words: Vec::new() });
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
    "jvs",
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

/// Is it this session that takes the lock of where it is?
fn is_acquire(words: &[String], session: &str) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ["jvs", rest @ ..] = &words[..] else { return false };
    let mut plain = Vec::new();
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        match *word {
            "--session" if rest.next() == Some(&session) => {}
            "--note" | "--for" | "--while" | "--lease" | "--purpose" => drop(rest.next()),
            "--json" | "--wait" | "--no-keeper" | "--no-watch" => {}
            word if word.strip_prefix("--session=") == Some(session) => {}
            word if ["--wait=", "--note=", "--for="].iter().any(|it| word.starts_with(it)) => {}
            word if word.starts_with('-') => return false,
            word => plain.push(word),
        }
    }
    plain == ["lock", "acquire"]
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
        ] {
            assert_eq!(uses(command), wanted, "{command}");
        }
    }

    #[test]
    fn words_that_may_name_files_are_found_in_any_command() {
        let words = words_of("cd /r/main && rm -rf ./a 'b c' >x --to=/d; y=$(cat /e)");
        for word in ["/r/main", "./a", "b", "c", "x", "/e", "y"] {
            assert!(words.contains(&word), "{word}: {words:?}");
        }
        assert!(words.iter().all(|word| !word.starts_with('-')), "{words:?}");
        let many: String = (0..10_000).map(|n| format!("w{n} ")).collect();
        assert_eq!(words_of(&many).len(), 64);
        let text = format!("cat > z/file <<EOF\n{many}\nEOF");
        assert!(words_of(&text).contains(&"z/file"));
    }

    #[test]
    fn the_home_directory_has_three_names() {
        for (command, meant) in [
            ("cd ~ && ls ~/a", "cd /h && ls /h/a"),
            ("x > ~/a; y=$HOME/b", "x > /h/a; y=/h/b"),
            ("rm \"${HOME}/a\" a~ ~ann/b '~/c'", "rm \"/h/a\" a~ ~ann/b '~/c'"),
        ] {
            assert_eq!(at_home(command, "/h"), meant);
        }
    }
}
