//! One home for what is on disk: names in `layout`, shapes in `record`, and everything
//! that is read goes through the strict reader.

use jvs_repo::layout;
use jvs_repo::store::RepoPath;

use crate::architecture::{only_in, only_where};
use crate::source::Source;

/// Modules that spell a name which the layout has as well, and why.
const SPELL_A_NAME: &[(&str, &str)] = &[
    ("jvs-repo/src/layout.rs", "is the layout"),
    ("jvs-snapshot/src/progress.rs", "says which phase of a capture it is"),
    ("jvs/src/command/audit/html.rs", "writes a page for a browser, where its user wants it"),
    ("jvs/src/command/audit/tla.rs", "writes a trace, outside any repository"),
    ("jvs/src/command/man.rs", "writes a manual page, outside any repository"),
];

/// Modules beside `record` whose values can be read from JSON, and why.
const DESERIALIZE: &[(&str, &str)] = &[
    ("jvs-repo/src/record.rs", "has the shapes on disk"),
    ("jvs-repo/src/clock.rs", "has times, which are fields of shapes"),
    ("jvs-repo/src/id.rs", "has ids, which are fields of shapes"),
    ("jvs-repo/src/json.rs", "is the strict reader"),
    ("jvs-repo/src/metadata.rs", "has the closed lists of words that are fields of shapes"),
    ("jvs-repo/src/probe/mount.rs", "reads what JuiceFS says of a mount, with the strict reader"),
    ("jvs-repo/src/term.rs", "has a term, which is two fields of a shape"),
];

/// Modules that make a value of JSON otherwise than with the strict reader, and why.
const READ: &[(&str, &str)] = &[
    ("jvs-repo/src/json.rs", "is the strict reader"),
    ("jvs-repo/src/record/seal.rs", "takes the content out of what the strict reader read"),
    ("jvs-lock/src/legacy.rs", "reads files of other tools, whose formats are not ours to refuse"),
    ("jvs-mcp/src/call.rs", "reads what a command that it ran has printed"),
    ("jvs-mcp/src/frames.rs", "reads messages of a protocol, which are on no disk"),
    ("jvs/src/command/demo.rs", "reads what a command that it ran has printed"),
    ("jvs/src/command/schema.rs", "reads the schemas that it was built with"),
];

/// Modules that make JSON of a value, and why.
const WRITE: &[(&str, &str)] = &[
    ("jvs-repo/src/json.rs", "has the form in which files are written"),
    ("jvs-repo/src/record.rs", "has the shapes on disk"),
    ("jvs-mcp/src/frames.rs", "sends messages of a protocol"),
    ("jvs/src/render.rs", "prints the answer of a command"),
];

/// Parts of names that say what a file is, or who made it.
const PARTS: &[&str] = &[
    ".fence",
    ".gone",
    ".jsonl",
    ".lock",
    ".probe-",
    ".queue",
    ".tmp-",
    "-init-",
    "birth-",
    "legacy-",
    "lost.",
    "probe-reflink",
    "removed-",
    "removing-",
];

/// Names that are no everyday word, so that nobody spells them for another reason.
fn whole_names() -> Vec<String> {
    let dir = RepoPath::root();
    let paths = [
        layout::config(),
        layout::probe_verdict(),
        layout::snapshot_payload(&dir),
        layout::manifest(&dir),
        layout::descriptor(&dir),
        layout::ready(&dir),
        layout::ready_staged(&dir),
    ];
    paths.iter().map(|path| path.split().1.to_owned()).collect()
}

#[test]
fn only_the_layout_spells_names_on_disk() {
    let names = whole_names();
    let spelled = |source: &Source| {
        let strings = source.strings.iter().filter(|string| {
            let inside = &source.text[(*string).clone()];
            // With a blank in it, it is a sentence.
            !inside.contains(char::is_whitespace)
                && (names.iter().any(|name| name == inside)
                    || PARTS.iter().any(|part| inside.contains(part)))
        });
        strings.map(|string| string.start).collect()
    };
    only_where(SPELL_A_NAME, spelled, "ask jvs_repo::layout for a name on disk");
}

#[test]
fn only_records_have_shapes_on_disk() {
    only_in(
        DESERIALIZE,
        &["Deserialize", "DeserializeOwned"],
        "what is read from disk has its shape below jvs-repo/src/record",
    );
}

#[test]
fn everything_on_disk_is_read_strictly() {
    let readers = ["from_slice", "from_str", "from_reader", "from_value"];
    let mut readers = readers.map(|reader| format!("serde_json::{reader}")).to_vec();
    readers.push("serde_json::Deserializer".to_owned());
    let readers: Vec<&str> = readers.iter().map(String::as_str).collect();
    let uses = |source: &Source| -> Vec<usize> {
        // A value reads itself, too.
        let parsed = ["parse::<Value>", "parse::<serde_json::Value>", "Value::from_str"];
        let parsed = parsed.iter().flat_map(|call| source.code.match_indices(call));
        let called = readers.iter().flat_map(|reader| source.words(reader));
        called.chain(parsed.map(|(at, _)| at)).collect()
    };
    only_where(READ, uses, "read it with jvs_repo::json");
}

#[test]
fn only_records_are_written_to_disk() {
    let to = ["string", "string_pretty", "value", "vec", "vec_pretty", "writer"];
    let mut writers = to.map(|to| format!("serde_json::to_{to}")).to_vec();
    writers.push("json::canonical".to_owned());
    let writers: Vec<&str> = writers.iter().map(String::as_str).collect();
    only_in(WRITE, &writers, "what is written has its shape below jvs-repo/src/record");
}
