//! Workers: sessions that do everything that there is to do, and write down what they
//! were told.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::ask::{Answer, Asker};
use super::book::{Book, Hold, Line, Outcome, Run};
use super::host::Host;
use super::{CALM, OPEN, ROUGH, Wish, beat};
use crate::clock::boot_ms;
use crate::dice::Dice;

/// Where sessions leave their marks in a worktree: each in a file that only it writes.
pub(super) const MARKS: &str = "marks";

/// Sessions that stand in line, for those who hand over.
static WAITING: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());

/// A session at work.
pub(super) struct Worker<'a> {
    asker: Asker<'a>,
    hosts: &'a [Host],
    stop: &'a AtomicBool,
    dice: Dice,
    count: u64,
}

/// Makes the repository, the same for all.
pub(crate) fn settle(host: &Host, book: &Book) {
    let asker = Asker { host, book, session: "founder".into(), is_root: true };
    let root = host.root().to_str().expect("a path in UTF-8");
    let ok = |answer: Answer| assert_eq!(answer.entry.outcome, Outcome::Ok, "{:?}", answer.entry);
    ok(asker.ask_anywhere(&["init", "--shared", root]));
    let settings = [
        ("lock.max_clock_skew_ms", "600"),
        ("lock.steal_grace_ms", "200"),
        ("reclaim.emergency_override", "true"),
    ];
    for (key, value) in settings {
        ok(asker.ask(CALM, &["config", "set", key, value]));
    }
    ok(asker.ask(CALM, &["worktree", "create", ROUGH]));
    ok(asker.ask(CALM, &["worktree", "create", OPEN, "--shared"]));
    for worktree in [CALM, ROUGH, OPEN] {
        write_mark(&mark(host, worktree, "founder"), "founded").expect("written");
        let note = format!("founded {worktree}");
        ok(asker.ask(worktree, &["snapshot", &note, "--consistency", "best_effort"]));
    }
}

/// A worktree's files, as a host sees them.
fn files(host: &Host, worktree: &str) -> PathBuf {
    if worktree == CALM {
        return host.root().join(worktree);
    }
    host.root().join("worktrees").join(worktree)
}

/// Where a session leaves its mark.
fn mark(host: &Host, worktree: &str, session: &str) -> PathBuf {
    files(host, worktree).join(MARKS).join(session)
}

/// What a mark says: longer than a page, and different for each note.
pub(super) fn mark_text(note: &str) -> String {
    let line = format!("{note}\n");
    line.repeat(1 + 6000 / line.len())
}

/// Leaves a mark, in a file that everybody of the team can replace.
pub(super) fn write_mark(path: &Path, note: &str) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = path.parent().expect("a mark is in a directory");
    if !dir.is_dir() {
        // Only this one: without a mount there is no worktree, and what is written into the
        // empty directory below would be covered by the next one.
        fs_err::create_dir(dir)?;
        let _ = fs_err::set_permissions(dir, std::fs::Permissions::from_mode(0o2775));
    }
    if path.exists() {
        fs_err::remove_file(path)?;
    }
    fs_err::write(path, mark_text(note))?;
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o664))
}

impl<'a> Worker<'a> {
    pub(super) fn new(
        number: usize,
        wish: &Wish,
        hosts: &'a [Host],
        book: &'a Book,
        stop: &'a AtomicBool,
    ) -> Self {
        let host = &hosts[number % hosts.len()];
        let is_root = (number / hosts.len()).is_multiple_of(2);
        let asker = Asker { host, book, session: format!("w{number}"), is_root };
        let dice = Dice::new(wish.seed, 1000 + number as u64);
        Self { asker, hosts, stop, dice, count: 0 }
    }

    /// Works until it is told to stop.
    pub(super) fn work(mut self) {
        while !self.stop.load(Ordering::SeqCst) {
            self.count += 1;
            let worktree = if self.dice.hits(1, 4) { ROUGH } else { CALM };
            match self.dice.below(100) {
                0..=23 => self.hold(worktree, "acquire"),
                24..=41 => self.run(worktree),
                42..=57 => self.snapshot_alone(worktree),
                58..=63 => self.snapshot_in_the_open(),
                64..=67 => self.hold(worktree, "steal"),
                68..=69 => self.hold(ROUGH, "reclaim"),
                70..=72 => self.freeze(worktree),
                73..=78 => self.life(),
                79..=80 => self.restore_in_place(),
                81..=83 => self.collect(),
                84..=85 => self.examine(),
                86 => self.tag(),
                _ => self.look(worktree),
            }
            let pause = self.dice.below(120);
            thread::sleep(Duration::from_millis(pause));
        }
    }

    fn note(&mut self) -> String {
        self.count += 1;
        format!("{} {}", self.asker.session, self.count)
    }

    fn words(words: &str) -> Vec<&str> {
        words.split(' ').filter(|word| !word.is_empty()).collect()
    }

    /// Takes a lock in some way, does something with it, and gives it back or forgets it.
    fn hold(&mut self, worktree: &str, verb: &str) {
        let lease = self.dice.between(8, 25) * 100;
        let keeps = self.dice.hits(1, 4);
        let until = if keeps { "--for 4s" } else { "--no-keeper" };
        let how = match (verb, self.dice.below(3)) {
            ("acquire", 0) => "",
            ("acquire", _) => "--wait=4s",
            ("reclaim", 0) => "--reason torture",
            ("reclaim", _) => "--reason torture --emergency",
            (_, 0) => "--reason torture --observe",
            _ => "--reason torture",
        };
        let line = format!("lock {verb} {how} {until} --lease {lease}ms");
        let waits = how.starts_with("--wait");
        if waits {
            self.stand_in_line(worktree);
        }
        let answer = self.asker.ask(worktree, &Self::words(&line));
        if waits {
            self.leave_the_line(worktree);
        }
        let mut held = self.asker.held(&answer, worktree);
        self.asker.book.write(&Line::Did(answer.entry));
        let Some(hold) = &mut held else { return };
        for _ in 0..self.dice.below(3) {
            self.while_holding(hold, lease);
        }
        self.let_go(hold);
        self.asker.book.write(&Line::Held(hold.clone()));
    }

    fn stand_in_line(&self, worktree: &str) {
        let me = (self.asker.session.clone(), worktree.to_owned());
        WAITING.lock().expect("no worker panics").push(me);
    }

    fn leave_the_line(&self, worktree: &str) {
        let mut waiting = WAITING.lock().expect("no worker panics");
        waiting.retain(|(session, line)| *session != self.asker.session || line != worktree);
    }

    /// One thing that a holder does.
    fn while_holding(&mut self, hold: &mut Hold, lease: u64) {
        let worktree = hold.worktree.clone();
        match self.dice.below(5) {
            0 => {
                let answer = self.asker.ask(&worktree, &["lock", "renew"]);
                self.extend(hold, answer);
            }
            1 => {
                // Often for less than what is left.
                let lease = format!("{}ms", 200 + self.dice.below(lease));
                let words = ["lock", "acquire", "--no-keeper", "--lease", &lease];
                let answer = self.asker.ask(&worktree, &words);
                self.extend(hold, answer);
            }
            2 => thread::sleep(Duration::from_millis(self.dice.below(lease))),
            _ => self.snapshot_under(hold),
        }
    }

    /// A hold that was renewed lasts longer, if it is still the same one.
    fn extend(&self, hold: &mut Hold, answer: Answer) {
        if let Some(now) = self.asker.held(&answer, &hold.worktree)
            && now.token == hold.token
        {
            hold.until = hold.until.max(now.until);
        }
        self.asker.book.write(&Line::Did(answer.entry));
    }

    /// A snapshot by somebody who holds: it has the mark that was just left.
    fn snapshot_under(&mut self, hold: &Hold) {
        let note = self.note();
        let path = mark(self.asker.host, &hold.worktree, &hold.session);
        if write_mark(&path, &note).is_err() {
            return;
        }
        let mut answer = self.asker.ask(&hold.worktree, &["snapshot", &note]);
        // Otherwise the lock was lost and taken again, and there was a gap.
        if answer.entry.told.under == Some(hold.token) {
            answer.entry.told.mark = Some(note.clone());
        }
        answer.entry.told.note = Some(note);
        self.published(answer);
    }

    /// Writes down that a snapshot was published, and looks at it from another host.
    fn published(&mut self, answer: Answer) {
        let (id, mark) = (answer.entry.told.snapshot.clone(), answer.entry.told.mark.clone());
        let worktree = answer.entry.worktree.clone();
        self.asker.book.write(&Line::Did(answer.entry));
        let (Some(id), Some(_)) = (id, mark) else { return };
        if self.dice.hits(1, 3) {
            let other = self.dice.below(self.hosts.len() as u64);
            let other = &self.hosts[usize::try_from(other).unwrap_or(0)];
            let reader = Asker {
                host: other,
                session: format!("{}-r", self.asker.session),
                ..self.asker.clone()
            };
            let path = format!("{MARKS}/{}", self.asker.session);
            let mut answer = reader.ask_plainly(&worktree, &["cat", &id, &path]);
            if answer.entry.outcome == Outcome::Ok {
                let text = answer.data.as_str().unwrap_or_default();
                answer.entry.told.read = Some((id, text.lines().next().unwrap_or("").to_owned()));
            }
            self.asker.book.write(&Line::Did(answer.entry));
        }
    }

    /// The end of a hold: given back, handed over, or left to expire.
    fn let_go(&mut self, hold: &mut Hold) {
        let heir = WAITING
            .lock()
            .expect("no worker panics")
            .iter()
            .find(|(session, line)| *line == hold.worktree && *session != hold.session)
            .map(|(session, _)| session.clone());
        let begun = boot_ms();
        let answer = match heir {
            Some(heir) if self.dice.hits(1, 3) => {
                self.asker.ask(&hold.worktree, &["lock", "transfer", "--to", &heir])
            }
            _ if self.dice.hits(1, 8) => {
                hold.until = hold.until.min(boot_ms());
                return;
            }
            _ => self.asker.ask(&hold.worktree, &["lock", "release"]),
        };
        // Whose release is accepted has held until then.
        hold.until = match answer.entry.outcome {
            Outcome::Ok => begun,
            _ => hold.until.min(begun),
        };
        self.asker.book.write(&Line::Did(answer.entry));
    }

    /// A command under `jvs run`, with or without a snapshot at its end.
    fn run(&mut self, worktree: &str) {
        let note = self.note();
        let name = note.replace(' ', "-");
        let file = self.asker.book.beats(&name);
        let path = mark(self.asker.host, worktree, &self.asker.session);
        let lease = format!("{}ms", self.dice.between(10, 25) * 100);
        let time = self.dice.below(1500).to_string();
        let mut words = vec!["run", "--lease", &lease];
        if self.dice.hits(2, 3) {
            words.push("--wait=4s");
        }
        let keeps = self.dice.hits(1, 2);
        if keeps {
            words.extend(["--snapshot", &note]);
        }
        let (beats, mark) = (file.to_string_lossy(), path.to_string_lossy());
        let program = self.asker.book.program().to_string_lossy();
        words.extend(["--", &program, "beat", &beats, &mark, &note, &time]);
        let mut answer = self.asker.ask(worktree, &words);
        let done = answer.entry.outcome == Outcome::Ok;
        if keeps {
            // What was refused tells of others.
            let data = if done { &answer.data["snapshot"] } else { &Value::Null };
            answer.entry.told.snapshot = data["snapshot_id"].as_str().map(str::to_owned);
            answer.entry.told.under = data["fencing_token"].as_u64();
            if answer.entry.told.snapshot.is_some() {
                answer.entry.told.mark = Some(note.clone());
            }
            answer.entry.told.note = Some(note);
        }
        if done {
            answer.entry.told.granted = answer.data["fencing_token"].as_u64();
        }
        self.published(answer);
        let heard = |(token, first_ns, last_ns)| Run {
            session: self.asker.session.clone(),
            worktree: worktree.to_owned(),
            token,
            first_ns,
            last_ns,
        };
        if let Some(run) = beat::heard(&file).map(heard) {
            self.asker.book.write(&Line::Ran(run));
        }
    }

    /// A snapshot by somebody who does not hold: the lock is taken for it.
    fn snapshot_alone(&mut self, worktree: &str) {
        let note = self.note();
        let _ = write_mark(&mark(self.asker.host, worktree, &self.asker.session), &note);
        let careless = ["snapshot", &note, "--consistency", "best_effort"];
        let words = if self.dice.hits(1, 3) { &careless[..] } else { &careless[..2] };
        let mut answer = self.asker.ask(worktree, words);
        answer.entry.told.granted = answer.entry.told.under;
        answer.entry.told.note = Some(note);
        self.published(answer);
    }

    /// A snapshot where several write at once.
    fn snapshot_in_the_open(&mut self) {
        let note = self.note();
        if write_mark(&mark(self.asker.host, OPEN, &self.asker.session), &note).is_err() {
            return;
        }
        let words = ["snapshot", &note, "--consistency", "best_effort"];
        let mut answer = self.asker.ask(OPEN, &words);
        // Nobody but this session touches its mark, and nothing is restored here.
        answer.entry.told.mark = answer.entry.told.snapshot.as_ref().map(|_| note.clone());
        answer.entry.told.note = Some(note);
        self.published(answer);
    }

    fn did(&self, worktree: &str, line: &str) -> Outcome {
        let answer = self.asker.ask(worktree, &Self::words(line));
        let outcome = answer.entry.outcome.clone();
        self.asker.book.write(&Line::Did(answer.entry));
        outcome
    }

    fn freeze(&mut self, worktree: &str) {
        let force = if worktree == ROUGH && self.dice.hits(1, 2) { "--force" } else { "--wait=2s" };
        let frozen =
            self.did(worktree, &format!("lock freeze --for 700ms --reason torture {force}"));
        if frozen == Outcome::Ok && self.dice.hits(1, 2) {
            self.did(worktree, "lock unfreeze");
        }
    }

    /// The life of a worktree, whose names nobody else uses.
    fn life(&mut self) {
        let born = format!("{}-{}", self.asker.session, self.count);
        let from = if self.dice.hits(1, 2) { "--from @" } else { "" };
        self.did(CALM, &format!("worktree create {born} {from}"));
        let note = self.note();
        if write_mark(&mark(self.asker.host, &born, &self.asker.session), &note).is_ok() {
            let mut answer = self.asker.ask(&born, &["snapshot", &note]);
            answer.entry.told.mark = answer.entry.told.snapshot.as_ref().map(|_| note.clone());
            answer.entry.told.note = Some(note);
            self.published(answer);
        }
        let mut name = born.clone();
        if self.dice.hits(1, 2) {
            let renamed = format!("{born}.b");
            if self.did(CALM, &format!("worktree rename {born} {renamed}")) == Outcome::Ok {
                name = renamed;
            }
        }
        if self.dice.hits(1, 3) {
            let restored = format!("{born}.r");
            self.did(CALM, &format!("restore @ --into {restored}"));
            self.did(CALM, &format!("worktree remove {restored} --force"));
        }
        self.did(CALM, &format!("worktree remove {name} --force"));
    }

    fn restore_in_place(&mut self) {
        let which = ["@", "@-"][usize::from(self.dice.hits(1, 2))];
        let how = if self.dice.hits(1, 2) { "--atomic" } else { "" };
        self.did(ROUGH, &format!("restore {which} --in-place --reason torture {how}"));
    }

    fn collect(&mut self) {
        let line = ["gc --keep-last 8 --keep-within 0s", "gc --dry-run"];
        let which = usize::from(self.dice.hits(1, 4));
        self.did(CALM, line[which]);
    }

    fn examine(&mut self) {
        let all = ["doctor --strict", "doctor --strict --repair", "doctor", "doctor --probe"];
        let line = *self.dice.pick(&all).expect("there are some");
        self.did(CALM, line);
    }

    fn tag(&mut self) {
        let name = format!("{}-t{}", self.asker.session, self.count);
        self.did(CALM, &format!("tag @ {name}"));
        self.did(CALM, &format!("tag --delete {name}"));
    }

    /// Verbs that change nothing.
    fn look(&mut self, worktree: &str) {
        let all = [
            "lock status",
            "lock status",
            "lock list",
            "lock why",
            "status",
            "history",
            "history -n 3 --all",
            "info @",
            "ls",
            "diff --stat",
            "diff @- @ --stat",
            "verify @",
            "session list",
            "session show",
            "audit --since 2s",
            "audit --verify",
            "config list",
            "worktree list",
            "tag --list",
            "session forget",
        ];
        let line = *self.dice.pick(&all).expect("there are some");
        self.did(worktree, line);
    }
}

/// What of an answer's record says until when its session may act.
pub(super) fn lease_end(data: &Value) -> Option<u64> {
    let record = &data["record"];
    Some(record["renewed_boot_ms"].as_u64()? + record["lease_duration_ms"].as_u64()?)
}
