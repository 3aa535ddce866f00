//! Snapshots that are taken, named, collected and forgotten; repairs and settings.

use std::fmt;

use jvs_lock::{Hold, Lease, Want};
use jvs_repo::code::{Code, Coded};
use jvs_repo::config::{self, Config};
use jvs_repo::id::SnapshotId;
use jvs_repo::layout;
use jvs_repo::name::TagName;
use jvs_repo::store::Store as _;
use jvs_snapshot::staging_name::StagingName;
use jvs_snapshot::{Catalog, Ready, SnapshotError, Snapshots, gc, tags};
use jvs_world::any_error::AnyError;
use jvs_world::repository::{main, names};
use jvs_world::sim::actors::keep;
use jvs_world::sim::ward::{OP, Ward, told};
use jvs_world::sim::{LEASE_MS, LONG_MS, SimTrees, payload_file, snapshot, stage};

use super::locking::locks;
use super::{Row, Told};
use crate::standing::{Standing, exists};

/// What the command tells besides: it did what it could, and something is left.
#[derive(Debug)]
struct Remains(String);

impl fmt::Display for Remains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "something remains: {}", self.0)
    }
}

impl std::error::Error for Remains {}

impl Coded for Remains {
    fn code(&self) -> Code {
        Code::OutcomeUnknown
    }
}

fn tag(name: &str) -> TagName {
    name.parse().expect("valid")
}

/// The visible snapshots, oldest first.
fn visible(ward: &Ward<'_>) -> Result<Vec<SnapshotId>, SnapshotError> {
    let catalog = Catalog::new(ward.store());
    let mut ids = Vec::new();
    for id in catalog.list()?.snapshots {
        let looked = catalog.is_ready(id);
        if looked.map_err(|source| SnapshotError::Io { doing: "look".into(), source })? {
            ids.push(id);
        }
    }
    ids.sort_unstable();
    Ok(ids)
}

pub(super) fn ready(ward: &Ward<'_>, id: SnapshotId) -> Result<Ready, SnapshotError> {
    Catalog::new(ward.store()).open(id)
}

fn published(ward: &Ward<'_>, who: &str, lease: &mut Lease<'_>) -> Told {
    let trees = SimTrees(ward.store());
    let at = Snapshots::new(ward.seams(), &trees);
    let staged = stage(ward.seams(), &at, lease, who)?;
    match staged.publish(lease.fence()?) {
        Ok(_) => Ok(()),
        Err(error) => {
            let (staged, error) = error.hand_back();
            if let Some(staged) = staged {
                let _ = staged.discard();
            }
            Err(error.into())
        }
    }
}

/// Under a lock that the command takes for itself.
fn taken(ward: &Ward<'_>, who: &str) -> Told {
    let mut lease = locks(ward, who).acquire(&main(), Want::lease(LEASE_MS))?;
    let told = published(ward, who, &mut lease);
    let released = lease.release();
    told?;
    // What was published is; of the rest doctor is told.
    drop(released);
    Ok(())
}

fn is_head(ward: &Ward<'_>, who: &str, before: &Standing) -> bool {
    let head = ward.state().head;
    let Some(head) = head.filter(|head| before.state.head != Some(*head)) else { return false };
    let file = payload_file(&layout::snapshot(head));
    let text = ward.store().read(&file, 100).ok();
    visible(ward).is_ok_and(|ids| ids.contains(&head)) && text.as_deref() == Some(who.as_bytes())
}

const SNAPSHOT: Row = Row::new("snapshot", taken, is_head);

/// What `jvs run --snapshot` does around its command: takes, renews, publishes, gives back.
fn ran(ward: &Ward<'_>, who: &str) -> Told {
    let mut lease = locks(ward, who).acquire(&main(), Want::lease(LEASE_MS))?;
    let told = lease.renew().map_err(AnyError::from);
    let told = told.and_then(|()| published(ward, who, &mut lease));
    let released = lease.release();
    told?;
    released.map(drop).map_err(|failed| failed.error.into())
}

const RUN: Row = Row { with: " --snapshot", in_steps: true, ..Row::new("run", ran, is_head) };

/// What `jvs shell` does around its shell.
fn visited(ward: &Ward<'_>, who: &str) -> Told {
    let mut lease = locks(ward, who).acquire(&main(), Want::lease(LEASE_MS))?;
    let told = lease.renew();
    let released = lease.release();
    told?;
    released.map(drop).map_err(|failed| failed.error.into())
}

const SHELL: Row = Row {
    in_steps: true,
    ..Row::new("shell", visited, |ward, _, before| {
        ward.state().hold == Hold::Free && ward.state().token > before.state.token
    })
};

pub(crate) const TAG: Row = Row {
    refusals: &[Code::Exists],
    ..Row::new(
        "tag",
        |ward, who| {
            tags::make(&locks(ward, who), &tag("v2"), &ready(ward, ward.ids[1])?)?;
            Ok(())
        },
        |ward, _, _| tagged(ward, "v2") == Some(ward.ids[1]),
    )
};

fn tagged(ward: &Ward<'_>, name: &str) -> Option<SnapshotId> {
    tags::read(ward.store(), &tag(name)).ok().flatten().map(|tag| tag.snapshot_id)
}

fn with_tag(ward: &Ward<'_>) {
    tags::make(&locks(ward, "maker"), &tag("v2"), &ready(ward, ward.ids[1]).expect("there"))
        .expect("tagged");
}

pub(crate) const UNTAG: Row = Row {
    with: " --delete",
    prepare: with_tag,
    ..Row::new(
        "tag",
        |ward, who| {
            tags::take_away(&locks(ward, who), &tag("v2"))?;
            Ok(())
        },
        |ward, _, _| tagged(ward, "v2").is_none(),
    )
};

/// Three more, of which the first has a tag.
fn with_three_more(ward: &Ward<'_>) {
    let mut lease = locks(ward, "maker").acquire(&main(), Want::lease(LEASE_MS)).expect("free");
    for text in ["three", "four", "five"] {
        let ready = snapshot(&ward.solo, &mut lease, text);
        if text == "three" {
            tags::make(&locks(ward, "maker"), &tag("v3"), &ready).expect("tagged");
        }
    }
    lease.release().expect("released");
    ward.solo.pass_ms(1_000);
}

fn collected(ward: &Ward<'_>, who: &str) -> Told {
    let trees = SimTrees(ward.store());
    let at = Snapshots::new(ward.seams(), &trees);
    let plan = gc::plan(&at, keep(1, 0))?;
    let freed = gc::run(&at, &locks(ward, who), &plan, &mut |_, _| {})?;
    match freed.left.is_empty() {
        true => Ok(()),
        false => Err(Remains(format!("{:?}", freed.left)).into()),
    }
}

const COLLECT: Row = Row {
    prepare: |ward| {
        with_tag(ward);
        with_three_more(ward);
        dead_work(ward);
    },
    // What comes back with the power is collected by the next.
    is_durable: false,
    in_steps: true,
    ..Row::new("gc", collected, |ward, _, _| {
        // Two that have a tag, one that has one of the three, and the head.
        visible(ward).is_ok_and(|ids| ids.len() == 4)
            && names(ward.store(), &layout::staging()).is_empty()
    })
};

/// The first of the three: it has a tag, and goes with it.
fn to_be_forgotten(ward: &Ward<'_>) -> Result<Option<SnapshotId>, SnapshotError> {
    let is_it = |id: &SnapshotId| {
        let file = payload_file(&layout::snapshot(*id));
        ward.store().read(&file, 100).is_ok_and(|text| text == b"three")
    };
    Ok(visible(ward)?.into_iter().find(is_it))
}

fn forgotten(ward: &Ward<'_>, who: &str) -> Told {
    let Some(id) = to_be_forgotten(ward)? else {
        return Err(SnapshotError::NotFound { wanted: "three".into() }.into());
    };
    let trees = SimTrees(ward.store());
    let at = Snapshots::new(ward.seams(), &trees);
    gc::forget(&at, &locks(ward, who), &ready(ward, id)?, true, Some("a test"), false)?;
    Ok(())
}

const FORGET: Row = Row {
    with: " --force",
    prepare: with_three_more,
    in_steps: true,
    refusals: &[Code::NotFound],
    ..Row::new("forget", forgotten, |ward, _, _| {
        matches!(to_be_forgotten(ward), Ok(None)) && tagged(ward, "v3").is_none()
    })
};

/// A draft and a hidden snapshot of a session whose lock was taken and used, and a lock
/// that was abandoned.
fn dead_work(ward: &Ward<'_>) {
    let trees = SimTrees(ward.store());
    let at = Snapshots::new(ward.seams(), &trees);
    let mut lease = locks(ward, "gone").acquire(&main(), Want::lease(LEASE_MS)).expect("free");
    ward.solo.pass_ms(1);
    std::mem::forget(at.begin(&lease.fence().expect("live")).expect("begun"));
    std::mem::forget(stage(ward.seams(), &at, &mut lease, "never").expect("staged"));
    drop(lease);
    ward.solo.pass_ms(LONG_MS);
    let next = locks(ward, "next").acquire(&main(), Want::lease(LEASE_MS)).expect("stolen");
    next.release().expect("released");
}

/// With a tag's draft, a collection that was never finished and an abandoned lock.
fn ruined(ward: &Ward<'_>) {
    dead_work(ward);
    ward.write(&layout::tag_tmp(&tag("v1"), OP), b"");
    ward.store().make_dir(&StagingName::Doomed { op: OP }.path()).expect("made");
    drop(locks(ward, "gone").acquire(&main(), Want::lease(LEASE_MS)).expect("free"));
    ward.solo.pass_ms(LONG_MS);
}

/// Other damage is in `tests/protocol/tests/doctor`.
const REPAIR: Row = Row {
    with: " --strict --repair",
    prepare: ruined,
    // What comes back with the power is found by the next.
    is_durable: false,
    in_steps: true,
    ..Row::new(
        "doctor",
        |ward, who| {
            let treated = ward.repair(who);
            match treated.is_healthy() {
                true => Ok(()),
                false => Err(Remains(format!("{:?}", told(&treated))).into()),
            }
        },
        |ward, _, _| {
            ward.state().hold == Hold::Free
                && !exists(ward, &layout::tag_tmp(&tag("v1"), OP))
                && names(ward.store(), &layout::staging()).is_empty()
        },
    )
};

pub(crate) const CONFIGURE: Row = Row::new(
    "config set",
    |ward, _| {
        config::change(ward.store(), "retention.keep_last", "7", ward.solo.entropy())?;
        Ok(())
    },
    |ward, _, _| Config::read(ward.store()).is_ok_and(|config| config.retention.keep_last == 7),
);

/// What is published, and what is said of it.
pub(crate) const ROWS: &[Row] = &[SNAPSHOT, RUN, SHELL, TAG, UNTAG];
/// What is removed, repaired and decided.
pub(crate) const CARE: &[Row] = &[COLLECT, FORGET, REPAIR, CONFIGURE];
