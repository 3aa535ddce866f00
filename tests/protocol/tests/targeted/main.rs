//! The bad moments that are known by name, each chosen by hand: what v6.3 as
//! written gets wrong, every call that can fail, and which calls there are.

mod calls;
mod confirmed;
mod faults;
mod flaws;
mod interrupted;
mod stumbling;
mod surroundings;
mod v63;
mod world;
