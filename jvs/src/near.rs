//! What was probably meant by a word that is none: names that differ from it by few slips
//! of the fingers, the likeliest first.

/// Longest word that is looked at, in characters: nobody mistypes a longer one.
const LONGEST: usize = 80;

/// How many are offered at most.
const OFFERED: usize = 3;

/// The names that `word` was probably meant to be: one slip for every three characters,
/// and no fewer than one. The likeliest first; of equals the one with the same beginning.
pub(crate) fn nearest<'n>(word: &str, names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let letters: Vec<char> = word.chars().take(LONGEST + 1).collect();
    if letters.is_empty() || letters.len() > LONGEST {
        return Vec::new();
    }
    let most = (letters.len() / 3).max(1);
    let mut near: Vec<(usize, usize, &str)> = Vec::new();
    for name in names {
        let other: Vec<char> = name.chars().take(LONGEST + 1).collect();
        let slips = slips(&letters, &other);
        if slips <= most && slips < letters.len() && name != word {
            let alike = letters.iter().zip(&other).take_while(|(a, b)| a == b).count();
            near.push((slips, usize::MAX - alike, name));
        }
    }
    near.sort_unstable();
    near.dedup();
    near.into_iter().map(|(_, _, name)| name).take(OFFERED).collect()
}

/// How many letters were left out, added, mistaken or typed in the wrong order (optimal
/// string alignment).
fn slips(a: &[char], b: &[char]) -> usize {
    let width = b.len() + 1;
    let mut rows: Vec<Vec<usize>> = vec![(0..width).collect()];
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1; width];
        for (j, y) in b.iter().enumerate() {
            let changed = rows[i][j] + usize::from(x != y);
            row[j + 1] = changed.min(row[j] + 1).min(rows[i][j + 1] + 1);
            let swapped = i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y;
            if swapped {
                row[j + 1] = row[j + 1].min(rows[i - 1][j - 1] + 1);
            }
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERBS: [&str; 8] =
        ["audit", "status", "shell", "history", "lock", "run", "acquire", "gc"];

    #[test]
    fn the_likeliest_comes_first_and_what_is_far_off_does_not_come() {
        for (word, meant) in [
            ("stauts", &["status"][..]),
            ("histroy", &["history"]),
            ("aquire", &["acquire"]),
            ("rnu", &["run"]),
            ("loc", &["lock"]),
            ("undo", &[]),
            ("version", &[]),
            ("", &[]),
            ("x", &[]),
        ] {
            assert_eq!(nearest(word, VERBS), meant, "{word}");
        }
        assert_eq!(nearest("mian", ["main2", "man", "main"]), ["main", "man"]);
        assert_eq!(nearest("v1", ["w1", "v2", "v3", "v1"]), ["v2", "v3", "w1"]);
        assert!(nearest(&"x".repeat(1000), ["x"]).is_empty());
    }
}
