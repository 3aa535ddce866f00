#![no_main]

jvs_fuzz::program!(ready_mark);
