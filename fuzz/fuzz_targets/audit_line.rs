#![no_main]

jvs_fuzz::program!(audit_line);
