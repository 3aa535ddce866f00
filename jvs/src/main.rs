//! The program `jvs`: the library is all of it.

use std::process::ExitCode;

fn main() -> ExitCode {
    jvs::main()
}
