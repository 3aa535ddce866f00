//! The `jvs` command.

fn main() {}
