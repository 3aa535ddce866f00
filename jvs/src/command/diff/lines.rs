//! Which lines were taken away and which were added: Myers' shortest edit script, as far
//! as it is short.

/// One line of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DiffLine<'t> {
    Same(&'t [u8]),
    Removed(&'t [u8]),
    Added(&'t [u8]),
}

impl<'t> DiffLine<'t> {
    /// Are both the same, or removed, or added?
    pub(super) fn is_of_the_kind(&self, other: &DiffLine<'t>) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// What it says.
    pub(super) fn bytes(&self) -> &'t [u8] {
        match self {
            DiffLine::Same(bytes) | DiffLine::Removed(bytes) | DiffLine::Added(bytes) => bytes,
        }
    }
}

/// More edits than this are not looked for: then all lines between the first and the
/// last difference are shown as replaced, which is as true, and longer.
const MOST_EDITS: usize = 1000;

/// The lines of both texts in one order.
pub(super) fn compare<'t>(a: &[&'t [u8]], b: &[&'t [u8]]) -> Vec<DiffLine<'t>> {
    let head = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let (a_rest, b_rest) = (&a[head..], &b[head..]);
    let tail = a_rest.iter().rev().zip(b_rest.iter().rev()).take_while(|(x, y)| x == y).count();
    let (a_mid, b_mid) = (&a_rest[..a_rest.len() - tail], &b_rest[..b_rest.len() - tail]);
    let mut lines: Vec<DiffLine<'t>> = a[..head].iter().map(|line| DiffLine::Same(line)).collect();
    match shortest(a_mid, b_mid) {
        Some(middle) => lines.extend(middle),
        None => {
            lines.extend(a_mid.iter().map(|line| DiffLine::Removed(line)));
            lines.extend(b_mid.iter().map(|line| DiffLine::Added(line)));
        }
    }
    lines.extend(a_rest[a_rest.len() - tail..].iter().map(|line| DiffLine::Same(line)));
    lines
}

/// How far each diagonal was reached with so many edits; diagonal `k` is at `k + MOST_EDITS + 1`.
type Reached = Vec<usize>;

fn shortest<'t>(a: &[&'t [u8]], b: &[&'t [u8]]) -> Option<Vec<DiffLine<'t>>> {
    let most = (a.len() + b.len()).min(MOST_EDITS);
    let middle = most + 1;
    let mut reached: Reached = vec![0; 2 * middle + 1];
    let mut trace: Vec<Reached> = Vec::new();
    for edits in 0..=most {
        trace.push(reached[middle - edits..=middle + edits].to_vec());
        for step in 0..=edits {
            // From the diagonal `edits` below to the one `edits` above, every second one.
            let at = middle + 2 * step - edits;
            let down = step == 0 || step != edits && reached[at - 1] < reached[at + 1];
            let mut x = if down { reached[at + 1] } else { reached[at - 1] + 1 };
            let Some(mut y) = (x + middle).checked_sub(at) else { continue };
            while x < a.len() && y < b.len() && a[x] == b[y] {
                (x, y) = (x + 1, y + 1);
            }
            reached[at] = x;
            if x >= a.len() && y >= b.len() {
                return Some(walk_back(a, b, &trace, middle));
            }
        }
    }
    None
}

fn walk_back<'t>(
    a: &[&'t [u8]],
    b: &[&'t [u8]],
    trace: &[Reached],
    middle: usize,
) -> Vec<DiffLine<'t>> {
    let (mut x, mut y) = (a.len(), b.len());
    let mut lines = Vec::new();
    for (edits, reached) in trace.iter().enumerate().rev() {
        if edits == 0 {
            break;
        }
        let diagonal = x + middle - y;
        let low = middle - edits;
        let at = |diagonal: usize| reached[diagonal - low];
        let down =
            diagonal == low || diagonal != middle + edits && at(diagonal - 1) < at(diagonal + 1);
        let from = if down { diagonal + 1 } else { diagonal - 1 };
        let from_x = at(from);
        let from_y = from_x + middle - from;
        while x > from_x && y > from_y {
            (x, y) = (x - 1, y - 1);
            lines.push(DiffLine::Same(a[x]));
        }
        if down {
            y -= 1;
            lines.push(DiffLine::Added(b[y]));
        } else {
            x -= 1;
            lines.push(DiffLine::Removed(a[x]));
        }
    }
    while x > 0 {
        x -= 1;
        lines.push(DiffLine::Same(a[x]));
    }
    lines.reverse();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(seed: u64, length: u64) -> Vec<&'static [u8]> {
        const LETTERS: [&[u8]; 4] = [b"a", b"b", b"c", b"d"];
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        (0..length).map(|_| LETTERS[(next() % 4) as usize]).collect()
    }

    #[test]
    fn both_texts_can_be_read_off_a_comparison() {
        for seed in 1..400 {
            let (a, b) = (texts(seed, seed % 13), texts(seed + 1000, seed % 7 + seed % 5));
            let lines = compare(&a, &b);
            let old = lines.iter().filter_map(|line| match line {
                DiffLine::Same(text) | DiffLine::Removed(text) => Some(*text),
                DiffLine::Added(_) => None,
            });
            assert_eq!(old.collect::<Vec<_>>(), a, "seed {seed}");
            let new = lines.iter().filter_map(|line| match line {
                DiffLine::Same(text) | DiffLine::Added(text) => Some(*text),
                DiffLine::Removed(_) => None,
            });
            assert_eq!(new.collect::<Vec<_>>(), b, "seed {seed}");
        }
    }

    #[test]
    fn no_more_is_changed_than_has_to_be() {
        let lines = |text: &'static str| text.split(' ').map(str::as_bytes).collect::<Vec<_>>();
        let changed = |a, b| {
            let found = compare(&lines(a), &lines(b));
            found.iter().filter(|line| !matches!(line, DiffLine::Same(_))).count()
        };
        assert_eq!(changed("a b c a b b a", "c b a b a c"), 5);
        assert_eq!(changed("a b c", "a b c"), 0);
        assert_eq!(changed("a b c d", "a x c d"), 2);
        assert_eq!(changed("a", "b c d"), 4);
    }

    /// Every second line differs: each is two edits, and those between them are the same.
    #[test]
    fn what_takes_up_to_1000_edits_is_compared_and_what_takes_more_is_replaced() {
        let same = |different: usize| {
            let text = |own: &'static [u8]| {
                let pair = move |n: usize| [own, if n.is_multiple_of(2) { b"x" } else { b"y" }];
                (0..different).flat_map(pair).chain([own]).collect::<Vec<&[u8]>>()
            };
            let (a, b) = (text(b"a"), text(b"b"));
            let lines = compare(&a, &b);
            assert_eq!(lines.iter().filter(|it| matches!(it, DiffLine::Removed(_))).count(), {
                a.len() - lines.iter().filter(|it| matches!(it, DiffLine::Same(_))).count()
            });
            lines.iter().filter(|line| matches!(line, DiffLine::Same(_))).count()
        };
        assert_eq!(same(499), 499, "1000 edits");
        assert_eq!(same(500), 0, "1002 edits");
    }
}
