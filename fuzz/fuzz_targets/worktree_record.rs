#![no_main]

jvs_fuzz::program!(worktree_record);
