#![no_main]

jvs_fuzz::program!(restore_journal);
