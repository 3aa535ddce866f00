//! The command as its users meet it: standard output, standard error and exit
//! code, one transcript a verb (see [`transcript`] for how to read and renew
//! them), and what must not happen whatever is typed.

mod agents;
mod bad_input;
mod first_tries;
mod limits;
mod schemas;
mod transcript;

use transcript::play;

macro_rules! transcripts {
    ($($name:ident)*) => {
        /// Every transcript that is played.
        const PLAYED: &[&str] = &[$(stringify!($name),)*];

        $(#[test]
        fn $name() {
            play(stringify!($name));
        })*
    };
}

transcripts! {
    audit
    cat
    completions
    config_get
    config_list
    config_set
    demo
    diff
    doctor
    events
    forget
    gc
    history
    info
    init
    lock_acquire
    lock_freeze
    lock_list
    lock_reclaim
    lock_release
    lock_renew
    lock_status
    lock_steal
    lock_transfer
    lock_unfreeze
    lock_watch
    lock_why
    ls
    man
    path
    redo
    restore
    run
    schema
    session
    session_forget
    session_list
    session_show
    shell
    show
    snapshot
    status
    tag
    undo
    usage
    verify
    words
    worktree_create
    worktree_list
    worktree_path
    worktree_remove
    worktree_rename
}

#[test]
fn no_transcript_is_forgotten() {
    let mut there = transcript::on_disk();
    there.sort();
    let mut played: Vec<&str> = PLAYED.iter().chain(agents::PLAYED).copied().collect();
    played.sort_unstable();
    assert_eq!(there, played, "tests/cli/transcript/*.txt against the list in main.rs");
}
