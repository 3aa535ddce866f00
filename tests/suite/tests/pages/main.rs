//! What is written for users: help, topics and the manual. Whatever it tells them to type
//! is typed here.

mod book;
mod completions;
mod examples;
mod manual;
mod operations;
mod stage;
mod terminal;
mod timeline;
