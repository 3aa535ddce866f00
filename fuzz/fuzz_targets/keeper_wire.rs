#![no_main]

jvs_fuzz::program!(keeper_wire);
