//! Whatever somebody was told, for tests that ask for its code and not for its type.

use std::fmt;
use std::ops::Deref;

use jvs_repo::code::Coded;

/// Any error that has a code. `?` makes it from those of the libraries.
pub struct AnyError(Box<dyn Coded>);

impl<E: Coded + 'static> From<E> for AnyError {
    fn from(error: E) -> Self {
        AnyError(Box::new(error))
    }
}

impl Deref for AnyError {
    type Target = dyn Coded;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl fmt::Debug for AnyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for AnyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
