#![no_main]

jvs_fuzz::program!(register_name);
