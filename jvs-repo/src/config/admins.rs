//! Who may force a lock, if the repository names them.

use std::fmt;
use std::str::FromStr;

use crate::account::Account;
use crate::id::strict_decimal;

/// How many may be named.
const MAX: usize = 64;
/// What stands there if nobody is.
const NOBODY: &str = "none";

/// Those who may force a lock. Empty: the repository names nobody, and its other rules
/// decide.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Admins(Vec<Admin>);

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Admin {
    Uid(u32),
    Gid(u32),
}

impl Admins {
    /// Nobody is named.
    pub const NOBODY: Admins = Admins(Vec::new());

    /// Does the repository name anybody?
    pub fn are_named(&self) -> bool {
        !self.0.is_empty()
    }

    /// Is `account` one of them? Whose account is not known is not.
    pub fn include(&self, account: Option<&Account>) -> bool {
        let Some(account) = account else { return false };
        self.0.iter().any(|admin| match admin {
            Admin::Uid(uid) => *uid == account.uid,
            Admin::Gid(gid) => account.gids.contains(gid),
        })
    }
}

impl FromStr for Admins {
    type Err = ();

    /// `none`, or a list such as `uid:1000,gid:50`, each named once.
    fn from_str(text: &str) -> Result<Self, ()> {
        if text == NOBODY {
            return Ok(Admins::NOBODY);
        }
        let mut named = Vec::new();
        for word in text.split(',') {
            let admin = word.trim().parse()?;
            if named.contains(&admin) || named.len() == MAX {
                return Err(());
            }
            named.push(admin);
        }
        Ok(Admins(named))
    }
}

impl FromStr for Admin {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (kind, id) = text.split_once(':').ok_or(())?;
        let id = strict_decimal(id).and_then(|id| u32::try_from(id).ok());
        // The last of them is how system calls say "no id".
        let id = id.filter(|id| *id != u32::MAX).ok_or(())?;
        match kind {
            "uid" => Ok(Admin::Uid(id)),
            "gid" => Ok(Admin::Gid(id)),
            _ => Err(()),
        }
    }
}

impl fmt::Display for Admins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.0.iter().map(Admin::to_string).collect();
        f.write_str(if words.is_empty() { NOBODY } else { "" })?;
        f.write_str(&words.join(","))
    }
}

impl fmt::Display for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Admin::Uid(id) => write!(f, "uid:{id}"),
            Admin::Gid(id) => write!(f, "gid:{id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(uid: u32, gids: &[u32]) -> Account {
        Account { uid, gids: gids.to_vec() }
    }

    #[test]
    fn admins_are_users_and_groups_by_number() {
        let admins: Admins = "uid:1000, gid:50".parse().expect("valid");
        assert_eq!(admins.to_string(), "uid:1000,gid:50");
        assert!(admins.include(Some(&account(1000, &[7]))));
        assert!(admins.include(Some(&account(7, &[7, 50]))));
        assert!(!admins.include(Some(&account(50, &[1000]))), "a uid is no gid");
        assert!(!admins.include(Some(&account(0, &[0]))), "root is one if it is named");
        assert!(!admins.include(None), "an account that is not known");
        assert!(admins.are_named() && !Admins::NOBODY.are_named());
        assert_eq!("none".parse(), Ok(Admins::NOBODY));
    }

    #[test]
    fn what_names_nobody_for_certain_is_refused() {
        let many: Vec<String> = (0..65).map(|n| format!("uid:{n}")).collect();
        for text in [
            "",
            "1000",
            "ann",
            "uid:",
            "uid:ann",
            "uid:-1",
            "uid:+1",
            "uid:01",
            "uid:4294967295",
            "uid:4294967296",
            "user:1",
            "uid:1,",
            ",uid:1",
            "uid:1,uid:1",
            "uid:1 gid:2",
            "none,uid:1",
            many.join(",").as_str(),
        ] {
            assert_eq!(text.parse::<Admins>(), Err(()), "{text:?}");
        }
    }
}
