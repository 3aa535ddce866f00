//! What the command's own processes say to each other, and what they keep.

use std::path::Path;

use jvs_lock::State;
use jvs_repo::clock::{BootClock, BootId, BootMs, Reading, WallMs};

/// Lines between a keeper, a guardian and whoever started them: a line that is understood
/// is one that would be said, and a half line is none.
pub(crate) fn keeper_wire(data: &[u8]) {
    let lines = jvs::fuzzing::lines(data);
    let whole = data.iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(lines.len(), whole, "only whole lines");
    for line in lines.iter().map(String::as_str) {
        let said = [
            jvs::fuzzing::keeper_says(line),
            jvs::fuzzing::keeper_is_told(line),
            jvs::fuzzing::guardian_says(line),
        ];
        for said in said.into_iter().flatten() {
            let inert = jvs::fuzzing::on_one_line(line);
            assert!(said == line || said == inert, "another spelling: {said:?}");
        }
        if let Some(follow) = jvs::fuzzing::follow(line) {
            assert_eq!(follow, line);
        }
    }
}

/// What was seen of a lock: only on the clock that it was seen on, and kept as it was.
pub(crate) fn sighting(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let clock = BootClock { boot_id: BootId("b".to_owned()), time_namespace: Some(7) };
    let now = Reading { wall: WallMs(2_000_000), boot: BootMs(1_000_000) };
    let Some(watch) = jvs::fuzzing::sighting(text, &clock, now) else { return };
    assert!(watch.since() <= now.boot && watch.last_look().boot <= now.boot);
    let kept = jvs::fuzzing::kept_sighting(&watch, &clock);
    let again = jvs::fuzzing::sighting(&kept, &clock, now).expect("kept and read again");
    assert_eq!((again.state(), again.since()), (watch.state(), watch.since()));
    assert!(text.contains(&State::to_string(watch.state())));
    let elsewhere = BootClock { boot_id: BootId("c".to_owned()), time_namespace: Some(7) };
    assert!(jvs::fuzzing::sighting(text, &elsewhere, now).is_none(), "seen on another boot");
}

/// The user's own list of repositories: one that is trusted is spelled in it.
pub(crate) fn trust_list(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if jvs::fuzzing::trusts(text, Path::new("/srv/r")) {
        // A path may be escaped in it, and may have slashes or dots that mean nothing.
        let everything = jvs::fuzzing::trusts(text, Path::new("/elsewhere"));
        assert!(text.contains('*') || text.contains('\\') || (text.contains("srv") && !everything));
    }
}

/// The environment of a process: a mark is in it only as a part of its own variable.
pub(crate) fn environment(data: &[u8]) {
    const MARK: &str = "0123456789abcdef";
    let found = jvs::fuzzing::mark_is_in(MARK, data).expect("a mark");
    let entry = format!("JVS_RUN_ID={MARK}");
    let with = [data, b"\0", entry.as_bytes(), b"\0"].concat();
    assert_eq!(jvs::fuzzing::mark_is_in(MARK, &with), Some(true), "others hide it");
    let spelled = data.windows(MARK.len()).any(|part| part == MARK.as_bytes());
    assert!(!found || spelled);
}
