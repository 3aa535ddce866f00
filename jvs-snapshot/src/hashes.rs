//! What is known of the content of each name of a tree, by its number: a hash, once, in 33
//! bytes a name, however it came to be known.

use crate::hash::Digest;

/// How sure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Unknown,
    /// What the parent's file of that name has, which looks like this one.
    Doubted,
    Known,
}

/// Hashes by number.
#[derive(Debug, Default)]
pub(crate) struct Hashes {
    /// Memory of which the system gives only what is written to.
    digests: Vec<[u8; 32]>,
    standing: Vec<Standing>,
}

impl Hashes {
    /// Of so many names nothing is known.
    pub(crate) fn unknown(names: usize) -> Self {
        Hashes { digests: vec![[0; 32]; names], standing: vec![Standing::Unknown; names] }
    }

    /// What the content hashes to, if it was read, or need not be.
    pub(crate) fn get(&self, number: usize) -> Option<Digest> {
        self.of_standing(number, Standing::Known)
    }

    /// What it hashes to if it is as it looks.
    pub(crate) fn doubted(&self, number: usize) -> Option<Digest> {
        self.of_standing(number, Standing::Doubted)
    }

    pub(crate) fn set(&mut self, number: usize, digest: Digest) {
        (self.digests[number], self.standing[number]) = (digest.0, Standing::Known);
    }

    pub(crate) fn doubt(&mut self, number: usize, digest: Digest) {
        (self.digests[number], self.standing[number]) = (digest.0, Standing::Doubted);
    }

    fn of_standing(&self, number: usize, standing: Standing) -> Option<Digest> {
        (self.standing.get(number) == Some(&standing)).then(|| Digest(self.digests[number]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubted_hash_is_not_known_until_it_was_read() {
        let mut hashes = Hashes::unknown(2);
        let (one, other) = (Digest::of(b"one"), Digest::of(b"other"));
        assert_eq!((hashes.get(0), hashes.doubted(0)), (None, None));
        hashes.doubt(0, one);
        assert_eq!((hashes.get(0), hashes.doubted(0)), (None, Some(one)));
        hashes.set(0, other);
        assert_eq!((hashes.get(0), hashes.doubted(0)), (Some(other), None));
        assert_eq!((hashes.get(1), hashes.get(2)), (None, None));
    }
}
