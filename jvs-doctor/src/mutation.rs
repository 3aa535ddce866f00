//! The rules of repairs that can be switched off, one by one, to show that the
//! exploration tests notice. Without the `mutations` feature every rule holds
//! and the question compiles to nothing.

/// A rule of repairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Work in progress is removed only if it is proven dead.
    ProvenDead,
    /// A record that a new holder wrote meanwhile is put back.
    PutsBack,
    /// Nothing follows from what the filesystem did not show.
    UnseenIsNotGone,
}

impl Rule {
    /// Does the rule hold?
    #[cfg(not(feature = "mutations"))]
    #[inline(always)]
    pub(crate) const fn holds(self) -> bool {
        true
    }

    /// Does the rule hold?
    #[cfg(feature = "mutations")]
    pub(crate) fn holds(self) -> bool {
        OFF.with(|off| off.get() != Some(self))
    }
}

#[cfg(feature = "mutations")]
thread_local! {
    static OFF: std::cell::Cell<Option<Rule>> = const { std::cell::Cell::new(None) };
}

/// Runs `test` in a world where `rule` does not hold on this thread.
#[cfg(feature = "mutations")]
pub fn without<T>(rule: Rule, test: impl FnOnce() -> T) -> T {
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
