//! Captures a worktree into a staging directory: `payload` and `manifest`, proven
//! quiet, compared with the original, on the disk.
//!
//! ```text
//! walk → write out → plan → clone (→ hash) (→ prove quiet) → manifest → sync
//! ```
//!
//! That nobody wrote is proven by a second look at the original, unless the engine
//! says that its copy is that look.
//!
//! **Responsibility.** The order of these steps, the one retry, and that a failure
//! leaves nothing behind.
//!
//! **Must not know.** Leases, ids, descriptors, and how the result is published.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use jvs_repo::clock::{BootId, Clock};
use jvs_repo::config::{Consistency, Engine as Policy};

pub use crate::capture_error::CaptureError;
use crate::chosen::Chosen;
use crate::engine::{self, Built, EngineName, PAYLOAD, Work};
use crate::fidelity::{self, Degraded};
use crate::ground::Ground;
use crate::hash::Digest;
use crate::manifest::{
    Entry, EntryKind, Hints, ManifestWriter, Summary, Timestamp, Totals, TreePath,
};
use crate::observe::{observe, reread};
use crate::plan::{Facts, Groups, Moment, Plan};
use crate::progress::{Phase, Phases, Progress};
use crate::quiesce::{self, ChangeKind, Changes, Evidence, settled};
use crate::tree::{self, Kind, Stat, Stream};
use crate::walk::{Memory, Tree};
use crate::workers;
use crate::written_out::{Doubt, WriteOut};

/// The file of a snapshot that says what is in its payload.
pub const MANIFEST: &str = "manifest";

/// Captures in a row before a tree that is written to is given up.
const ATTEMPTS: u32 = 2;
/// Threads where each call is a round trip to a server.
const REMOTE_THREADS: usize = 8;
/// Two filesystems of one host read the clock a tick apart, at most.
const OTHER_FILESYSTEM_NS: i64 = 20_000_000;
/// A filesystem that counts whole seconds, or two.
const WHOLE_SECONDS_NS: i64 = 2_000_000_000;
/// How long to wait for the clock to move past the newest change. One that lies
/// in the future is another host's, and not waited for.
const SETTLE_MS: u64 = 2_500;

/// How to capture.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which engine.
    pub engine: Policy,
    /// What a change during the capture means.
    pub consistency: Consistency,
    /// Reads everything, whatever the parent's manifest says.
    pub full: bool,
    /// Only those paths, and the directories above them.
    pub only: Option<Chosen>,
    /// The source is a snapshot's own tree: nobody writes there, so nothing that was
    /// written has to be brought to light.
    pub published: bool,
    /// Instead of as many as there are processors.
    pub threads: Option<usize>,
    /// Instead of `juicefs` on the search path.
    pub juicefs_program: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            engine: Policy::Auto,
            consistency: Consistency::Quiesced,
            full: false,
            only: None,
            published: false,
            threads: None,
            juicefs_program: None,
        }
    }
}

/// The snapshot before this one.
#[derive(Debug, Clone)]
pub struct Parent {
    /// Its directory, with `payload` and `manifest`.
    pub directory: PathBuf,
    /// What its manifest must hash to, by its descriptor.
    pub manifest_hash: Digest,
    /// In which boot its change times were seen, if that is known.
    pub boot_id: Option<BootId>,
}

/// What was captured.
#[derive(Debug, Clone)]
pub struct Captured {
    /// Paths, files and bytes.
    pub totals: Totals,
    /// Over the tree: equal trees, equal hashes.
    pub payload_root_hash: Digest,
    /// Over the manifest.
    pub manifest_hash: Digest,
    /// What made the copy.
    pub engine: EngineName,
    /// What it could not keep.
    pub degraded: Degraded,
    /// How it looked before, that it looked the same after, and when.
    pub evidence: Evidence,
    /// What changed meanwhile, if best effort allowed it: the label's text.
    pub risk: Option<Changes>,
    /// Why something that was written may not be in it, if best effort allowed it.
    pub doubt: Option<String>,
    /// In which boot its change times were seen.
    pub boot_id: BootId,
    /// Files that are as in the parent and were not read.
    pub reused: u64,
    /// Why the parent was of no use, if it was not.
    pub parent_ignored: Option<String>,
    /// Milliseconds a phase, in order; of the last attempt.
    pub phases: Vec<(Phase, u64)>,
}

/// Captures the tree at `source` into `staging`, an existing directory that gets
/// `payload` and `manifest`. When this returns, both are on the disk; on failure
/// neither is there.
pub fn capture(
    source: &Path,
    staging: &Path,
    parent: Option<&Parent>,
    options: &Options,
    clock: &dyn Clock,
    progress: &dyn Progress,
) -> Result<Captured, CaptureError> {
    let source = tree::open_root(source).map_err(CaptureError::whole("open"))?;
    let staging = tree::open_root(staging).map_err(CaptureError::whole("open staging for"))?;
    let capture = Capture::new(source, staging, parent, options, clock, progress);
    let mut attempt = 1;
    loop {
        let outcome = capture.attempt(attempt);
        if outcome.is_err() {
            // The cause is worth more than a failure to clean up after it; what
            // stays is in a staging directory whose name says whose it is.
            let _ = capture.clear();
        }
        match outcome {
            Err(CaptureError::Changed(_)) if attempt < ATTEMPTS => attempt += 1,
            outcome => return outcome,
        }
    }
}

struct Capture<'c> {
    source: OwnedFd,
    staging: OwnedFd,
    parent: Option<&'c Parent>,
    options: &'c Options,
    clock: &'c dyn Clock,
    progress: &'c dyn Progress,
    threads: usize,
    ground: Ground,
    boot_id: BootId,
}

impl<'c> Capture<'c> {
    fn new(
        source: OwnedFd,
        staging: OwnedFd,
        parent: Option<&'c Parent>,
        options: &'c Options,
        clock: &'c dyn Clock,
        progress: &'c dyn Progress,
    ) -> Self {
        let remote = tree::is_remote(&source) || tree::is_remote(&staging);
        let enough = if remote { REMOTE_THREADS } else { 1 };
        let threads = options.threads.unwrap_or_else(|| workers::processors().max(enough));
        let (ground, boot_id) = (Ground::of(&source), clock.boot_id());
        Capture { source, staging, parent, options, clock, progress, threads, ground, boot_id }
    }

    fn attempt(&self, attempt: u32) -> Result<Captured, CaptureError> {
        let progress = self.progress;
        let phases = Phases::new(self.clock, progress);
        phases.begin(Phase::Walk);
        let engine = engine::choose(
            self.options.engine,
            self.options.juicefs_program.as_deref(),
            &self.source,
            &self.staging,
        )?;
        let created = CaptureError::whole("create the manifest of");
        let manifest =
            tree::create_own_file(&self.staging, MANIFEST.as_bytes()).map_err(&created)?;
        let begun = tree::stat_open(&manifest).map_err(&created)?;
        // What another host wrote a moment ago made the first attempt fail; the
        // second must not begin with the same memories.
        let write_out = self.write_out();
        write_out.begin();
        let memory = if attempt == 1 { Memory::WillDo } else { Memory::IsNotAsked };
        let before =
            Tree::read_with(self.threads, &self.source, self.options.only.as_ref(), memory)?;
        let moment = self.settle(&manifest, &before, begun).map_err(&created)?;
        let mut doubt = self.allowed(write_out.force(&before)?)?;

        phases.begin(Phase::Plan);
        let (plan, parent_ignored) = self.plan(&before);
        let groups = Groups::find(&before);
        let parent = self.parent_payload(&parent_ignored);
        let (mut bytes, mut reused) = (0, 0);
        for branch in &before.branches {
            for (number, node) in (branch.first..).zip(&branch.nodes) {
                bytes += node.stat.size;
                reused += u64::from(node.stat.kind == Kind::File && plan.unchanged(number));
            }
        }

        phases.begin(Phase::Clone);
        progress.total(before.nodes as u64, bytes);
        let work = Work {
            threads: self.threads,
            source: &self.source,
            tree: &before,
            plan: &plan,
            groups: &groups,
            staging: &self.staging,
            parent: parent.as_ref(),
            timeless_xattrs: tree::has_timeless_xattrs(&self.source)
                .map_err(CaptureError::whole("read"))?,
            hides_nothing: doubt.is_none(),
            progress,
            phases: &phases,
        };
        let built = engine.build(&work).or_else(|error| self.blame(error, &before))?;
        let mut changes = Changes::default();
        if !built.proves_quiet {
            phases.begin(Phase::Prove);
            doubt = self.allowed(write_out.force_again(&before)?)?.or(doubt);
            changes = quiesce::compare(self.threads, &self.source, &before)?;
            if changes.is_quiet() && !self.ground.notes_stores() {
                let hashes = &built.facts.hashes;
                changes = reread(self.threads, &self.source, &before, hashes, progress)?;
            }
        }
        if let Some(path) = built.facts.surplus.as_ref().filter(|_| changes.is_quiet()) {
            // It came after the first look and went before the second.
            changes.add(path.clone(), ChangeKind::Appeared);
        }
        let evidence = Evidence {
            digest: quiesce::digest(&before),
            entries: before.nodes as u64,
            since: moment.now,
            attempts: attempt,
        };
        let quiet = changes.is_quiet();
        if !quiet && self.options.consistency == Consistency::Quiesced {
            return Err(CaptureError::Changed(changes));
        }
        if quiet {
            whole(&before, &built, engine.name())?;
        }

        phases.begin(Phase::Manifest);
        let Built { facts, degraded, durable, .. } = built;
        let (manifest, summary) = if quiet {
            write(manifest, &before, &facts, &groups, Some(moment))?
        } else {
            // Somebody wrote: only the copy itself can say what is in it.
            let payload = tree::open_directory(&self.staging, PAYLOAD.as_bytes())
                .map_err(CaptureError::whole("open the copy of"))?;
            let (copy, facts) = observe(self.threads, &payload, progress)?;
            write(manifest, &copy, &facts, &Groups::find(&copy), None)?
        };

        phases.begin(Phase::Sync);
        self.sync(&manifest, durable).map_err(CaptureError::whole("sync the copy of"))?;
        Ok(Captured {
            totals: summary.totals,
            payload_root_hash: summary.payload_root_hash,
            manifest_hash: summary.manifest_hash,
            engine: engine.name(),
            degraded,
            evidence,
            risk: (!quiet).then_some(changes),
            doubt,
            boot_id: self.boot_id.clone(),
            reused,
            parent_ignored,
            phases: phases.end(),
        })
    }

    fn write_out(&self) -> WriteOut<'_> {
        let Capture { source, ground, threads, clock, progress, options, .. } = self;
        let (threads, nobody_writes) = (*threads, options.published);
        WriteOut { source, ground, nobody_writes, threads, clock: *clock, progress: *progress }
    }

    /// What is not certain may be captured with a label, and not otherwise.
    fn allowed(&self, doubt: Option<Doubt>) -> Result<Option<Doubt>, CaptureError> {
        match (doubt, self.options.consistency) {
            (Some(why), Consistency::Quiesced) => Err(CaptureError::NotWrittenOut(why)),
            (doubt, _) => Ok(doubt),
        }
    }

    /// JuiceFS gives up a clone whose files change all the time, and says no more
    /// than that it failed; and what is taken away or cut short while it is read fails
    /// in many ways. If files did change, that is what has to be said.
    fn blame<T>(&self, error: CaptureError, before: &Tree) -> Result<T, CaptureError> {
        let (CaptureError::CloneFailed(errno) | CaptureError::Io { source: errno, .. }) = &error
        else {
            return Err(error);
        };
        if fidelity::is_full(errno) {
            return Err(error);
        }
        match quiesce::compare(self.threads, &self.source, before) {
            Ok(changes) if !changes.is_quiet() => Err(CaptureError::Changed(changes)),
            // Nobody wrote, or nobody can tell: the failure itself says most.
            _ => Err(error),
        }
    }

    /// Waits until the filesystem's clock has moved past the newest change, so
    /// that every later one shows: see [`quiesce`].
    fn settle(&self, stamp: &OwnedFd, before: &Tree, begun: Stat) -> std::io::Result<Moment> {
        let one_filesystem = begun.filesystem == before.root.filesystem;
        let margin_ns = match begun.ctime.nanos {
            0 => WHOLE_SECONDS_NS,
            _ if one_filesystem => 0,
            _ => OTHER_FILESYSTEM_NS,
        };
        let newest = before
            .branches
            .iter()
            .flat_map(|branch| &branch.nodes)
            .map(|node| node.stat.ctime)
            .fold(before.root.ctime, Timestamp::max);
        let mut now = begun.ctime;
        let in_future = newest.seconds > now.seconds + 3;
        let mut waited = 0;
        while !settled(newest, now, margin_ns) && !in_future && waited < SETTLE_MS {
            self.clock.sleep_ms(1);
            waited += 1;
            // Growing and shrinking the stamp makes the filesystem read its clock.
            tree::set_size(stamp, 1)?;
            tree::set_size(stamp, 0)?;
            now = tree::stat_open(stamp)?.ctime;
        }
        Ok(Moment { now, margin_ns })
    }

    /// What the parent's manifest saves, or why it saves nothing. A parent that
    /// cannot be used makes a capture slower, not impossible.
    fn plan(&self, before: &Tree) -> (Plan, Option<String>) {
        let Some(parent) = self.parent.filter(|_| !self.options.full) else {
            return (Plan::everything(before), None);
        };
        let believed = self.ground.believes(parent.boot_id.as_ref(), &self.boot_id);
        let made = tree::open_root(&parent.directory)
            .and_then(|dir| tree::open_file(&dir, MANIFEST.as_bytes()))
            .map_err(|error| error.to_string())
            .and_then(|file| {
                Plan::make(before, Stream::new(file), believed).map_err(|error| error.to_string())
            });
        match made {
            Ok((plan, summary)) if summary.manifest_hash == parent.manifest_hash => (plan, None),
            Ok(_) => {
                let why = "its manifest is not the one that its descriptor names".to_owned();
                (Plan::everything(before), Some(why))
            }
            Err(why) => (Plan::everything(before), Some(why)),
        }
    }

    fn parent_payload(&self, ignored: &Option<String>) -> Option<OwnedFd> {
        let parent = self.parent.filter(|_| !self.options.full && ignored.is_none())?;
        let dir = tree::open_root(&parent.directory).ok()?;
        tree::open_directory(&dir, PAYLOAD.as_bytes()).ok()
    }

    /// One `syncfs` instead of an `fsync` of every file and every directory: a hard
    /// link to the parent's file has no `fsync` of its own, its name is on the disk
    /// when its directory is, and one call that covers all cannot forget one. Since
    /// Linux 5.8 it also reports write errors. The price is that other programs'
    /// unwritten data on this filesystem is waited for as well: 1,000 files of 4 KiB
    /// took 0.4 s this way against 0.6 s with an `fsync` each, but up to 2.6 s while
    /// others wrote. A clone inside JuiceFS is durable when it is acknowledged.
    fn sync(&self, manifest: &OwnedFd, durable: bool) -> std::io::Result<()> {
        if !durable {
            tree::sync_filesystem(&self.staging)?;
        }
        tree::sync(manifest)?;
        tree::sync(&self.staging)
    }

    fn clear(&self) -> std::io::Result<()> {
        tree::remove(&self.staging, PAYLOAD.as_bytes())?;
        tree::remove(&self.staging, MANIFEST.as_bytes())
    }
}

/// Nobody wrote, so the copy must have everything but what is noted as lost.
fn whole(before: &Tree, built: &Built, engine: EngineName) -> Result<(), CaptureError> {
    let failed = |why| CaptureError::EngineFailed { engine, why };
    for branch in &before.branches {
        let numbers = branch.first..branch.first + branch.nodes.len();
        for &number in built.facts.missing.range(numbers) {
            let node = &branch.nodes[number - branch.first];
            if matches!(node.stat.kind, Kind::File | Kind::Directory | Kind::Symlink) {
                return Err(failed(format!("{} is not in the copy", branch.child(node))));
            }
        }
    }
    if built.facts.missing.contains(&0) {
        return Err(failed("there is no copy".to_owned()));
    }
    Ok(())
}

/// Writes the manifest of a copy. `moment` is there if the original's looks may
/// be used as hints.
fn write(
    file: OwnedFd,
    tree: &Tree,
    facts: &Facts,
    groups: &Groups,
    moment: Option<Moment>,
) -> Result<(OwnedFd, Summary), CaptureError> {
    let mut writer = ManifestWriter::new(Stream::new(file));
    let mut numbering = Numbering { groups, facts, given: Default::default() };
    let hints = |stat: &Stat, number: usize| {
        // A copy that lost something says nothing about a file that is as it was:
        // the next snapshot would lose it without a word.
        let moment = moment.filter(|_| !facts.truth.contains_key(&number))?;
        settled(stat.ctime, moment.now, moment.margin_ns)
            .then_some(Hints { inode: stat.inode, ctime: stat.ctime })
    };
    let root = entry(TreePath::root(), 0, &tree.root, facts, None)?;
    writer.write(&root, hints(&tree.root, 0))?;
    tree.in_order(|branch, node, number| {
        if facts.missing.contains(&number) {
            return Ok(());
        }
        let group = numbering.of(number);
        let entry = entry(branch.child(node), number, &node.stat, facts, group)?;
        writer.write(&entry, hints(&node.stat, number)).map_err(CaptureError::from)
    })?;
    let (stream, summary) = writer.finish()?;
    Ok((stream.into_inner(), summary))
}

/// Numbers of link groups in order of appearance, of those that still are groups
/// in the copy.
struct Numbering<'f> {
    groups: &'f Groups,
    facts: &'f Facts,
    given: std::collections::HashMap<usize, u64>,
}

impl Numbering<'_> {
    fn of(&mut self, number: usize) -> Option<u64> {
        let there = |number: &usize| {
            !self.facts.missing.contains(number) && !self.facts.parted.contains(number)
        };
        let group = self.groups.of(number)?;
        let together = self.groups.members[group].iter().filter(|member| there(member)).count();
        if together < 2 || !there(&number) {
            return None;
        }
        let next = self.given.len() as u64;
        Some(*self.given.entry(group).or_insert(next))
    }
}

fn entry(
    path: TreePath,
    number: usize,
    original: &Stat,
    facts: &Facts,
    link_group: Option<u64>,
) -> Result<Entry, CaptureError> {
    let stat = facts.truth.get(&number).unwrap_or(original);
    let kind = match stat.kind {
        Kind::Directory => EntryKind::Directory,
        Kind::File => match facts.hashes[number] {
            Some(hash) => EntryKind::File { size: stat.size, hash },
            None => {
                let unread = std::io::Error::other("its content was not read");
                return Err(CaptureError::io(path, "describe", unread));
            }
        },
        Kind::Symlink => {
            EntryKind::Symlink { target: facts.targets.get(&number).cloned().unwrap_or_default() }
        }
        Kind::Fifo => EntryKind::Fifo,
        Kind::Socket => EntryKind::Socket,
        Kind::CharDevice => EntryKind::CharDevice(stat.device),
        Kind::BlockDevice => EntryKind::BlockDevice(stat.device),
    };
    Ok(Entry {
        path,
        kind,
        mode: stat.mode,
        uid: stat.uid,
        gid: stat.gid,
        mtime: stat.mtime,
        link_group,
        xattrs: facts.xattrs.get(&number).cloned().unwrap_or_default(),
    })
}
