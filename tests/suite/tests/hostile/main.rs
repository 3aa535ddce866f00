//! What somebody who means harm puts before the command: words that drive a terminal,
//! objects in the place of control files, and surroundings in which little works.

#![expect(clippy::print_stdout, reason = "the count of cases, and what is wrong with one at once")]

mod bytes;
mod forged;
mod inert;
mod limits;
mod matrix;
mod namespaces;
mod world;
