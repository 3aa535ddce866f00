#![no_main]

jvs_fuzz::program!(file_name);
