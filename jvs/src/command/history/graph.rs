//! How snapshots descend from each other, drawn with lines.

use std::fmt::Write;

use jvs_repo::id::SnapshotId;
use jvs_snapshot::Descriptor;

/// Draws `shown`, newest first, one line per snapshot with its `label`. Every
/// snapshot follows one at most, so lines only ever run together downwards.
pub(super) fn draw(shown: &[Descriptor], label: impl Fn(&Descriptor) -> String) -> String {
    let steps: Vec<(SnapshotId, Option<SnapshotId>)> =
        shown.iter().map(|it| (it.snapshot_id, it.before())).collect();
    drawn(&steps, |at| label(&shown[at]))
}

/// The same of what each follows.
fn drawn<I: Copy + PartialEq>(steps: &[(I, Option<I>)], label: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    // Which snapshot each line leads down to.
    let mut lines: Vec<I> = Vec::new();
    for (number, (id, before)) in steps.iter().enumerate() {
        let mine = lines.iter().position(|to| to == id).unwrap_or_else(|| {
            lines.push(*id);
            lines.len() - 1
        });
        // Those that lead to the same one join it here, rightmost first.
        while let Some(other) = lines.iter().rposition(|to| to == id).filter(|at| *at > mine) {
            for at in 0..other {
                // It runs below those between.
                text.push_str(match at + 1 == other {
                    true => "|/",
                    false if at >= mine => "|_",
                    false => "| ",
                });
            }
            // What was to the right of it moves up.
            text.push_str(&" /".repeat(lines.len() - other - 1));
            text.push('\n');
            lines.remove(other);
        }
        for at in 0..lines.len() {
            text.push_str(if at == mine { "* " } else { "| " });
        }
        let _ = writeln!(text, " {}", label(number));
        match before.filter(|before| steps.iter().any(|(id, _)| id == before)) {
            Some(before) => lines[mine] = before,
            None => {
                lines.remove(mine);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_join_below_those_between_and_the_others_move_up() {
        let of = |steps: &[(u8, Option<u8>)]| drawn(steps, |at| steps[at].0.to_string());
        let between = [(4, Some(1)), (3, Some(0)), (2, Some(1)), (1, Some(0)), (0, None)];
        assert_eq!(of(&between), "*  4\n| *  3\n| | *  2\n|_|/\n* |  1\n|/\n*  0\n");
        let right = [(4, Some(1)), (3, Some(1)), (2, Some(0)), (1, Some(0)), (0, None)];
        assert_eq!(of(&right), "*  4\n| *  3\n| | *  2\n|/ /\n* |  1\n|/\n*  0\n");
    }
}
