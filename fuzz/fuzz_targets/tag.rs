#![no_main]

jvs_fuzz::program!(tag);
