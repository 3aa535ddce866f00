# The scripts are the truth; this file only gives them short names.

# Install what is missing
setup:
    scripts/setup

# Everything that must hold before a change is taken
test:
    scripts/test

# See JVS work in a directory of its own
demo:
    scripts/demo

# Measure: lock, contention or capture
bench NAME="lock":
    scripts/bench {{NAME}}

fmt:
    cargo fmt --all

lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --locked -- -D warnings
