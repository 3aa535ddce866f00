//! `jvs agent …`: hooks and instructions for coding agents, in the files that they read.

mod piece;
mod place;
mod receipt;
mod section;
mod status;

use rustix::fs::stat;

use self::piece::{Piece, PieceKind, Stripped, pieces, pieces_in};
use self::place::{AgentFile, AgentPlace};
use self::receipt::{KeptFile, Receipts, digest};
use super::diff::patch::of_texts;
use super::snapshots::hold;
use crate::answer;
use crate::answer::agent::{AgentChanged, AgentFileChanged};
use crate::args::{Agent, AgentCommand, HookWays, InstallArgs, OnError, UninstallArgs};
use crate::context::Context;
use crate::fail::{Failure, WrongUsage};
use crate::given::quoted;
use crate::harness::entries::WantedHooks;
use crate::hint::OwnNext;
use crate::render::Done;

/// Who may use a file that is made here.
const NEW_MODE: u32 = 0o644;

pub(crate) fn run(context: &Context<'_>, command: &AgentCommand) -> Result<Done, Failure> {
    match command {
        AgentCommand::Install(args) => install(context, args),
        AgentCommand::Status(args) => status::run(context, args),
        AgentCommand::Uninstall(args) => uninstall(context, args),
    }
}

/// A file, as it is and as it will be.
struct Change {
    path: &'static str,
    before: Option<AgentFile>,
    after: Option<String>,
    /// What is kept of it; `None` if nothing needs to be.
    kept: Option<KeptFile>,
}

impl Change {
    fn is_none(&self) -> bool {
        self.before.as_ref().map(|file| &file.text) == self.after.as_ref()
    }
}

fn install(context: &Context<'_>, args: &InstallArgs) -> Result<Done, Failure> {
    let InstallArgs { agent, user, ways, dry_run } = args;
    if pieces(*agent, *user).is_empty() {
        let why = format!("no agent reads {} in the home directory", name(*agent));
        return Err(WrongUsage::new(why, OwnNext::InstallHere(agent.as_str())).into());
    }
    let place = AgentPlace::of(context, Some(*agent), *user)?;
    let pieces = pieces_in(&place, *agent, *user);
    let (wanted, found) = wanted(context, ways, *user);
    let mut warnings = Vec::new();
    if agent.harness().is_some() && !found {
        warnings.push(format!(
            "jvs is not in PATH: the hooks name {}, which other hosts may not have",
            wanted.program
        ));
    }
    if let Some(variable) = elsewhere(context, *agent).filter(|_| *user && !place.moved) {
        warnings.push(format!(
            "{variable} is no path from the root: the agent may read another directory than {}",
            crate::render::shown(&place.root)
        ));
    }
    under_lock(context, &place, *dry_run, || {
        let mut receipts = Receipts::read(&place)?;
        let known = receipts.of(*agent);
        let mut changes = Vec::new();
        for piece in &pieces {
            changes.extend(added(&place, piece, &known, &wanted, &mut warnings)?);
        }
        let done = told(
            context,
            &place,
            *agent,
            &changes,
            *dry_run,
            ("Installed", "are as they should be"),
        );
        if !*dry_run && !changes.iter().all(Change::is_none) {
            let mut dirs = receipts.dirs(*agent);
            // What is kept comes first: whatever happens then, it can be put back.
            receipts.put(*agent, &keeping(&changes), &dirs);
            receipts.write(context, &place)?;
            for change in &changes {
                dirs.extend(change.make(context, &place)?);
            }
            receipts.put(*agent, &keeping(&changes), &dirs);
            receipts.write(context, &place)?;
        }
        Ok(warnings.drain(..).fold(done, Done::with_warning))
    })
}

/// What is kept of all of them.
fn keeping(changes: &[Change]) -> Vec<KeptFile> {
    changes.iter().filter_map(|change| change.kept.clone()).collect()
}

/// What becomes of one file by installing. `None` if it stays its owner's.
fn added(
    place: &AgentPlace,
    piece: &Piece,
    known: &[KeptFile],
    wanted: &WantedHooks,
    warnings: &mut Vec<String>,
) -> Result<Option<Change>, Failure> {
    let file = place.read(piece.path)?;
    let kept = known.iter().find(|kept| kept.path == piece.path);
    let is_ours = |kept: &&KeptFile| file.as_ref().is_some_and(|it| digest(&it.text) == kept.after);
    if let Some(file) = file.as_ref().filter(|_| kept.is_none_or(|kept| !is_ours(&kept))) {
        place.check_owner(piece.path, file)?;
    }
    let before: Option<String> = match (&file, kept.filter(is_ours)) {
        (_, Some(kept)) => kept.before.clone(),
        (None, None) => None,
        (Some(file), None) => match piece.stripped(place, file)? {
            // Somebody's own, from before: what is uninstalled later is not that.
            Some(_) if kept.is_none() && matches!(piece.kind, PieceKind::Hooks(_)) => {
                Some(file.text.clone())
            }
            Some(Stripped { less, theirs }) => {
                warnings.extend(theirs.then(|| of_theirs(piece.path)));
                less
            }
            None if matches!(piece.kind, PieceKind::Whole(_)) => {
                let error = place.unfit(piece.path, "is there, and is not what jvs writes there");
                if kept.is_none() {
                    return Err(error.of_others().into());
                }
                warnings.push(format!("{} was changed since, and stays as it is", piece.path));
                return Ok(None);
            }
            None => Some(file.text.clone()),
        },
    };
    let base = before.as_deref().map(|text| piece.base(place, text)).transpose()?;
    let after = piece.added(place, base.as_deref(), wanted)?;
    let kept = KeptFile { path: piece.path.to_owned(), before, after: digest(&after) };
    Ok(Some(Change { path: piece.path, before: file, after: Some(after), kept: Some(kept) }))
}

fn uninstall(context: &Context<'_>, args: &UninstallArgs) -> Result<Done, Failure> {
    let UninstallArgs { agent, user, dry_run } = args;
    let place = AgentPlace::of(context, Some(*agent), *user)?;
    under_lock(context, &place, *dry_run, || {
        let mut receipts = Receipts::read(&place)?;
        let (known, dirs) = (receipts.of(*agent), receipts.dirs(*agent));
        let (mut changes, mut warnings) = (Vec::new(), Vec::new());
        for piece in pieces_in(&place, *agent, *user) {
            changes.extend(removed(&place, &piece, &known, &mut warnings)?);
        }
        let done =
            told(context, &place, *agent, &changes, *dry_run, ("Uninstalled", "are not installed"));
        if !*dry_run {
            for change in &changes {
                change.make(context, &place)?;
            }
            dirs.iter().for_each(|dir| place.remove_dir(dir));
            if !known.is_empty() || !dirs.is_empty() {
                receipts.remove(*agent);
                receipts.write(context, &place)?;
            }
        }
        Ok(warnings.into_iter().fold(done, Done::with_warning))
    })
}

/// What becomes of one file by uninstalling. `None` if nothing of it is ours.
fn removed(
    place: &AgentPlace,
    piece: &Piece,
    known: &[KeptFile],
    warnings: &mut Vec<String>,
) -> Result<Option<Change>, Failure> {
    let Some(file) = place.read(piece.path)? else { return Ok(None) };
    let kept = known.iter().find(|kept| kept.path == piece.path);
    let change = |file: AgentFile, after| {
        Some(Change { path: piece.path, before: Some(file), after, kept: None })
    };
    if let Some(kept) = kept.filter(|kept| digest(&file.text) == kept.after) {
        if let Some(before) = &kept.before
            && piece.base(place, before)? != *before
        {
            let path = piece.path;
            warnings.push(format!(
                "{path} has what jvs installs from before: the same command again removes that"
            ));
        }
        return Ok(change(file, kept.before.clone()));
    }
    match piece.stripped(place, &file)? {
        Some(Stripped { less, theirs }) => {
            place.check_owner(piece.path, &file)?;
            warnings.extend(theirs.then(|| of_theirs(piece.path)));
            // It was made for the hooks alone, and nobody has put anything else there.
            let made = kept.is_some_and(|kept| kept.before.is_none());
            let empty = |text: &String| text.split_whitespace().collect::<String>();
            let less = less
                .filter(|text| !made || !["{}", "{\"version\":1}"].contains(&empty(text).as_str()));
            if kept.is_some() && matches!(piece.kind, PieceKind::Hooks(_)) {
                warnings.push(format!(
                    "{} was changed since: only what jvs had added was removed",
                    piece.path
                ));
            }
            Ok(change(file, less))
        }
        None => {
            if kept.is_some() {
                let path = piece.path;
                warnings.push(format!("{path} was changed since, and stays as it is"));
            }
            Ok(None)
        }
    }
}

fn of_theirs(path: &str) -> String {
    format!("{path} had lines in the section of jvs that jvs did not write: they stay")
}

impl Change {
    /// Makes it; names the directories that were made for it.
    fn make(&self, context: &Context<'_>, place: &AgentPlace) -> Result<Vec<String>, Failure> {
        match &self.after {
            _ if self.is_none() => Ok(Vec::new()),
            Some(text) => {
                let mode = self.before.as_ref().map_or(NEW_MODE, |file| file.mode);
                place.write(context, self.path, text, mode)
            }
            None => place.remove(self.path).map(|()| Vec::new()),
        }
    }
}

/// Does it while nobody else writes to the worktree; at home there is no such lock.
fn under_lock(
    context: &Context<'_>,
    place: &AgentPlace,
    dry_run: bool,
    act: impl FnOnce() -> Result<Done, Failure>,
) -> Result<Done, Failure> {
    let Some(here) = place.here.as_ref().filter(|_| !dry_run) else { return act() };
    let config = here.repo.config()?;
    let acting = context.session(None)?;
    let locks = context.locks(here.repo.store(), config.lock, &acting)?;
    let held = hold(context, &locks, here, &config, &acting)?;
    let done = act();
    let drift = held.give_back();
    Ok(drift.into_iter().fold(done?, Done::with_warning))
}

/// What was changed, or would be.
fn told(
    context: &Context<'_>,
    place: &AgentPlace,
    agent: Agent,
    changes: &[Change],
    dry_run: bool,
    (did, is): (&str, &str),
) -> Done {
    let real: Vec<&Change> = changes.iter().filter(|change| !change.is_none()).collect();
    let place_text = crate::render::shown(&place.root);
    let mut text = String::new();
    if real.is_empty() {
        text += &format!("Nothing to do in {place_text}: {} {is}\n", name(agent));
    }
    for change in &real {
        let before = change.before.as_ref().map(|file| file.text.as_str());
        match dry_run {
            true => {
                text += &of_texts(context.paint(), change.path, before, change.after.as_deref());
            }
            false => {
                let how = match (&change.before, &change.after) {
                    (None, _) => "made",
                    (_, None) => "removed",
                    _ => "changed",
                };
                text += &format!("  {how:8} {}\n", change.path);
            }
        }
    }
    if !real.is_empty() && !dry_run {
        text = format!("{did} {} in {place_text}\n{text}", name(agent));
    }
    let answer = || {
        let changes = real.iter().map(|change| AgentFileChanged {
            path: change.path,
            before: change.before.as_ref().map(|file| file.text.clone()),
            after: change.after.clone(),
        });
        let (place, place_bytes) = answer::path(&place.root);
        let (agent, changes) = (agent.as_str(), changes.collect());
        AgentChanged { agent, dry_run, changes, place, place_bytes }
    };
    context.done(answer).with_text(text)
}

/// As people call it.
fn name(agent: Agent) -> String {
    match agent.harness() {
        Some(harness) => format!("the hooks of {}", harness.title()),
        None => "the instructions of AGENTS.md".to_owned(),
    }
}

/// The variable by which the agent of this environment has its settings elsewhere.
fn elsewhere(context: &Context<'_>, agent: Agent) -> Option<&'static str> {
    let variable = place::variable(agent)?;
    context.variable(variable).map(|_| variable)
}

/// What the hooks are to be, and whether this very program is the one that is found under
/// its name.
fn wanted(context: &Context<'_>, ways: &HookWays, user: bool) -> (WantedHooks, bool) {
    let HookWays { auto, checkpoint, on_error } = *ways;
    let mut options = String::new();
    for (is, option) in [
        (auto, " --auto"),
        (checkpoint, " --checkpoint"),
        (on_error == OnError::Allow, " --on-error=allow"),
    ] {
        options += if is { option } else { "" };
    }
    let me = std::env::current_exe().ok();
    let same = |path: std::path::PathBuf| {
        let (here, there) = (stat("/proc/self/exe").ok()?, stat(&path).ok()?);
        Some((here.st_dev, here.st_ino) == (there.st_dev, there.st_ino))
    };
    let path = context.env().get("PATH").unwrap_or_default();
    let first = std::env::split_paths(&path).map(|dir| dir.join("jvs")).find(|it| stat(it).is_ok());
    let found = first.and_then(same) == Some(true);
    let program = match me.filter(|_| !found) {
        Some(me) => quoted(&me.display().to_string()),
        None => "jvs".to_owned(),
    };
    let fail_closed = on_error == OnError::Deny;
    (WantedHooks { program, options, checkpoint, fail_closed, local: !user }, found)
}
