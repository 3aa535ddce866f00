#![no_main]

jvs_fuzz::program!(trust_list);
