//! The commands of the command line, and what a death can do to each: the list by which
//! the crash matrices know that none is missing. A test compares it with the command.

/// What a command does to a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Changes it, through the seams that are simulated: dead at each call in both
    /// matrices.
    Changes,
    /// Changes files that are not behind the simulated seams: dead at each call in real
    /// processes only.
    ChangesOutside,
    /// Looks: whatever it was doing when it died, the repository is as it was.
    Looks,
    /// Does in one go what other commands do: it has no step of its own, and theirs are
    /// dead at each call.
    DoesOthers,
    /// Changes no repository, or only one of its own that it makes for a moment.
    Elsewhere,
}

/// Every command, by the name that its JSON has.
pub const COMMANDS: &[(&str, Effect)] = &[
    ("init", Effect::ChangesOutside),
    ("worktree create", Effect::Changes),
    ("worktree list", Effect::Looks),
    ("worktree path", Effect::Looks),
    ("worktree rename", Effect::Changes),
    ("worktree remove", Effect::Changes),
    ("lock acquire", Effect::Changes),
    ("lock renew", Effect::Changes),
    ("lock release", Effect::Changes),
    ("lock status", Effect::Looks),
    ("lock list", Effect::Looks),
    ("lock why", Effect::Looks),
    ("lock watch", Effect::Looks),
    ("lock steal", Effect::Changes),
    ("lock reclaim", Effect::Changes),
    ("lock transfer", Effect::Changes),
    ("lock freeze", Effect::Changes),
    ("lock unfreeze", Effect::Changes),
    ("run", Effect::Changes),
    ("shell", Effect::Changes),
    ("session show", Effect::Looks),
    ("session list", Effect::Looks),
    ("session forget", Effect::ChangesOutside),
    ("snapshot", Effect::Changes),
    ("status", Effect::Looks),
    ("history", Effect::Looks),
    ("info", Effect::Looks),
    ("show", Effect::Looks),
    ("ls", Effect::Looks),
    ("cat", Effect::Looks),
    ("path", Effect::Looks),
    ("tag", Effect::Changes),
    ("diff", Effect::Looks),
    ("restore", Effect::Changes),
    ("verify", Effect::Looks),
    ("gc", Effect::Changes),
    ("forget", Effect::Changes),
    ("doctor", Effect::Changes),
    ("audit", Effect::Looks),
    ("events", Effect::Looks),
    ("config list", Effect::Looks),
    ("config get", Effect::Looks),
    ("config set", Effect::Changes),
    ("undo", Effect::DoesOthers),
    ("redo", Effect::DoesOthers),
    ("hook", Effect::DoesOthers),
    ("agent install", Effect::Elsewhere),
    ("agent status", Effect::Elsewhere),
    ("agent uninstall", Effect::Elsewhere),
    ("completions", Effect::Elsewhere),
    ("schema", Effect::Elsewhere),
    ("man", Effect::Elsewhere),
    ("demo", Effect::Elsewhere),
];

/// The commands of which `effect` is true.
pub fn of(effect: Effect) -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().filter(move |(_, its)| *its == effect).map(|(name, _)| *name)
}
