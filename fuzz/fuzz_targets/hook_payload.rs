#![no_main]

jvs_fuzz::program!(hook_payload);
