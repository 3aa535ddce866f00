//! Publishing and collecting in a world where every call can be the last.

mod collecting;
mod forgetting;
mod interleaving;
mod lines;
mod patching;
mod publishing;
mod reading;
mod swapping;
