#![no_main]

jvs_fuzz::program!(juicefs_stats);
