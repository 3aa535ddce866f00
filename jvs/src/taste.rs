//! What a user likes to see, from their own configuration: `ui.color` (`auto` or `never`)
//! and `ui.pager` (a command, or `never`). Read only where somebody looks at a terminal, so
//! that programs pay nothing for it. A file that cannot be read says nothing.

use toml_edit::{Document, Item};

use crate::context::Env;
use crate::trust;

/// What is asked where nothing else is said.
const USUAL_PAGER: &str = "less";

/// One user's taste.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Taste {
    no_colours: bool,
    pager: Option<String>,
}

impl Taste {
    pub(crate) fn of(env: Env<'_>) -> Self {
        trust::own_configuration(env).map(|text| Taste::parse(&text)).unwrap_or_default()
    }

    fn parse(text: &str) -> Self {
        let Ok(document) = Document::parse(text) else { return Taste::default() };
        let ui = document.get("ui");
        let said = |name: &str| ui.and_then(|ui| ui.get(name)).and_then(Item::as_str);
        Taste { no_colours: said("color") == Some("never"), pager: said("pager").map(Into::into) }
    }

    pub(crate) fn likes_colours(&self) -> bool {
        !self.no_colours
    }

    /// The pager's command; `None` if there shall be none. `JVS_PAGER` comes before the
    /// configuration, and that before `PAGER`, as with git.
    pub(crate) fn pager(&self, env: Env<'_>) -> Option<String> {
        let variable = |name: &str| env.get(name).and_then(|value| value.into_string().ok());
        let said = variable("JVS_PAGER").or_else(|| self.pager.clone());
        let said = said.or_else(|| variable("PAGER")).unwrap_or_else(|| USUAL_PAGER.to_owned());
        (!["", "cat", "never"].contains(&said.trim())).then_some(said)
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    #[test]
    fn a_configuration_says_what_its_user_likes() {
        let taste = Taste::parse("[ui]\ncolor = \"never\"\npager = \"most\"\n");
        assert!(!taste.likes_colours());
        assert_eq!(taste.pager.as_deref(), Some("most"));
        for odd in ["", "[ui]\ncolor = 3\npager = [1]\n", "[[", "ui = 1"] {
            assert_eq!(Taste::parse(odd), Taste::default(), "{odd}");
        }
    }

    #[test]
    fn the_nearest_word_about_the_pager_counts() {
        let pager = |variables: &[(&str, &str)], configured: Option<&str>| {
            let get = |name: &str| {
                let found = variables.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| OsString::from(value))
            };
            let taste = Taste { no_colours: false, pager: configured.map(Into::into) };
            taste.pager(Env::new(&get))
        };
        assert_eq!(pager(&[], None).as_deref(), Some("less"));
        assert_eq!(pager(&[("PAGER", "more")], None).as_deref(), Some("more"));
        assert_eq!(pager(&[("PAGER", "more")], Some("most")).as_deref(), Some("most"));
        assert_eq!(pager(&[("JVS_PAGER", "w3m")], Some("most")).as_deref(), Some("w3m"));
        for none in ["", "cat", "never"] {
            assert_eq!(pager(&[("JVS_PAGER", none)], Some("most")), None, "{none}");
        }
    }
}
