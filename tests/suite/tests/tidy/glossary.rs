//! The glossary: each word once, in order, and used where its link leads.

use crate::source::root;

/// The rows: a word, its meaning, and the page that says more.
fn rows(text: &str) -> Vec<[&str; 3]> {
    let cells = text.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    cells
        .map(|line| line.split(" | ").collect::<Vec<_>>())
        .map(|cells| <[&str; 3]>::try_from(cells).expect("three cells in a row of the glossary"))
        .skip(1)
        .collect()
}

#[test]
fn every_word_of_the_glossary_is_there_once_and_used_where_its_link_leads() {
    let spec = root().join("spec");
    let text = fs_err::read_to_string(spec.join("glossary.md")).expect("the glossary");
    let rows = rows(&text);
    assert!(rows.len() > 40, "the rows are found: {}", rows.len());
    let words: Vec<_> = rows.iter().map(|[word, ..]| word.to_lowercase()).collect();
    assert!(words.is_sorted_by(|one, next| one < next), "not in order, or twice: {words:#?}");
    for [word, _, link] in rows {
        let page = link.split(['(', ')']).nth(1).expect("a link in the last cell");
        let page = fs_err::read_to_string(spec.join(page)).expect("the page of a word");
        let page: Vec<_> = page.split_whitespace().collect();
        let used = page.join(" ").to_lowercase().contains(&word.to_lowercase());
        assert!(used, "{word} is not on the page that its link leads to, {link}");
    }
}
