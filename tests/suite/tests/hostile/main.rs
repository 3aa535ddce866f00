//! What somebody who means harm puts before the command: words that drive a terminal,
//! objects in the place of control files, and surroundings in which little works.

mod bytes;
mod inert;
mod world;
