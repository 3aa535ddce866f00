#![no_main]

jvs_fuzz::program!(agent_settings);
