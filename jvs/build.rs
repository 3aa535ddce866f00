//! Links the unwinder into the released command.
//!
//! Loading it as a library of its own costs a tenth of a start: it is mapped,
//! relocated, and asks the processor what it can do, which in a virtual machine
//! is a trap a question. A release aborts on panic and needs it for the
//! backtrace only.
//!
//! Only with a GNU C library and for the host itself; wherever the archive is
//! not found, the library is loaded as ever.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
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
