//! The least that a Rust program can do: what a start costs before any work.

#[expect(clippy::print_stdout, reason = "it is all that it does")]
fn main() {
    println!("Hello, world!");
}
