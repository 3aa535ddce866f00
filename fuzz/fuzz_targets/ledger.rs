#![no_main]

jvs_fuzz::program!(ledger);
