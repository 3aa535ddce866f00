#![no_main]

jvs_fuzz::program!(ignore_rules);
