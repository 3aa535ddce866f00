//! Exhaustive exploration of the lock protocol: the real code under every interleaving; see `tests/`.
