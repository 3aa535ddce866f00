//! The page that `jvs audit --html` writes, in a browser.

use jvs_kit::live::process::Outcome;
use serde_json::{Value, json};

use crate::stage::Stage;

/// Text that would do something if it were not only text.
const HOSTILE: &str = "</script><script>document.body.dataset.pwned=1</script>\
                       <img src=x onerror=document.body.dataset.pwned=2> javascript:alert(1)";

/// How many events the page has to bear.
const MANY: usize = 10_000;

/// The document once its script has run.
fn opened(stage: &Stage, page: &str) -> Outcome {
    let profile = stage.path("profile").display().to_string();
    let url = format!("file://{}", stage.path(page).display());
    let words = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        &format!("--user-data-dir={profile}"),
        "--window-size=1200,700",
        "--virtual-time-budget=2000",
        "--dump-dom",
        &url,
    ];
    stage.run("chromium", &words).ok()
}

fn attribute<'d>(document: &'d str, name: &str) -> Option<&'d str> {
    let (_, after) = document.split_once(&format!("data-{name}=\""))?;
    after.split('"').next()
}

#[test]
fn the_page_shows_who_held_what_and_what_others_wrote_does_nothing() {
    let stage = Stage::furnished();
    let freeze = format!("jvs lock freeze --for 1h --reason '{HOSTILE}'; jvs lock unfreeze");
    stage.types(&freeze).ok();
    stage
        .types(
            "JVS_SESSION_ID=bob jvs lock acquire --no-keeper; JVS_SESSION_ID=bob jvs lock release",
        )
        .ok();
    stage.types("jvs audit --html ../../../page.html").ok();
    let seen = opened(&stage, "page.html");
    let document = seen.stdout();
    assert_eq!(attribute(document, "ready"), Some("yes"), "{seen}");
    assert_eq!(attribute(document, "pwned"), None, "{seen}");
    for text in ["bob", "froze the worktree", "published", "&lt;img src=x"] {
        assert!(document.contains(text), "{text}: {seen}");
    }
    // The document's own two, before and after.
    assert_eq!(document.matches("<script").count(), 2, "{seen}");
    assert!(!document.contains("<img"), "{seen}");
}

#[test]
fn the_page_bears_ten_thousand_events() {
    let stage = Stage::furnished();
    stage.types("jvs audit --html ../../../page.html").ok();
    let page = fs_err::read_to_string(stage.path("page.html")).expect("the page");
    let (before, after) = page.split_once("id=\"story\">").expect("the data");
    let (_, after) = after.split_once("</script>").expect("its end");
    let at = |event: usize| 1_763_283_600_000 + event as u64 * 37_000;
    let mark = |event: usize| {
        let worktree = format!("w{}", event % 7);
        json!({ "worktree": worktree, "who": format!("agent-{}", event % 23), "session": "s",
                "at": at(event), "kind": "published", "what": format!("published {event}") })
    };
    let hold = |event: usize| {
        json!({ "worktree": format!("w{}", event % 7), "who": format!("agent-{}", event % 23),
                "token": event, "frozen": false, "from": at(event), "until": at(event + 5),
                "ended": if event.is_multiple_of(50) { "lost: somebody took over" } else { "released" } })
    };
    let story: Value = json!({
        "now": at(MANY), "repository": "/r",
        "holds": (0..MANY / 2).map(|event| hold(event * 2)).collect::<Vec<_>>(),
        "marks": (0..MANY).map(mark).collect::<Vec<_>>(),
    });
    let many = format!("{before}id=\"story\">{story}</script>{after}");
    fs_err::write(stage.path("many.html"), many).expect("written");
    let seen = opened(&stage, "many.html");
    let document = seen.stdout();
    assert_eq!(attribute(document, "ready"), Some("yes"));
    assert_eq!(attribute(document, "drawn"), Some(MANY.to_string().as_str()));
    // Only some of them are rows: a table of all would be slow to lay out.
    assert!(document.matches("<tr>").count() < 400);
    assert!(document.contains("9700 more"), "what is left out is said");
}
