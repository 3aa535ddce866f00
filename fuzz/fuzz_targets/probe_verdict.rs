#![no_main]

jvs_fuzz::program!(probe_verdict);
