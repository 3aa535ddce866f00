#![no_main]

jvs_fuzz::program!(mcp_frame);
