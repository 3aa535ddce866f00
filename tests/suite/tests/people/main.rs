//! Locks as people, agents, pipelines and admins live with them: through the
//! real command, on a real filesystem, with real processes and terminals.
//!
//! Tests named after a seed's acceptance criterion cover that criterion.

mod agents;
mod deadlock;
mod escapes;
mod events;
mod holds;
mod idle;
mod keeper;
mod overruling;
mod permission;
mod private;
mod run;
mod scenes;
mod seed000;
mod seed001;
mod seed002;
mod seed003;
mod session;
mod several;
mod sharing;
mod signals;
mod terminal;
mod unseen;
mod waiting;
mod words;
mod world;
