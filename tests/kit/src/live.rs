//! Real filesystems and real processes.
