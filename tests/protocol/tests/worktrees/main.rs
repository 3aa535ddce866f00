//! Worktrees that come, move and go at once, explored: the real code under every
//! interleaving, with deaths, lost and late answers and power cuts; and each rule of
//! it switched off. Each test prints the states that it visited.

mod deaths;
mod explored;
mod failures;
mod needed;
mod paused;
mod reserved;
mod unshown;
mod world;
