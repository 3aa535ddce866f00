//! Short names of snapshots, for people: the beginning of an id's random part, as long as it
//! has to be to mean no other snapshot and no tag here and now.

use std::collections::BTreeSet;

use jvs_repo::id::SnapshotId;
use jvs_repo::name::TagName;
use jvs_repo::store::Store;

use crate::catalog::Catalog;
use crate::error::SnapshotError;
use crate::select::goes_by;
use crate::tags;

/// Shorter ones would mean another snapshot soon.
const SHORTEST: usize = 6;

/// The snapshots and tags that a short name has to be told from.
#[derive(Debug, Default)]
pub struct ShortIds {
    /// Sorted by their random parts.
    ids: Vec<SnapshotId>,
    tags: BTreeSet<String>,
}

impl ShortIds {
    /// Of all that there are. Opens none of them.
    pub fn read(store: &dyn Store) -> Result<Self, SnapshotError> {
        let tags = tags::list(store)?.tags;
        Ok(Self::among(Catalog::new(store).list()?.snapshots, tags.keys()))
    }

    fn among<'t>(mut ids: Vec<SnapshotId>, tags: impl Iterator<Item = &'t TagName>) -> Self {
        ids.sort_unstable_by_key(|id| (id.random, id.created_ms));
        ids.dedup();
        ShortIds { ids, tags: tags.map(ToString::to_string).collect() }
    }

    /// The shortest name that means this snapshot alone; the whole id if there is none.
    pub fn of(&self, id: SnapshotId) -> String {
        let whole = id.to_string();
        let random = whole.split_once('-').map_or("", |(_, random)| random);
        let lengths = SHORTEST..=random.len();
        let short = lengths.map(|length| &random[..length]).find(|name| self.is_free(name, id));
        short.map_or_else(|| whole.clone(), str::to_owned)
    }

    /// Does this name mean nothing but `id`?
    fn is_free(&self, name: &str, id: SnapshotId) -> bool {
        if self.tags.contains(name) {
            return false;
        }
        // Only numbers can be the beginning of a time.
        if name.bytes().all(|byte| byte.is_ascii_digit()) {
            return !self.ids.iter().any(|other| *other != id && goes_by(*other, name));
        }
        let place = self.ids.partition_point(|other| other.random < id.random);
        let around = self.ids[place.saturating_sub(1)..].iter();
        let near = around.take_while(|other| other.random <= id.random);
        let after = self.ids.iter().skip(place).find(|other| other.random > id.random);
        !near.chain(after).any(|other| *other != id && goes_by(*other, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_795_036_506_076;

    fn short(all: &[(u64, u32)], tags: &[&str]) -> Vec<String> {
        let ids = all
            .iter()
            .map(|(created_ms, random)| SnapshotId { created_ms: *created_ms, random: *random });
        let ids: Vec<SnapshotId> = ids.collect();
        let tags: Vec<TagName> = tags.iter().map(|tag| tag.parse().expect("a name")).collect();
        let shorts = ShortIds::among(ids.clone(), tags.iter());
        ids.iter().map(|id| shorts.of(*id)).collect()
    }

    #[test]
    fn a_short_name_is_as_long_as_it_has_to_be() {
        assert_eq!(short(&[(MS, 0x4c71_b4e2)], &[]), ["4c71b4"]);
        let alike = [(MS, 0x4c71_b4e2), (MS + 1, 0x4c71_b4f0), (MS, 0x4c71_0000)];
        assert_eq!(short(&alike, &[]), ["4c71b4e", "4c71b4f", "4c7100"]);
        let equal = [(MS, 0x4c71_b4e2), (MS + 1, 0x4c71_b4e2)];
        let whole = ["1795036506076-4c71b4e2", "1795036506077-4c71b4e2"];
        assert_eq!(short(&equal, &[]), whole);
        assert_eq!(short(&[(MS, 0x4c71_b4e2)], &["4c71b4"]), ["4c71b4e"], "a tag comes first");
        let of_a_time = [(MS, 0x1795_0365), (MS, 0x4c71_b4e2)];
        assert_eq!(short(&of_a_time, &[])[0], "1795036506076-17950365");
    }

    /// Whatever there is: each short name means its snapshot and no other.
    #[test]
    fn a_short_name_means_one_snapshot() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for _ in 0..200 {
            // Alike on purpose: few bits differ, some are the digits of a time.
            let ids: Vec<SnapshotId> = (0..next() % 40)
                .map(|_| {
                    let base = if next() % 4 == 0 { 0x1795_0365_u64 } else { 0x4c71_b400 };
                    let random = u32::try_from(base | (next() % 64)).expect("32 bits");
                    SnapshotId { created_ms: MS + next() % 3, random }
                })
                .collect();
            let shorts = ShortIds::among(ids.clone(), [].into_iter());
            for id in &ids {
                let name = shorts.of(*id);
                let meant: BTreeSet<_> = match name.parse::<SnapshotId>() {
                    Ok(whole) => [whole].into(),
                    Err(_) => ids.iter().copied().filter(|id| goes_by(*id, &name)).collect(),
                };
                assert_eq!(meant, [*id].into(), "{name} of {ids:?}");
            }
        }
    }
}
