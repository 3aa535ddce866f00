#![no_main]

jvs_fuzz::program!(proc_stat);
