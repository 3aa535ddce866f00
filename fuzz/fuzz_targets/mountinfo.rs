#![no_main]

jvs_fuzz::program!(mountinfo);
