#![no_main]

jvs_fuzz::program!(hold_name);
