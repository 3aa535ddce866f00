//! What can go wrong with a lock, each with its code, a sentence and the next
//! command to run: an error for each kind of operation, which names what that can
//! answer and no more.

mod acquire;
mod birth;
mod lease;
mod register;
mod take;
mod turn;

pub use self::acquire::{
    AcquireError, BadLease, ForceError, FreezeError, NotAdmin, NotOverruled, ReclaimError,
    UnfreezeError,
};
pub use self::birth::BirthError;
pub use self::lease::{CommitError, LeaseError};
pub(crate) use self::register::next_after_io;
pub use self::register::{OfRegister, RegisterError};
pub use self::take::{TakeOverError, WasRemoved};
pub use self::turn::{NoSuchWaiter, TurnError};
use crate::register::ReadError;

/// Errors that have the register's in one of their variants, there or further below.
macro_rules! over_the_register {
    ($($error:ident::$below:ident;)*) => {$(
        impl OfRegister for $error {
            fn of_register(&self) -> Option<&RegisterError> {
                match self {
                    $error::$below(error) => error.of_register(),
                    _ => None,
                }
            }
        }

        impl From<RegisterError> for $error {
            fn from(error: RegisterError) -> Self {
                $error::$below(error.into())
            }
        }

        impl From<ReadError> for $error {
            fn from(error: ReadError) -> Self {
                RegisterError::from(error).into()
            }
        }
    )*};
}

over_the_register! {
    TakeOverError::Register;
    LeaseError::Register;
    AcquireError::Take;
    UnfreezeError::Take;
    ReclaimError::Acquire;
    ForceError::Register;
    TurnError::Acquire;
    CommitError::Lease;
}
