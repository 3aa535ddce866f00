//! The architecture as a test: what no compiler checks and every reader relies
//! on. Each failure says which file, which line and what to do about it.

mod agents;
mod architecture;
mod codes;
mod compiled;
mod contributing;
mod crashes;
mod dependencies;
mod documents;
mod fuzzed;
mod glossary;
mod hints;
mod language;
mod mcp;
mod names;
mod numbers;
mod on_disk;
mod packages;
mod schemas;
mod source;
mod switches;
mod walks;
