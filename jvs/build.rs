//! Makes the released command small and quick to start: takes the layout out of the schemas
//! that it carries, and links the unwinder into it.
//!
//! Loading it as a library of its own costs a tenth of a start: it is mapped,
//! relocated, and asks the processor what it can do, which in a virtual machine
//! is a trap a question. A release aborts on panic and needs it for the
//! backtrace only.
//!
//! Only with a GNU C library and for the host itself; wherever the archive is
//! not found, the library is loaded as ever.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Indented, so that people see what changed in it: a third of it is that.
const SCHEMAS: &str = "src/command/schema/jvs-1.json";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    carry_schemas();
    link_unwinder();
}

#[allow(clippy::disallowed_methods, reason = "what it writes is for the compiler")]
fn carry_schemas() {
    println!("cargo::rerun-if-changed={SCHEMAS}");
    let text = std::fs::read_to_string(SCHEMAS).expect("the schemas are there");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo says where"));
    std::fs::write(out.join("schemas.json"), without_layout(&text)).expect("written");
}

/// JSON without the white space between its words.
fn without_layout(json: &str) -> String {
    let (mut quoted, mut escaped) = (false, false);
    let belongs = |c: &char| {
        let ends_or_begins = *c == '"' && !escaped;
        escaped = quoted && *c == '\\' && !escaped;
        quoted ^= ends_or_begins;
        quoted || !c.is_ascii_whitespace()
    };
    json.chars().filter(belongs).collect()
}

fn link_unwinder() {
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    let for_host = std::env::var("TARGET") == std::env::var("HOST");
    if !for_host || !is("PROFILE", "release") || !is("CARGO_CFG_TARGET_ENV", "gnu") {
        return;
    }
    let Ok(answer) = Command::new("cc").arg("-print-file-name=libgcc_eh.a").output() else {
        return;
    };
    let archive = String::from_utf8_lossy(&answer.stdout);
    let archive = Path::new(archive.trim_end());
    // What the compiler does not have it answers with the bare name.
    if let (true, Some(dir)) = (archive.is_absolute() && archive.is_file(), archive.parent()) {
        println!("cargo::rustc-link-search=native={}", dir.display());
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
    }
}
