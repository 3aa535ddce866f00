use jvs_repo::clock::Clock;
use jvs_repo::code::{Code, code_of_io};
use jvs_repo::entropy::Entropy;

use super::*;

fn write(store: &dyn Store) -> std::io::Result<()> {
    store.write_new(&path("tmp"), &path("f"), b"hello")
}

#[test]
fn calls_are_counted_and_listed() {
    let solo = Solo::new();
    write(solo.store()).expect("written");
    let expected = [
        "create_new(tmp) = fd 1",
        "write_at(tmp, \"hello\") = ok",
        "sync(tmp) = ok",
        "inode(tmp) = 1000001",
        "rename_new(tmp -> f) = ok",
        "sync_dir(.) = ok",
    ];
    assert_eq!(solo.calls(), expected);
    assert_eq!((solo.count("rename_new"), solo.count("sync"), solo.call_count()), (1, 1, 6));
    solo.forget_calls();
    assert_eq!(solo.call_count(), 0);
}

#[test]
fn every_call_can_be_made_to_fail_and_leaves_no_half_of_a_file() {
    let solo = Solo::new();
    write(solo.store()).expect("written");
    let calls = solo.call_count();
    for n in 0..calls {
        let solo = Solo::new();
        // One of the few answers that say what happened also of a rename.
        solo.fail_call(n, Errno::ROFS);
        let error = write(solo.store()).expect_err("told to fail");
        // Once it has its name, nobody can say that it was not written.
        let is_named = n + 1 == calls;
        let told = if is_named { None } else { Some(Errno::ROFS.raw_os_error()) };
        assert_eq!(error.raw_os_error(), told, "call {n}");
        assert_eq!(code_of_io(&error) == Code::OutcomeUnknown, is_named, "call {n}");
        let whole = solo.image().read(&path("f")).map_or(!is_named, |bytes| bytes == b"hello");
        assert!(whole && !solo.image().exists(&path("tmp")), "call {n}: {:?}", solo.calls());
    }
}

#[test]
fn a_process_can_die_at_every_call_and_the_power_can_go_then() {
    for n in 0..6 {
        for way in [Way::DiesFirst, Way::ThenDies] {
            let solo = Solo::new();
            solo.inject(n, way);
            assert!(solo.run(|| write(solo.store())).is_none(), "call {n}");
            for outcome in 0..solo.crash_images() {
                let left = solo.crash_image(outcome);
                let whole = left.read(&path("f")).is_none_or(|bytes| bytes == b"hello");
                assert!(whole, "call {n}, image {outcome}: {:?}", left.tree());
            }
        }
    }
}

#[test]
fn an_ambiguous_and_a_late_rename_are_what_they_are() {
    let solo = Solo::new();
    create(solo.store(), "a", b"");
    solo.inject(0, Way::AppliedBut(Errno::NOENT));
    let error = solo.store().rename(&path("a"), &path("b")).expect_err("lied to");
    assert_eq!(error.raw_os_error(), Some(Errno::NOENT.raw_os_error()));
    assert_eq!(solo.image().tree(), ["b"]);
    solo.inject(0, Way::Late);
    solo.store().rename(&path("b"), &path("c")).expect_err("not yet");
    assert_eq!(solo.image().tree(), ["b"]);
    assert_eq!(solo.land_late_renames(), 1);
    assert_eq!(solo.image().tree(), ["c"]);
}

#[test]
fn time_power_and_randomness() {
    let solo = Solo::new();
    let (before, id) = (solo.clock().now(), solo.clock().boot_id());
    solo.clock().sleep_ms(5);
    solo.pass_ms(5);
    solo.move_wall_ms(-1000);
    let after = solo.clock().now();
    assert_eq!((after.boot.since(before.boot), before.wall.since(after.wall)), (10, 990));
    create(solo.store(), "f", b"");
    solo.power_cut(0);
    assert!(solo.image().tree().is_empty());
    assert_ne!(solo.clock().boot_id(), id);
    let (mut a, mut b) = ([0; 20], [0; 20]);
    solo.entropy().fill(&mut a);
    Solo::new().entropy().fill(&mut b);
    assert_eq!(a, b, "the same at every run");
    solo.entropy().fill(&mut b);
    assert_ne!(a, b, "but not twice the same");
}

#[test]
fn a_world_goes_on_from_another_ones_image() {
    let solo = Solo::new();
    create(solo.store(), "a", b"1");
    let next = Solo::on(solo.image());
    create(next.store(), "b", b"2");
    assert_eq!(next.image().read(&path("a")), Some(&b"1"[..]));
    assert_eq!(next.image().read(&path("b")), Some(&b"2"[..]));
}

#[test]
fn what_is_set_up_in_two_goes_never_draws_the_same_numbers() {
    let first = Solo::new();
    create(first.store(), "made", b"first");
    let second = Solo::on(first.image());
    assert_eq!(Solo::new().entropy().next(), Solo::new().entropy().next(), "but replays do");
    assert_ne!(Solo::new().entropy().next(), second.entropy().next());
}
