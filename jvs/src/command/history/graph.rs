//! How snapshots descend from each other, drawn with lines.

use std::fmt::Write;

use jvs_repo::id::SnapshotId;
use jvs_snapshot::Descriptor;

/// Draws `shown`, newest first, one line per snapshot with its `label`. Every
/// snapshot follows one at most, so lines only ever run together downwards.
pub(super) fn draw(shown: &[Descriptor], label: impl Fn(&Descriptor) -> String) -> String {
    let mut text = String::new();
    // Which snapshot each line leads down to.
    let mut lines: Vec<SnapshotId> = Vec::new();
    for descriptor in shown {
        let id = descriptor.snapshot_id;
        let mine = lines.iter().position(|to| *to == id).unwrap_or_else(|| {
            lines.push(id);
            lines.len() - 1
        });
        // Those that lead to the same one join it here, rightmost first.
        while let Some(other) = lines.iter().rposition(|to| *to == id).filter(|at| *at > mine) {
            for at in 0..other {
                text.push_str(if at + 1 == other { "|/" } else { "| " });
            }
            text.push('\n');
            lines.remove(other);
        }
        for at in 0..lines.len() {
            text.push_str(if at == mine { "* " } else { "| " });
        }
        let _ = writeln!(text, " {}", label(descriptor));
        match descriptor.before().filter(|before| shown.iter().any(|d| d.snapshot_id == *before)) {
            Some(before) => lines[mine] = before,
            None => {
                lines.remove(mine);
            }
        }
    }
    text
}
