use std::ffi::OsString;

use clap::CommandFactory as _;
use jvs_repo::id::{OpNonce, SnapshotId};
use jvs_repo::name::WorktreeName;
use jvs_repo::store::RepoPath;

use super::own::OwnNext;
use super::*;
use crate::args::{self, Args, Words};

/// One of each. The tidy tests see to it that none is left out.
fn all() -> Vec<Next> {
    let name = |name: &str| name.parse::<WorktreeName>().expect("a name");
    let (a, b) = (|| name("a"), || name("b"));
    let root = || std::path::PathBuf::from("/r");
    let path = || RepoPath::root().child("x").expect("plain");
    let tag = || "v1".parse().expect("a name");
    let id = SnapshotId { created_ms: 1, random: 1 };
    let libraries = vec![
        Next::Words("look".into()),
        Next::Either(Box::new(Next::Join), Box::new(Next::ListTags)),
        Next::FreeSpace(None),
        Next::FreeSpace(Some(root())),
        Next::SeeWhose,
        Next::CheckMount,
        Next::ReadHelp,
        Next::ReadHelpOfLocks,
        Next::ReportBug,
        Next::Init(root()),
        Next::InitOrName,
        Next::NameRepository(root()),
        Next::InitElsewhere("path"),
        Next::Adopt(root()),
        Next::AdoptWithGit(root()),
        Next::FinishInit(root()),
        Next::AwaitInit(root()),
        Next::SeeRepository(root()),
        Next::CreateWorktreeOf(root()),
        Next::UseVersionFor(2),
        Next::ChooseValidName(64),
        Next::FixKey(3, None),
        Next::FixKey(3, Some("snapshot.engine")),
        Next::ListKeys(None),
        Next::ListKeys(Some("snapshot.engine")),
        Next::RestoreDefault("snapshot.engine".into(), "auto"),
        Next::ChooseValue("snapshot.engine"),
        Next::VerifyAudit,
        Next::VerifyAuditInFull,
        Next::AskDoctor,
        Next::AskDoctorWhatIsMissing,
        Next::AskDoctorAbout(path()),
        Next::AskDoctorForMore,
        Next::ReplaceSymlink(path()),
        Next::RemoveSymlink,
        Next::HaveOwnerAskDoctor,
        Next::CheckMountAndAskDoctor,
        Next::ProbeFilesystem,
        Next::StopWritersAndRepair,
        Next::RepairRegisterFirst,
        Next::MoveAwayAndRepair,
        Next::RepairInterrupted,
        Next::RepairOnceMounted,
        Next::ChooseHead(vec![Some(id), None]),
        Next::RestoreOrChooseHead(a()),
        Next::ListWorktrees,
        Next::FindWorktree(a()),
        Next::ChooseUnusedName,
        Next::CreateWorktree,
        Next::CreateWorktreeAgain(a()),
        Next::SeeWhetherToRemove,
        Next::RemoveWithFiles(a()),
        Next::FinishRename(a(), b()),
        Next::RestoreLostFiles(path(), a(), id),
        Next::Acquire(a()),
        Next::AcquireLater(a()),
        Next::AcquireAgain(a()),
        Next::AcquireBack(a()),
        Next::LookAndAcquire(a()),
        Next::GoOnAsHolder,
        Next::StandInLine(a()),
        Next::WaitOrWhy(a()),
        Next::WaitLongerOrWhy(a()),
        Next::TryLaterOrWhy(2_000, a()),
        Next::Watch(2_000),
        Next::HaveSessionWait("s".into(), a()),
        Next::Why(a()),
        Next::StopWriting(a()),
        Next::Status(a()),
        Next::CheckDiskThenStatus(a()),
        Next::StatusOnceMounted(a()),
        Next::AwaitThawOrWhy(a()),
        Next::SteerClockOrUnfreeze(a()),
        Next::SetClocksOrObserve(a()),
        Next::AwaitOtherTool(a(), "x".into()),
        Next::TakeBoth(a(), b()),
        Next::RunWithBoth(a(), b()),
        Next::ReleaseElsewhere(a(), "s".into()),
        Next::ReleaseByForce(a()),
        Next::AllowReclaim,
        Next::AskAdmin,
        Next::Join,
        Next::JoinOrWait,
        Next::ListSnapshots,
        Next::TakeFirstSnapshot,
        Next::ListFilesOf(id),
        Next::SeeSnapshotOnceMounted(id),
        Next::VerifyAll,
        Next::ListTags,
        Next::DeleteTag(tag()),
        Next::TagAgain(id, tag()),
        Next::TakeNewerSnapshot,
        Next::ForgetTagged(id),
        Next::TrustClock,
        Next::TakeUnquiet,
        Next::StopWritersOrTakeTorn,
        Next::CloseWritersOrTakeUnquiet,
        Next::ChooseEngine,
        Next::InstallClonerOrCopy,
        Next::CompareWithOldFiles(path()),
    ];
    let foreign = foreign::FOREIGN.iter().map(|(_, _, answer)| Next::from(*answer));
    libraries.into_iter().chain(own().into_iter().map(Next::from)).chain(foreign).collect()
}

/// One of each of the command's own.
fn own() -> Vec<OwnNext> {
    let (session, options) = (|| "s".to_owned(), || "-w a".to_owned());
    vec![
        OwnNext::Help("jvs".into(), None),
        OwnNext::Help("lock acquire".into(), Some("`--wait`".into())),
        OwnNext::InOwnWords("to take a snapshot: jvs snapshot NOTE"),
        OwnNext::Generations(2),
        OwnNext::ListFiles(SnapshotId { created_ms: 1, random: 1 }),
        OwnNext::OneOf(vec!["4c71b4 (just now)".into()]),
        OwnNext::WaitThisLong("lock acquire".into()),
        OwnNext::ListOperations,
        OwnNext::UndoThat(OpNonce([7; 8])),
        OwnNext::MakeAgain("a".parse().expect("a name"), None),
        OwnNext::MakeAgain(
            "a".parse().expect("a name"),
            Some(SnapshotId { created_ms: 1, random: 1 }),
        ),
        OwnNext::RestoreByHand(SnapshotId { created_ms: 1, random: 1 }),
        OwnNext::RestoreNew(SnapshotId { created_ms: 1, random: 1 }),
        OwnNext::BringBackByHand("/r/aside/x".into()),
        OwnNext::NameTag("0b25".into()),
        OwnNext::TagInOrder("@-".into(), "v1".into()),
        OwnNext::NameAllAfter("lock acquire".into()),
        OwnNext::CreateExclusive,
        OwnNext::InitBelow("/r/work".into()),
        OwnNext::VerifyOne,
        OwnNext::RestoreElsewhere,
        OwnNext::RestoreInPlace,
        OwnNext::RestoreAllInto("old".to_owned()),
        OwnNext::WithoutAtomic,
        OwnNext::FileOrSnapshot("v1".to_owned()),
        OwnNext::SnapshotEach(vec!["a".parse().expect("a name"), "b".parse().expect("a name")]),
        OwnNext::GiveIdAsDoctor,
        OwnNext::Unset,
        OwnNext::KeepAuditAndSeeAll,
        OwnNext::SeeAllOfDoctor,
        OwnNext::SeeRepairs,
        OwnNext::Repair,
        OwnNext::SeeStatus,
        OwnNext::NameSessionOrRun,
        OwnNext::ListSessions,
        OwnNext::ListSchemas,
        OwnNext::ReleaseFirst(options(), session(), false),
        OwnNext::ReleaseFirst(options(), session(), true),
        OwnNext::MountOrForget(session()),
        OwnNext::HoldFirst("a".parse().expect("a name"), true),
        OwnNext::InstallAgent,
        OwnNext::InstallHere("claude"),
        OwnNext::AcknowledgeOrForget(options(), session()),
    ]
}

/// The command lines in a hint, each up to where the sentence goes on.
fn commands(hint: &str) -> Vec<Vec<&str>> {
    // The program, and nothing to type.
    let hint = hint.trim_start_matches("use a version of jvs");
    let begins = hint.match_indices("jvs ").map(|(at, _)| &hint[at..]);
    begins
        .map(|line| {
            let line = line.split(['`', ';', ')', ',', '|', '&', '\'']).next().unwrap_or_default();
            // Whatever was typed before.
            let line = line.split_whitespace();
            line.map(|word| if word == "…" { "status" } else { word }).collect()
        })
        .collect()
}

#[test]
fn every_command_in_a_hint_can_be_typed() {
    let mut seen = 0;
    for next in all() {
        let hint = spell(&next);
        for mut words in commands(&hint) {
            if words[1] == "run" && !words.contains(&"--") {
                words.extend(["--", "COMMAND"]);
            }
            let line = words.join(" ");
            match args::parse(words.into_iter().map(OsString::from).collect(), None) {
                Words::Command(_) | Words::Help { .. } => seen += 1,
                Words::Wrong { failure, .. } => {
                    panic!("{line}: {} (the hint: {hint})", failure.message())
                }
            }
        }
    }
    assert!(seen > 80, "only {seen} commands were found");
}

#[test]
fn every_option_in_a_hint_exists() {
    fn options(command: &clap::Command, all: &mut Vec<String>) {
        all.extend(command.get_arguments().filter_map(|arg| arg.get_long()).map(str::to_owned));
        command.get_subcommands().for_each(|verb| options(verb, all));
    }
    let mut known = vec!["help".to_owned(), "version".to_owned()];
    options(&Args::command(), &mut known);
    for next in all() {
        let hint = spell(&next);
        for (at, _) in hint.match_indices("--") {
            let name = hint[at + 2..].split(|c: char| !c.is_ascii_lowercase() && c != '-');
            let name = name.into_iter().next().unwrap_or_default();
            assert!(name.is_empty() || known.iter().any(|it| it == name), "--{name}: {hint}");
        }
    }
}

#[test]
fn two_ways_out_are_told_as_one_sentence() {
    let next = Next::from("look").or(Next::ListTags);
    assert_eq!(spell(&next), "look; or see which there are: jvs tag --list");
}
