//! Repairs in a world where every call can fail, lie or be the last, and where
//! others work on what is repaired.

mod beside;
mod interrupted;
mod mutations;
mod ruins;
