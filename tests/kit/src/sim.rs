//! A simulated filesystem, clock and scheduler.
