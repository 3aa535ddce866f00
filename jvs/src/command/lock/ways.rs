//! How a live lock of another session can be ended: by which command, by whom, and at
//! what price. Nobody has to wait for a day because an agent has crashed.

use jvs_lock::holder::Kinship;
use jvs_lock::kept::With;
use jvs_lock::record::Record;
use jvs_lock::view::{StatusWord, View};
use jvs_repo::config::Config;
use jvs_repo::name::ShownName;

use crate::answer::lock::Way;
use crate::context::Context;
use crate::fail::on_one_line;
use crate::keeper;
use crate::render::fact;

/// What it costs a holder to be overruled.
const FENCED: &str = "the holder can publish nothing more";

/// All that there are, the gentlest first; none of a lock that is not another's.
/// `unneeded`: nothing of its holder is left that needs it.
pub(super) fn out(context: &Context<'_>, view: &View, config: &Config, unneeded: bool) -> Vec<Way> {
    let Some(record) = view.record().filter(|_| view.word() == StatusWord::Held && !view.mine)
    else {
        return Vec::new();
    };
    let worktree = &view.worktree;
    let (user, host) = (&record.metadata.user_identity, &record.metadata.hostname);
    let runs = record.kept.as_ref().is_some_and(|kept| kept.with == Some(With::Command));
    let mut ways = vec![
        Way {
            command: format!("jvs lock acquire --wait -w {worktree}"),
            by: "anybody".to_owned(),
            cost: format!("you wait: {}", view.holder().until()),
        },
        Way {
            command: release(context, view, record, runs),
            by: format!("{user} on {host}, whose session it is"),
            cost: match runs {
                true => "ends the command that runs under it".to_owned(),
                false => "it is released, and its session is not told".to_owned(),
            },
        },
    ];
    if let Some(keeper) = record.keeper.as_ref().filter(|_| !runs)
        && keeper::running(keeper) != Some(false)
    {
        ways.push(Way {
            command: format!("kill {}", keeper.pid),
            by: match user.as_str() {
                "root" => format!("root, on {host}"),
                user => format!("{user} or root, on {host}"),
            },
            cost: "its keeper releases it; its session is told".to_owned(),
        });
    }
    ways.push(reclaim(view, config, user, unneeded && config.reclaim.holder_dead));
    let allow = allow_emergency(config);
    ways.push(Way {
        command: format!("{allow}jvs lock freeze --force --for 1m --reason TEXT -w {worktree}"),
        by: who_may_force(config),
        cost: format!("{FENCED}; then: jvs lock unfreeze -w {worktree}"),
    });
    ways
}

/// What has to be allowed before an emergency is a reason.
fn allow_emergency(config: &Config) -> &'static str {
    match config.reclaim.emergency_override || config.reclaim.admins.are_named() {
        true => "",
        false => "jvs config set reclaim.emergency_override true; ",
    }
}

fn who_may_force(config: &Config) -> String {
    match config.reclaim.admins.are_named() {
        true => format!("those named in policy.admins ({})", config.reclaim.admins),
        false => "anybody who may write to the repository".to_owned(),
    }
}

/// The release, said for the session that holds.
fn release(context: &Context<'_>, view: &View, record: &Record, runs: bool) -> String {
    let mine = context.onlooker().and_then(|me| me.place.private_dir);
    let theirs = record.place.private_dir.as_deref().filter(|dir| Some(*dir) != mine.as_deref());
    let base = theirs.and_then(|dir| dir.strip_suffix("/jvs"));
    // The session's secret is where its own commands look for it.
    let where_it_is = base
        .map(|base| format!("XDG_RUNTIME_DIR={} ", ShownName::new(base).typed()))
        .unwrap_or_default();
    let force = if runs { "--force " } else { "" };
    // What the record says, anybody may have written.
    let (worktree, id) = (&view.worktree, ShownName::new(&record.session_id).typed());
    format!("{where_it_is}jvs lock release {force}-w {worktree} --session {id}")
}

/// The reclaim, with what has to be allowed first.
fn reclaim(view: &View, config: &Config, user: &str, dead: bool) -> Way {
    let worktree = &view.worktree;
    let me = view.seen_by.as_deref();
    let same_user = me.zip(view.record()).and_then(|(me, it)| me.is_user_of(it)) == Some(true);
    if dead {
        return Way {
            command: format!("jvs lock reclaim --reason TEXT -w {worktree}"),
            by: "anybody on its host".to_owned(),
            cost: "nothing: its holder is dead".to_owned(),
        };
    }
    let (allow, emergency, by) = match same_user && view.holder().kinship() != Kinship::Oneself {
        true => {
            let allow = match config.reclaim.same_user {
                true => "",
                false => "jvs config set reclaim.same_user true; ",
            };
            (allow, "", format!("{user}, on any host"))
        }
        false => (allow_emergency(config), "--emergency ", who_may_force(config)),
    };
    Way {
        command: format!("{allow}jvs lock reclaim {emergency}--reason TEXT -w {worktree}"),
        by,
        cost: FENCED.to_owned(),
    }
}

/// As people read it.
pub(super) fn text(ways: &[Way]) -> String {
    if ways.is_empty() {
        return String::new();
    }
    let mut text = "To get it, from the gentlest way to the roughest:\n".to_owned();
    for Way { command, by, cost } in ways {
        text += &format!("  {}\n", on_one_line(command));
        text += &fact(None, "    by     ", by);
        text += &fact(None, "    costs  ", cost);
    }
    text
}
