//! Rules that can be switched off, one at a time, to show that the tests notice: how
//! that is done in every crate, and those of this one.
//!
//! What a rule demands is a function of its own that says what the spec says. Its first
//! statement may be a [`sabotage!`](crate::sabotage), which says what would be done
//! without the rule. Where that is more than an expression it is a function in a
//! `sabotage.rs` beside it. Only the `mutations` feature compiles either.

/// What a function answers in a world without a rule. Its first statement: everything
/// after it is what the rule demands. In a crate whose `mutations` feature is off it
/// compiles to nothing.
#[macro_export]
macro_rules! sabotage {
    ($rule:expr $(=> $answer:expr)?) => {
        #[cfg(feature = "mutations")]
        if !$rule.holds() {
            return $($answer)?;
        }
        // A name that is wrong is found without the feature, too.
        #[cfg(not(feature = "mutations"))]
        let _ = $rule;
    };
}

/// Makes the rules of an enumeration switchable: `holds` on it for
/// [`sabotage!`](crate::sabotage), and `without` beside it for the tests. Nothing of
/// either is there in a crate whose `mutations` feature is off.
#[macro_export]
macro_rules! switchable {
    ($rule:ident) => {
        #[cfg(feature = "mutations")]
        impl $rule {
            /// Does the rule hold?
            pub(crate) fn holds(self) -> bool {
                OFF.with(|off| off.get() != Some(self))
            }
        }

        #[cfg(feature = "mutations")]
        thread_local! {
            static OFF: std::cell::Cell<Option<$rule>> = const { std::cell::Cell::new(None) };
        }

        /// Runs `test` in a world where `rule` does not hold on this thread.
        #[cfg(feature = "mutations")]
        pub fn without<T>(rule: $rule, test: impl FnOnce() -> T) -> T {
            struct Restore;
            impl Drop for Restore {
                fn drop(&mut self) {
                    OFF.with(|off| off.set(None));
                }
            }
            OFF.with(|off| off.set(Some(rule)));
            let _restore = Restore;
            test()
        }

        #[cfg(feature = "mutations")]
        impl $crate::mutation::Switch for $rule {
            fn switched_off(self, test: &mut dyn FnMut()) {
                without(self, test);
            }
        }
    };
}

/// A rule of any crate that can be switched off.
pub trait Switch: Copy + Send + Sync + 'static {
    /// Runs `test` in a world where the rule does not hold on this thread.
    fn switched_off(self, test: &mut dyn FnMut());
}

/// A rule of what is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// An error of one's own create says nothing: what is under that name is one's own.
    OwnNamesAreLookedFor,
    /// A name is taken only if it is seen to be there.
    TakenNamesAreSeen,
    /// What a look-up denies is looked for in its directory's listing.
    AbsenceIsListed,
    /// The boot-time clock is read before the wall clock.
    BootBeforeWall,
    /// On a full volume an event is written into room that was kept for it.
    RoomIsKept,
    /// An id that a user namespace maps is nobody's.
    MappedIdsAreNobodys,
    /// A log that is full is opened again, by its name, before anything is added.
    FullIsOpenedAgain,
    /// A closed log is durable before another says how it ends.
    ClosedIsDurable,
    /// A log is added to behind all that was written to it, whatever of that is shown.
    GoesOnBehindAll,
    /// A line that has a zero byte was never written whole.
    HolesAreTorn,
}

impl Rule {
    /// All rules.
    pub const ALL: &[Rule] = &[
        Rule::OwnNamesAreLookedFor,
        Rule::TakenNamesAreSeen,
        Rule::AbsenceIsListed,
        Rule::BootBeforeWall,
        Rule::RoomIsKept,
        Rule::MappedIdsAreNobodys,
        Rule::FullIsOpenedAgain,
        Rule::ClosedIsDurable,
        Rule::GoesOnBehindAll,
        Rule::HolesAreTorn,
    ];
}

switchable!(Rule);
