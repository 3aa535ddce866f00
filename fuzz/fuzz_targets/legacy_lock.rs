#![no_main]

jvs_fuzz::program!(legacy_lock);
