//! End-to-end tests of the command and the libraries; see `tests/`.
