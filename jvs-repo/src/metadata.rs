//! The words in which a lock says where it is held and what for: closed lists,
//! shared by lock records and by the configuration's tables.

/// A closed list of words as a type.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($variant:ident $word:literal)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "snake_case")]
        #[allow(missing_docs, reason = "each is its word")]
        pub enum $name { $($variant,)* }

        impl $name {
            /// All of them.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// Their words.
            pub const WORDS: &'static [&'static str] = &[$($word,)*];

            /// The word.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::metadata::NotAWord;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let known = Self::ALL.iter().copied().find(|word| word.as_str() == text);
                known.ok_or($crate::metadata::NotAWord::expected(Self::WORDS))
            }
        }
    };
}
pub(crate) use words;

words! {
    /// Where a session runs.
    Environment { Local "local" Ci "ci" Cloud "cloud" Container "container" }
}
words! {
    /// What a lock is for.
    Purpose { Interactive "interactive" Automated "automated" Emergency "emergency" }
}

/// Text that is none of the allowed words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected one of: {}", one_of.join(", "))]
pub struct NotAWord {
    one_of: &'static [&'static str],
}

impl NotAWord {
    pub(crate) const fn expected(one_of: &'static [&'static str]) -> Self {
        NotAWord { one_of }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read_back_and_others_are_told_what_is_allowed() {
        for word in Environment::ALL {
            assert_eq!(word.as_str().parse(), Ok(*word));
        }
        for word in Purpose::ALL {
            assert_eq!(word.as_str().parse(), Ok(*word));
        }
        let error = "weekend".parse::<Purpose>().expect_err("no such purpose");
        assert_eq!(error.to_string(), "expected one of: interactive, automated, emergency");
    }
}
