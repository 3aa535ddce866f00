//! `jvs audit --html FILE`: the log as one page that needs no network and runs no code but
//! its own: whatever others wrote is data in it, and the browser is told so.

use std::path::Path;

use jvs_lock::history::Logged;
use jvs_repo::entropy::Entropy;
use jvs_repo::id::OpNonce;
use jvs_repo::store::{PosixStore, RepoPath, Store};
use serde_json::Value;

use super::timeline::timeline;
use crate::answer::{self, audit::Page};
use crate::context::Context;
use crate::fail::{Failure, Stuck};
use crate::render::{Done, shown};

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

pub(super) fn write(
    context: &Context<'_>,
    root: &Path,
    file: &Path,
    events: &[Logged],
) -> Result<Done, Failure> {
    let mut story = timeline(events, context.clock().now().wall);
    story["repository"] = shown(root).into();
    let page = page(&story, &nonce(context.entropy()));
    let write = || {
        let file = context.absolute(file);
        let (Some(dir), Some(name)) = (file.parent(), file.file_name().and_then(|it| it.to_str()))
        else {
            return Err(std::io::Error::from(std::io::ErrorKind::InvalidFilename));
        };
        let store = PosixStore::open(dir)?;
        let at = |name: &str| RepoPath::root().child(name);
        let tmp = format!("{name}.tmp-{}", std::process::id());
        store.write_over(&at(&tmp)?, &at(name)?, page.as_bytes())
    };
    write().map_err(|error| Stuck::new(format!("write {}", shown(file)), error))?;
    let counts = (told(&story["holds"]), told(&story["marks"]));
    let text = format!(
        "Wrote {} to {}: {} holds, {} operations\n",
        super::super::size(page.len() as u64),
        shown(file),
        counts.0,
        counts.1
    );
    let (bytes, (holds, operations)) = (page.len(), counts);
    let (file, file_bytes) = answer::path(file);
    let page = Page { bytes, holds, operations, file, file_bytes };
    Ok(Done::new(&page).with_text(text))
}

fn told(list: &Value) -> usize {
    list.as_array().map_or(0, Vec::len)
}

/// What only scripts that are ours know.
fn nonce(entropy: &dyn Entropy) -> String {
    OpNonce::random(entropy).to_string()
}

fn page(story: &Value, nonce: &str) -> String {
    let data = inert_json(story);
    let parts =
        [("{{nonce}}", nonce), ("{{style}}", STYLE), ("{{script}}", SCRIPT), ("{{data}}", &data)];
    // The data comes last: nothing in it is looked at again.
    parts.iter().fold(PAGE.to_owned(), |page, (mark, text)| page.replace(mark, text))
}

/// JSON in which nothing means anything to a reader of HTML.
fn inert_json(value: &Value) -> String {
    let mut text = String::new();
    for c in value.to_string().chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                text += &format!("\\u{:04x}", u32::from(c));
            }
            c if jvs_repo::inert::acts(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    text += &format!("\\u{unit:04x}");
                }
            }
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const HOSTILE: &str = "</script><script>alert(1)</script><!--<img src=x onerror=alert(1)>&\u{2028}\u{202e}{{script}}";

    #[test]
    fn what_others_wrote_is_data_and_no_markup() {
        let story = json!({ "who": HOSTILE, "holds": [], "marks": [] });
        let text = inert_json(&story);
        assert!(!text.contains(['<', '>', '&', '\u{2028}', '\u{202e}']), "{text}");
        let read: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(read["who"], HOSTILE);
        let page = page(&story, "n");
        assert_eq!(page.matches("<script").count(), 2);
        assert_eq!(page.matches("</script>").count(), 2);
    }

    #[test]
    fn the_page_asks_for_nothing_and_runs_only_its_own_script() {
        let page = page(&json!({ "holds": [], "marks": [] }), "1234");
        assert!(
            page.contains("default-src 'none'; script-src 'nonce-1234'; style-src 'nonce-1234'")
        );
        for word in ["http://", "https://", "src=", "href=", "innerHTML", "eval(", "import"] {
            assert!(!page.contains(word), "{word}");
        }
    }
}
