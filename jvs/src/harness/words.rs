//! Words of a command that may name files, whatever it does.
//!
//! More than a shell would see rather than fewer: the words of quoted text count, too, as
//! they may be those of another program's command.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::str::Chars;

/// Values that a shell knows and nobody has to guess.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known<'k> {
    pub(crate) home: &'k str,
    /// Where the command runs.
    pub(crate) dir: &'k str,
}

/// What a word is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// The directory to which `cd` goes.
    Into,
    /// A directory that a program is told to work in.
    Within,
    /// The beginning of a name that goes on in a way which only a shell knows.
    Begins,
    /// The end of such a name.
    Ends,
    /// A word of a call of `jvs` whose answer is part of the command.
    Asked,
    Named,
}

/// A word, without the signs that only a shell has a use for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Word {
    pub(crate) role: Role,
    pub(crate) text: String,
}

/// Most words that are looked at, and how deep text is within text.
const WORDS_MAX: usize = 64;
const FOUND_MAX: usize = WORDS_MAX * 8;
const DEPTH_MAX: usize = 3;

/// At most 64 words of `command`, those that look like paths first. What is written by it may
/// be in it as well, and has many words.
pub(crate) fn words_of(command: &str, known: Known<'_>) -> Vec<Word> {
    let mut words = Vec::new();
    Reader::read(command, known, 0, &mut words);
    first(words)
}

/// Those that are looked at.
fn first(mut words: Vec<Word>) -> Vec<Word> {
    let mut seen = BTreeSet::new();
    words.retain(|word| seen.insert(word.clone()));
    let looks = |word: &Word| {
        word.role != Role::Named || word.text.contains('/') || word.text.starts_with('.')
    };
    let (paths, names): (Vec<Word>, Vec<Word>) = words.into_iter().partition(looks);
    paths.into_iter().chain(names).take(WORDS_MAX).collect()
}

/// A command that is read.
struct Reader<'c, 'w> {
    chars: Peekable<Chars<'c>>,
    known: Known<'c>,
    depth: usize,
    words: &'w mut Vec<Word>,
    word: Option<String>,
    /// What is unknown stands before this word.
    ends: bool,
    /// The words of this call so far.
    call: Vec<String>,
    /// Calls around this one, and if they are in double quotes.
    around: Vec<(Vec<String>, bool)>,
    quoted: bool,
    /// Within backticks.
    ticked: bool,
}

impl<'c, 'w> Reader<'c, 'w> {
    fn read(command: &'c str, known: Known<'c>, depth: usize, words: &'w mut Vec<Word>) {
        let chars = command.chars().peekable();
        let (word, call, around) = (None, Vec::new(), Vec::new());
        let mut reader = Reader {
            chars,
            known,
            depth,
            words,
            word,
            ends: false,
            call,
            around,
            quoted: false,
            ticked: false,
        };
        while reader.words.len() < FOUND_MAX
            && let Some(c) = reader.chars.next()
        {
            reader.take(c);
        }
        reader.finish();
    }

    fn take(&mut self, c: char) {
        match c {
            '"' => self.double_quoted(),
            '\'' if !self.quoted => {
                let text: String = self.chars.by_ref().take_while(|c| *c != '\'').collect();
                self.inner(&text);
                self.push_all(&text);
            }
            '\\' => {
                if let Some(c) = self.chars.next().filter(|c| *c != '\n') {
                    self.push(c);
                }
            }
            '$' => self.variable(),
            '`' if self.ticked => {
                self.end_call();
                (self.ticked, self.ends) = (false, true);
            }
            '`' => {
                self.begins();
                self.end_call();
                self.ticked = true;
            }
            '(' if !self.quoted => self.enter(),
            ')' if !self.around.is_empty() && !self.quoted => self.leave(),
            '*' | '?' | '[' => self.begins(),
            '{' => self.braces(),
            ';' | '&' | '|' | '\n' | '(' | ')' if !self.quoted => self.end_call(),
            '<' | '>' if !self.quoted => self.finish(),
            c if c.is_whitespace() && !self.quoted => self.finish(),
            c => self.push(c),
        }
    }

    /// Begins or ends a text in double quotes; what is in it is a text of its own, too.
    fn double_quoted(&mut self) {
        self.quoted = !self.quoted;
        self.word.get_or_insert_default();
        if self.quoted && self.depth < DEPTH_MAX {
            let mut rest = self.chars.clone();
            let mut text = String::new();
            while let Some(c) = rest.next().filter(|c| *c != '"') {
                match c {
                    '\\' => text.extend(rest.next()),
                    c => text.push(c),
                }
            }
            self.inner(&text);
        }
    }

    /// What another program may read as a command.
    fn inner(&mut self, text: &str) {
        let is_text = text.contains(|c: char| c.is_whitespace() || "'\"();&|<>".contains(c));
        if is_text && self.depth < DEPTH_MAX {
            let mut words = Vec::new();
            Reader::read(text, self.known, self.depth + 1, &mut words);
            self.words.extend(first(words));
        }
    }

    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn push_all(&mut self, text: &str) {
        self.word.get_or_insert_default().push_str(text);
    }

    fn variable(&mut self) {
        if self.chars.next_if_eq(&'(').is_some() {
            self.begins();
            return self.enter();
        }
        let braced = self.chars.next_if_eq(&'{').is_some();
        let of_name = |c: &char| c.is_alphanumeric() || *c == '_';
        let name: String = std::iter::from_fn(|| self.chars.next_if(of_name)).collect();
        let plain = !braced || self.chars.peek() == Some(&'}');
        if braced {
            while self.chars.next().is_some_and(|c| c != '}') {}
        }
        match name.as_str() {
            "HOME" if plain => self.push_all(self.known.home),
            "PWD" if plain => self.push_all(self.known.dir),
            _ => self.begins(),
        }
    }

    /// The word goes on with what is not known.
    fn begins(&mut self) {
        let text = self.word.take().unwrap_or_default();
        if !self.ends {
            self.note(&text, Role::Begins);
        }
        self.ends = true;
    }

    /// Each of the names in braces may be meant.
    fn braces(&mut self) {
        let before = self.word.clone().unwrap_or_default();
        let plain = |c: &char| !c.is_whitespace() && !"{}'\"()$`".contains(*c);
        let names: String = std::iter::from_fn(|| self.chars.next_if(plain)).collect();
        if self.chars.next_if_eq(&'}').is_some() {
            for name in names.split(',') {
                self.note(&format!("{before}{name}"), Role::Named);
            }
        } else {
            for name in names.split(',') {
                self.note(name, Role::Named);
            }
        }
        if !before.is_empty() || !names.is_empty() {
            self.begins();
        }
    }

    fn enter(&mut self) {
        self.finish();
        self.around.push((std::mem::take(&mut self.call), self.quoted));
        self.quoted = false;
    }

    fn leave(&mut self) {
        self.end_call();
        if let Some((call, quoted)) = self.around.pop() {
            (self.call, self.quoted) = (call, quoted);
        }
        self.ends = true;
    }

    fn end_call(&mut self) {
        self.finish();
        self.call.clear();
    }

    fn finish(&mut self) {
        let ends = std::mem::take(&mut self.ends);
        let Some(word) = self.word.take() else { return };
        match ends {
            true => self.note(&word, Role::Ends),
            false => self.judge(&word),
        }
        self.call.push(word);
    }

    /// A whole word of a call.
    fn judge(&mut self, word: &str) {
        let is_jvs = self.call.first().is_some_and(|it| it == "jvs");
        let last = self.call.last().cloned().unwrap_or_default();
        if is_jvs && !self.around.is_empty() {
            self.note(word, Role::Asked);
        }
        if is_jvs && ["--repo", "-w", "--worktree", "--session", "--note"].contains(&last.as_str())
        {
            return;
        }
        let only_options = self.call.iter().skip(1).all(|it| it.starts_with('-'));
        let goes = self.call.first().is_some_and(|it| ["cd", "pushd"].contains(&it.as_str()));
        let role = match (goes && only_options, last.as_str()) {
            (true, _) => Role::Into,
            (_, "-C" | "--directory" | "--chdir") => Role::Within,
            _ => Role::Named,
        };
        match word.strip_prefix('-') {
            None => self.note(word, role),
            // Options with their value in one word.
            Some(option) => {
                let from = option.find(['/', '.', '~']).unwrap_or(option.len());
                self.note(&option[from..], Role::Within);
            }
        }
        for part in word.split(['=', ':', ',']).skip(1) {
            self.note(part, Role::Named);
        }
        if let Some((first, _)) = word.split_once([':', ',']).filter(|_| !word.starts_with('-')) {
            self.note(first, Role::Named);
        }
    }

    fn note(&mut self, text: &str, role: Role) {
        let home = self.known.home;
        let text = match text.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
            _ => text.to_owned(),
        };
        let empty = text.is_empty() && role != Role::Begins;
        if !empty && text.len() <= 4096 && !text.contains('\0') {
            self.words.push(Word { role, text });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: Known<'_> = Known { home: "/h", dir: "/d" };

    fn has(command: &str, role: Role, text: &str) {
        let words = words_of(command, KNOWN);
        let wanted = Word { role, text: text.to_owned() };
        assert!(words.contains(&wanted), "{command}: {wanted:?} in {words:?}");
    }

    #[test]
    fn words_that_may_name_files_are_found_in_any_command() {
        for word in ["./a", "b", "c", "b c", "x", "/d", "/e"] {
            has("cd /r/main && rm -rf ./a 'b c' >x --to=/d; y=$(cat /e)", Role::Named, word);
        }
        let many: String = (0..10_000).map(|n| format!("w{n} ")).collect();
        assert_eq!(words_of(&many, KNOWN).len(), 64);
        has(&format!("cat > z/file <<EOF\n{many}\nEOF"), Role::Named, "z/file");
        has(&format!("echo '{many}' | tee z/file"), Role::Named, "z/file");
    }

    #[test]
    fn a_word_is_what_a_shell_makes_of_it() {
        for (command, word) in [
            ("touch \"r\"/main/x", "r/main/x"),
            ("touch r/m\\ain/x", "r/main/x"),
            ("touch 'r'/\"main\"/x", "r/main/x"),
            ("touch \"$PWD/r/x\"", "/d/r/x"),
            ("touch ${PWD}/r/x", "/d/r/x"),
            ("touch r/{main,nope}/x", "r/main"),
            ("sh -c \"touch 'r/main/x'\"", "r/main/x"),
            ("sh -c 'cd r; touch \"main\"/x'", "main/x"),
            ("python3 -c \"open('r/main/x', 'w')\"", "r/main/x"),
            ("docker run -v /r/main:/x", "/r/main"),
            ("rm -rf ~", "/h"),
            ("cp a ~/b; y=$HOME/c", "/h/b"),
            ("y=~/c", "/h/c"),
            ("rm \"${HOME}/a\"", "/h/a"),
            ("rm ~ann/b", "~ann/b"),
        ] {
            has(command, Role::Named, word);
        }
    }

    #[test]
    fn what_a_word_is_there_for_is_known() {
        for (command, role, word) in [
            ("cd r; touch main/x", Role::Into, "r"),
            ("(cd -P 'r' && touch x)", Role::Into, "r"),
            ("sh -c 'cd r; touch x'", Role::Into, "r"),
            ("tar xf a -C /r/main", Role::Within, "/r/main"),
            ("tar xf a -C/r/main", Role::Within, "/r/main"),
            ("tar xf a -C../x", Role::Within, "../x"),
            ("make --directory=../x", Role::Within, "../x"),
            ("cp t r/*/", Role::Begins, "r/"),
            ("touch ../worktrees/$X/f", Role::Begins, "../worktrees/"),
            ("touch \"$(dirname \"$PWD\")/worktrees/o/x\"", Role::Ends, "/worktrees/o/x"),
            ("cd \"$(jvs worktree path other)\" && touch x", Role::Asked, "other"),
            ("touch `echo a`/b", Role::Ends, "/b"),
        ] {
            has(command, role, word);
        }
        let words = words_of("jvs lock acquire --repo /r -w main && touch x", KNOWN);
        let repo = |word: &Word| word.text == "/r" || word.text == "main";
        assert!(!words.iter().any(repo), "{words:?}");
    }
}
