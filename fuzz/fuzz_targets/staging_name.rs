#![no_main]

jvs_fuzz::program!(staging_name);
