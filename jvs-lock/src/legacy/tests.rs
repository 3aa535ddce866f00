use super::*;

fn parsed(text: &str) -> Option<Legacy> {
    parse(text.as_bytes(), &layout::lock_record(&WorktreeName::main()))
}

#[test]
fn the_formats_of_other_tools_are_recognised() {
    for (text, format, since, ends) in [
        (
            r#"{"owner":"pid-1@h","since":1700000000000,"ttl":60}"#,
            LegacyTool::OwnerSinceTtl,
            1_700_000_000_000,
            Some(1_700_000_060_000),
        ),
        (
            r#"{"owner":"ci-gh-4","since":"2023-11-14T22:13:20.000Z","ttl":60,
                "metadata":{"hostname":"h","environment":"ci","purpose":"automated"}}"#,
            LegacyTool::OwnerSinceTtlMetadata,
            1_700_000_000_000,
            Some(1_700_000_060_000),
        ),
        (
            r#"{"version":1,"name":"main","owner":"agent-1","host":"h","pid":7,
                "acquired_ts":"2023-11-14T22:13:20Z","ttl_sec":60}"#,
            LegacyTool::Lokt,
            1_700_000_000_000,
            Some(1_700_000_060_000),
        ),
        (
            r#"{"name":"main","owner":"agent-1","host":"h","pid":7,"ttl_sec":60,
                "acquired_ts":"2023-11-14T22:13:20Z","expires_at":"2023-11-14T22:13:25Z"}"#,
            LegacyTool::Lokt,
            1_700_000_000_000,
            Some(1_700_000_005_000),
        ),
        (
            r#"{"name":"main","owner":"agent-1","host":"h","pid":7,
                "acquired_ts":"2023-11-14T22:13:20Z"}"#,
            LegacyTool::Lokt,
            1_700_000_000_000,
            None,
        ),
    ] {
        let legacy = parsed(text).expect(text);
        assert_eq!(legacy.format, format, "{text}");
        assert_eq!((legacy.since, legacy.ends), (WallMs(since), ends.map(WallMs)), "{text}");
    }
}

#[test]
fn what_is_torn_hostile_or_ours_is_no_lock_of_another_tool() {
    let long = format!(r#"{{"owner":"{}","since":1,"ttl":1}}"#, "x".repeat(257));
    let deep = "[".repeat(100_000);
    let ours = serde_json::to_string(&crate::record::tests::granted().1).expect("json");
    for text in [
        "",
        "{}",
        "null",
        r#"{"owner":"a"}"#,
        r#"{"owner":"","since":1,"ttl":1}"#,
        r#"{"owner":7,"since":1,"ttl":1}"#,
        r#"{"owner":"a","since":-1,"ttl":1}"#,
        r#"{"owner":"a","since":"yesterday","ttl":1}"#,
        r#"{"owner":"a","since":1,"ttl":"1"}"#,
        r#"{"owner":"a","acquired_ts":5}"#,
        &long,
        &deep,
        &ours,
    ] {
        assert_eq!(parsed(text), None, "{}", &text[..text.len().min(80)]);
    }
}

#[test]
fn a_lock_of_another_tool_is_live_until_its_end_and_the_margin_for_clocks() {
    let policy = LockPolicy::default();
    let legacy = parsed(r#"{"owner":"a","since":1000,"ttl":1}"#).expect("legacy");
    assert!(legacy.is_live(WallMs(5_000), &policy));
    assert!(!legacy.is_live(WallMs(5_001), &policy));
    let forever = Legacy { ends: None, ..legacy };
    assert!(forever.is_live(WallMs(u64::MAX), &policy));
}

#[test]
fn an_owner_cannot_drive_the_terminal() {
    let legacy = parsed("{\"owner\":\"a\\u001b[2J\",\"since\":1,\"ttl\":1}").expect("legacy");
    assert_eq!(legacy.owner, "a_[2J");
}
