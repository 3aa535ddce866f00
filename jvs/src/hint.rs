//! What to do next, spelled as what to type: the one place where a hint of a library
//! becomes a command line.

#[rustfmt::skip]
pub(crate) mod foreign;
mod own;

use std::path::Path;

use jvs_doctor::{Finding, Tense};
use jvs_lock::span::Span;
use jvs_repo::layout;
use jvs_repo::name::ShownName;
use jvs_repo::next::Next;

pub(crate) use self::own::OwnNext;
use crate::render::shown;

/// The sentence that tells a person what to do.
pub(crate) fn spell(next: &Next) -> String {
    let at = |path: &Path| ShownName::new(path).typed();
    match next {
        Next::Words(words) => words.clone().into_owned(),
        Next::Either(one, other) => format!("{}; or {}", spell(one), spell(other)),

        Next::FreeSpace(new) => {
            let how = match new {
                Some(path) => format!("df -h {0}; df -i {0}", at(path)),
                None => "`jvs gc --dry-run` shows what can be removed".to_owned(),
            };
            format!("free some space on this volume, or have the quota raised: {how}")
        }
        Next::SeeWhose => "see who you are and whose it is: id; ls -ld PATH".into(),
        Next::CheckMount => {
            "check the mount and its permissions, then run the same command again".into()
        }
        Next::ReadHelp => "see: jvs --help".into(),
        Next::ReadHelpOfLocks => "see: jvs lock --help".into(),
        Next::ReportBug => "please report this, with the output of: jvs audit --json".into(),

        Next::Init(root) => format!("create one with `jvs init {}`", at(root)),
        Next::InitOrName => {
            "create one with `jvs init PATH`, or name one with `--repo PATH`".into()
        }
        Next::NameRepository(root) => {
            let root = shown(root);
            format!(
                "to use it once: jvs --repo {root} …; always: list it in \
                 ~/.config/jvs/config.toml: safe.repository = [\"{root}\"]"
            )
        }
        Next::InitElsewhere(what) => format!("choose another {what}: jvs init PATH"),
        Next::Adopt(root) => format!(
            "to make its content worktree main, without copying: jvs init --adopt {}",
            at(root)
        ),
        Next::AdoptWithGit(root) => format!(
            "to make its content worktree main, `.git` with it, so that git works in {} from then \
             on: jvs init --adopt {}",
            shown(&root.join("main")),
            at(root)
        ),
        Next::FinishInit(root) => {
            format!("to continue it: jvs init --adopt {}", at(root))
        }
        Next::AwaitInit(root) => {
            format!("wait for it, then: jvs worktree list --repo {}", at(root))
        }
        Next::SeeRepository(root) => {
            format!("see what is in it: jvs worktree list --repo {}", at(root))
        }
        Next::CreateWorktreeOf(root) => format!(
            "create a worktree of that repository: jvs worktree create NAME --repo {}",
            at(root)
        ),
        Next::UseVersionFor(format) => format!(
            "use a version of jvs that reads format {format}; `jvs --version` shows this one"
        ),
        Next::ChooseValidName(most) => format!(
            "use letters, digits, '.', '_' and '-', at most {most} of them; see which there are: \
             jvs worktree list, jvs tag --list"
        ),
        Next::FixKey(line, Some(near)) => {
            format!("did you mean {near}? edit line {line} of {}", layout::config())
        }
        Next::FixKey(line, None) => format!(
            "delete line {line} of {}; then `jvs config list` shows the keys there are",
            layout::config()
        ),
        Next::ListKeys(Some(near)) => {
            format!("did you mean {near}? `jvs config list` shows all keys")
        }
        Next::ListKeys(None) => "`jvs config list` shows all keys".into(),
        Next::RestoreDefault(key, default) => {
            format!("`jvs config set {key} {default}` restores the default")
        }
        Next::ChooseValue(key) => {
            format!("choose another value with `jvs config set {key} VALUE`")
        }
        Next::VerifyAudit => {
            "keep a copy of the audit directory, then see what is wrong with it: jvs audit --verify"
                .into()
        }
        Next::VerifyAuditInFull => "jvs audit --verify --json".into(),

        Next::AskDoctor => "see what is wrong: jvs doctor --strict".into(),
        Next::AskDoctorWhatIsMissing => {
            "`jvs doctor --strict` shows what is missing and how to repair it".into()
        }
        Next::AskDoctorAbout(path) => {
            format!("nothing was changed; `jvs doctor --strict` shows what {path} should be")
        }
        Next::AskDoctorForMore => "`jvs doctor --strict` shows details".into(),
        Next::ReplaceSymlink(path) => format!(
            "put a real directory or file in place of the symlink at or above {path}, then run \
             `jvs doctor --strict`"
        ),
        Next::RemoveSymlink => {
            "a symlink is where a control directory should be; remove it, then run: \
             jvs doctor --strict"
                .into()
        }
        Next::HaveOwnerAskDoctor => {
            "have its owner or root run `jvs doctor --strict`, or give you access".into()
        }
        Next::CheckMountAndAskDoctor => {
            "check the mount and the permissions, then run `jvs doctor --strict` again".into()
        }
        Next::ProbeFilesystem => {
            "the metadata engine lost a write or a cache is stale; run: jvs doctor --probe".into()
        }
        Next::StopWritersAndRepair => {
            "stop all writers of this worktree, then run: jvs doctor --strict --repair".into()
        }
        Next::RepairRegisterFirst => {
            "repair its register first: jvs doctor --strict --repair".into()
        }
        Next::MoveAwayAndRepair => "move it away, then run: jvs doctor --strict --repair".into(),
        Next::RepairInterrupted => {
            "if that was interrupted, let doctor finish it: jvs doctor --strict --repair".into()
        }
        Next::RepairOnceMounted => {
            "once the mount answers again, run: jvs doctor --strict --repair".into()
        }
        Next::ChooseHead(heads) => {
            let named =
                heads.iter().map(|head| head.map_or("none".to_owned(), |head| head.to_string()));
            format!(
                "the evidence does not show which of {} is the head; stop all writers, choose one \
                 and run `jvs doctor --strict --repair --head ID`",
                named.collect::<Vec<_>>().join(" and ")
            )
        }
        Next::RestoreOrChooseHead(worktree) => format!(
            "restore that directory from a backup; if there is none, give up what it contained: \
             `jvs doctor --repair -w {worktree} --head ID`, with an existing snapshot of that \
             worktree, or with `none`"
        ),

        Next::ListWorktrees | Next::FindWorktree(_) => {
            "see which there are: jvs worktree list".into()
        }
        Next::ChooseUnusedName => {
            "choose another name; see which there are: jvs worktree list".into()
        }
        Next::CreateWorktree => "create another one: jvs worktree create NAME".into(),
        Next::CreateWorktreeAgain(worktree) => format!(
            "if nobody is creating it: move its files away if it has any, then \
             `jvs worktree create {worktree}`"
        ),
        Next::SeeWhetherToRemove => {
            "see who has it now, and decide whether to remove it anyway: jvs worktree list".into()
        }
        Next::RemoveWithFiles(worktree) => {
            format!("to delete them for good: jvs worktree remove {worktree} --force")
        }
        Next::FinishRename(from, to) => {
            format!("if that was interrupted, finish it: jvs worktree rename {from} {to}")
        }
        Next::RestoreLostFiles(path, worktree, head) => format!(
            "if the files are not elsewhere: mkdir {path}, then \
             `jvs restore {head} --in-place -w {worktree} --reason TEXT`"
        ),

        Next::Acquire(worktree) => format!("to take it: jvs lock acquire -w {worktree}"),
        Next::AcquireLater(worktree) => {
            format!("wait, then take it: jvs lock acquire -w {worktree}")
        }
        Next::AcquireAgain(worktree) => format!(
            "stop writing, then take it again if it is still free: jvs lock acquire -w {worktree}"
        ),
        Next::AcquireBack(worktree) => {
            format!("to have the lock again: jvs lock acquire -w {worktree}")
        }
        Next::LookAndAcquire(worktree) => format!(
            "see what changed (jvs diff -w {worktree}, jvs history -w {worktree}), then \
             acknowledge it: jvs lock acquire -w {worktree}"
        ),
        Next::GoOnAsHolder => {
            "its session can continue with `jvs lock acquire`; others wait until the lease ends"
                .into()
        }
        Next::StandInLine(worktree) => {
            format!("wait in line: jvs lock acquire --wait -w {worktree}")
        }
        Next::WaitOrWhy(worktree) => format!(
            "wait in line for it: jvs lock acquire --wait -w {worktree}, or see who holds it and \
             why: jvs lock why -w {worktree}"
        ),
        Next::WaitLongerOrWhy(worktree) => format!(
            "wait longer (--wait=1h), or see who holds it and why: jvs lock why -w {worktree}"
        ),
        Next::TryLaterOrWhy(ms, worktree) => format!(
            "run this again in {} to take it over, or see: jvs lock why -w {worktree}",
            Span(*ms)
        ),
        Next::Watch(ms) => {
            format!(
                "run this again without --no-watch, or in {}: it is watched until then",
                Span(*ms)
            )
        }
        Next::HaveSessionWait(session, worktree) => format!(
            "have it wait first: JVS_SESSION_ID={session} jvs lock acquire --wait -w {worktree}"
        ),
        Next::Why(worktree) => format!("see who has it and why: jvs lock why -w {worktree}"),
        Next::StopWriting(worktree) => {
            format!("stop writing to the worktree; see who has it: jvs lock why -w {worktree}")
        }
        Next::Status(worktree) => format!("see its status: jvs lock status -w {worktree}"),
        Next::CheckDiskThenStatus(worktree) => format!(
            "check the disk and the mount, then see its status: jvs lock status -w {worktree}"
        ),
        Next::StatusOnceMounted(worktree) => format!(
            "nothing was undone; once the mount answers again run: jvs lock status -w {worktree}"
        ),
        Next::AwaitThawOrWhy(worktree) => {
            format!("wait until the freeze ends, or see: jvs lock why -w {worktree}")
        }
        Next::SteerClockOrUnfreeze(worktree) => format!(
            "have chrony or another service synchronise the clock; or, if the freeze is over: \
             jvs lock unfreeze -w {worktree} --reason TEXT"
        ),
        Next::SetClocksOrObserve(worktree) => format!(
            "set the clocks right (timedatectl, chronyc tracking), or prove the holder idle \
             without them: jvs lock steal -w {worktree} --observe --reason TEXT"
        ),
        Next::AwaitOtherTool(worktree, file) => format!(
            "wait until it ends: jvs lock acquire --wait -w {worktree}; if that tool is gone for \
             good, in the repository's root: rm {file}"
        ),
        Next::TakeBoth(own, other) => format!(
            "release what the others wait for: jvs lock release -w {own}; then take both at \
             once: jvs lock acquire --wait -w {own} -w {other}"
        ),
        Next::RunWithBoth(own, other) => format!(
            "end the command that this one runs under; then run it with both at once: jvs run \
             --wait -w {own} -w {other} -- COMMAND"
        ),
        Next::ReleaseElsewhere(worktree, session) => {
            // As a record has it, which anybody may have written.
            let session = ShownName::new(session).typed();
            format!(
                "release it there, or from here: jvs lock release -w {worktree} --session \
                 {session}; or continue here as that session: export JVS_SESSION_ID={session}"
            )
        }
        Next::ReleaseByForce(worktree) => format!(
            "wait for them, or end them and release it: jvs lock release --force -w {worktree}"
        ),
        Next::AllowReclaim => "turn a rule on: jvs config set KEY true".into(),
        Next::AskAdmin => "see who may, and ask them: jvs config get policy.admins".into(),
        Next::Join => "run within it: jvs run --join".into(),
        Next::JoinOrWait => "run beside it: jvs run --join, or after it: jvs run --wait".into(),

        Next::ListSnapshots => "see which there are: jvs history --all".into(),
        Next::TakeFirstSnapshot => "take the first one: jvs snapshot NOTE".into(),
        Next::ListFilesOf(id) => {
            format!("see what it has: jvs ls {id}")
        }
        Next::SeeSnapshotOnceMounted(id) => {
            format!("once the mount answers again, see whether it is there: jvs info {id}")
        }
        Next::VerifyAll => "nothing was changed; see what exactly differs: jvs verify --all".into(),
        Next::ListTags => "see which there are: jvs tag --list".into(),
        Next::DeleteTag(tag) => {
            format!("tags do not move; to use the name again: jvs tag --delete {tag}")
        }
        Next::TagAgain(id, tag) => format!("tag it again: jvs tag {id} {tag}"),
        Next::TakeNewerSnapshot => {
            "a worktree keeps what it goes back to; take a newer one first: jvs snapshot NOTE"
                .into()
        }
        Next::ForgetTagged(id) => format!("to delete its tags, too: jvs forget {id} --force"),
        Next::TrustClock => "if `date` is right on this host: jvs gc --trust-clock".into(),
        Next::TakeUnquiet => "take what is there: jvs snapshot --consistency best_effort".into(),
        Next::StopWritersOrTakeTorn => {
            "stop the writers, or take a snapshot that may be inconsistent with --consistency \
             best_effort"
                .into()
        }
        Next::CloseWritersOrTakeUnquiet => {
            "close the programs that write there and try again, or take what is there: jvs \
             snapshot --consistency best_effort"
                .into()
        }
        Next::ChooseEngine => {
            "let JVS choose: leave --engine out; if it is the repository's setting: jvs config set \
             snapshot.engine auto"
                .into()
        }
        Next::InstallClonerOrCopy => {
            "put the juicefs program that made this mount on the search path, or copy instead: \
             jvs config set snapshot.engine copy"
                .into()
        }
        Next::CompareWithOldFiles(old) => format!(
            "see what is there now: jvs diff; compare it with {old}, and remove that once nothing \
             in it is needed"
        ),
    }
}

/// What to do about a finding, by doctor or by hand.
pub(crate) fn spell_remedy(finding: &Finding) -> String {
    match (&finding.remedy, &finding.advice) {
        (Some(remedy), _) => {
            let repair = if remedy.is_cleanup() { "" } else { " --repair" };
            format!("`jvs doctor --strict{repair}` {}", remedy.sentence(Tense::Does))
        }
        (None, Some(advice)) => spell(advice),
        (None, None) => "nothing needs to be done".to_owned(),
    }
}

#[cfg(test)]
mod tests;
