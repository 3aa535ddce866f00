//! What harnesses of coding agents send to a hook, and what they have in their settings.

use jvs::fuzzing;
use serde_json::Value;

/// A payload, for each harness: whatever is said about it is one line that no terminal acts
/// on, and a document. The same bytes as a command: it is judged, and that is all.
pub(crate) fn hook_payload(data: &[u8]) {
    for said in fuzzing::hook_answers(data) {
        assert!(said.is_ascii() && said.ends_with('\n') && said.lines().count() == 1, "{said:?}");
        let document: Value = serde_json::from_str(&said).expect("a document");
        assert!(document.is_object());
    }
    if let Ok(text) = std::str::from_utf8(data) {
        let words = fuzzing::shell_words(text);
        assert!(words <= 64, "{words} words");
    }
}

/// Settings: what is added is added, and taken away again leaves what was there.
pub(crate) fn agent_settings(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if serde_json::from_str::<Value>(text).is_err() {
        return;
    }
    let Some((added, removed)) = fuzzing::spliced(text) else { return };
    let value = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    let (mut wanted, without) = (value(text), value(&removed));
    assert_eq!(wanted, without, "{added}");
    wanted["jvs added"] = serde_json::json!([{ "x": 1 }]);
    assert_eq!(value(&added), wanted);
}
