use jvs_repo::clock::{BootMs, Reading, WallMs};
use jvs_repo::name::WorktreeName;
use jvs_repo::next::Next;

use super::*;
use crate::record::tests::granted;

/// What one who is like `me` sees of the record of session `s`, ann's on host-a, 40 s
/// after it was taken.
fn seen(change: impl FnOnce(&mut Record, &mut Onlooker)) -> View {
    let (state, mut record) = granted();
    let mut me = Onlooker {
        session: "other".into(),
        user: "bob".into(),
        uid: Some(1001),
        host: "host-b".into(),
        boot_id: BootId("boot-b".into()),
        place: Place::default(),
    };
    change(&mut record, &mut me);
    View {
        worktree: WorktreeName::main(),
        state,
        found: FoundRecord::Record(Box::new(record)),
        judgement: None,
        mine: false,
        foreign: None,
        unheard: None,
        restoring: false,
        at: Reading { wall: WallMs(1_040_000), boot: BootMs(0) },
        seen_by: Some(Box::new(me)),
    }
}

fn at_terminal(terminal: &str) -> Place {
    let (sort, terminal) = (Some(Sort::Terminal), Some(terminal.to_owned()));
    Place { sort, terminal, ..Place::default() }
}

#[test]
fn a_holder_is_a_person_on_a_host_at_a_terminal_with_a_note_and_an_end() {
    let view = seen(|record, _| {
        record.place = at_terminal("pts/3");
        record.note = Some("release 1.4".into());
        let until = Some(WallMs(1_040_000 + 3_600_000).rfc3339());
        record.kept = Some(Kept { until, with: Some(With::Terminal), idle_ms: None });
    });
    let told = "ann on host-a (terminal pts/3), for 40 s, at most 1 h 0 min more, until its \
                terminal closes: \"release 1.4\"";
    assert_eq!(view.holder().line(), told);
    assert_eq!(view.holder().brief(), "ann on host-a (pts/3), at most 1 h: release 1.4");
    assert_eq!(view.holder().advice(), None);
}

#[test]
fn an_agent_is_told_by_its_name_and_by_what_runs_it() {
    let sort = |sort, agent: Option<&str>| {
        let agent = agent.map(str::to_owned);
        let place = Place { sort: Some(sort), agent, ..Place::default() };
        seen(|record, _| record.place = place).holder().who()
    };
    assert_eq!(sort(Sort::Named, None), "ann on host-a (session s)");
    assert_eq!(sort(Sort::Named, Some("codex")), "ann on host-a (codex, session s)");
    assert_eq!(sort(Sort::Agent, Some("codex")), "ann on host-a (session s)");
}

#[test]
fn it_is_you_in_another_terminal_of_this_host_and_not_your_agent_nor_elsewhere() {
    let mine = |record: &mut Record, me: &mut Onlooker| {
        (record.place, me.place) = (at_terminal("pts/3"), at_terminal("pts/4"));
        (me.user, me.uid, me.host) = ("ann".into(), Some(1000), "host-a".into());
        me.boot_id = record.boot_id.clone();
    };
    let view = seen(mine);
    assert_eq!(view.holder().who(), "you, in another terminal (pts/3)");
    let elsewhere = Next::ReleaseElsewhere(WorktreeName::main(), "s".into());
    assert_eq!(view.holder().advice(), Some(elsewhere));
    let others: [fn(&mut Record, &mut Onlooker); 4] = [
        |_, me| me.uid = Some(1001),
        |_, me| me.boot_id = BootId("later".into()),
        |_, me| me.place.sort = Some(Sort::Named),
        |record, _| record.place.sort = Some(Sort::Agent),
    ];
    for change in others {
        let view = seen(|record, me| {
            mine(record, me);
            change(record, me);
        });
        assert!(view.holder().who().starts_with("ann on host-a ("), "{}", view.holder().who());
        assert_eq!(view.holder().advice(), None);
    }
}

#[test]
fn the_same_id_with_another_private_directory_is_told_which() {
    let view = seen(|record, me| {
        me.session = "s".into();
        (me.uid, me.host, me.boot_id) = (Some(1000), "host-a".into(), record.boot_id.clone());
        record.place.private_dir = Some("/run/user/7/jvs".into());
    });
    let who = view.holder().who();
    assert_eq!(who, "the same session id with another private directory (/run/user/7/jvs)");
    let words = "use that directory: export XDG_RUNTIME_DIR=/run/user/7";
    assert_eq!(view.holder().advice(), Some(words.into()));
    // Anybody may have written the record, and the command is to be typed.
    let view = seen(|record, me| {
        me.session = "s".into();
        (me.uid, me.host, me.boot_id) = (Some(1000), "host-a".into(), record.boot_id.clone());
        record.place.private_dir = Some("/x; touch here /jvs".into());
    });
    let words = "use that directory: export XDG_RUNTIME_DIR='/x; touch here '";
    assert_eq!(view.holder().advice(), Some(words.into()));
}

#[test]
fn the_same_id_whose_private_directory_is_mine_is_not_told_to_have_another() {
    let view = seen(|record, me| {
        me.session = "s".into();
        (me.uid, me.host, me.boot_id) = (Some(1000), "host-a".into(), record.boot_id.clone());
        record.place.private_dir = Some("/run/user/7/jvs".into());
        me.place.private_dir = record.place.private_dir.clone();
    });
    let who = view.holder().who();
    assert_eq!(who, "the same session id, whose secret or memory is not here any more");
    let Some(Next::Words(words)) = view.holder().advice() else { panic!("advice") };
    assert!(words.contains("XDG_STATE_HOME") && !words.contains("export"), "{words}");
}

#[test]
fn the_end_of_a_lock_is_what_ends_it_and_not_the_next_renewal() {
    let until = |renews, kept: Option<Kept>| {
        seen(|record, _| (record.renews, record.kept) = (renews, kept)).holder().until()
    };
    assert_eq!(until(Some(true), Some(Kept::by_command())), "until its command ends");
    let kept = Kept { until: Some(WallMs(1_050_000).rfc3339()), ..Kept::default() };
    assert_eq!(until(Some(true), Some(kept.clone())), "at most 10 s more");
    let idle = |ms| Some(Kept { idle_ms: Some(ms), ..kept.clone() });
    assert_eq!(until(Some(true), idle(5_000)), "at most 10 s more, less if idle for 5.0 s");
    assert_eq!(until(Some(true), idle(50_000)), "at most 10 s more");
    assert_eq!(until(Some(false), None), "at most 0 ms more");
    assert_eq!(until(None, None), "its lease ends in 0 ms unless it is renewed");
}
