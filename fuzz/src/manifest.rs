//! The manifest of a snapshot.

use std::io::{self, Read};

use jvs_snapshot::manifest::{MAX_DEPTH, MAX_PATH_BYTES, ManifestReader, ManifestWriter, TreePath};

/// What is read is written again as it was, byte for byte up to where reading ended: a
/// tree has one spelling. No path leaves the tree.
pub(crate) fn manifest(data: &[u8]) {
    let Ok(mut reader) = ManifestReader::open(InPieces(data)) else { return };
    let mut written = Vec::new();
    let mut writer = ManifestWriter::new(&mut written);
    let mut previous: Option<TreePath> = None;
    let summary = loop {
        match reader.read() {
            Ok(Some((entry, hints))) => {
                let path = &entry.path;
                assert!(previous.as_ref().is_none_or(|previous| previous < path), "in order");
                assert!(path.as_bytes().len() <= MAX_PATH_BYTES);
                assert!(path.components().count() <= MAX_DEPTH);
                assert!(path.components().all(|name| name != b"." && name != b".."));
                writer.write(&entry, hints).expect("what was read can be written");
                previous = Some(entry.path);
            }
            Ok(None) => break reader.summary(),
            Err(_) => break None,
        }
    };
    assert!(matches!(reader.read(), Ok(None)), "an end is for good");
    let (_, wrote) = writer.finish().expect("written to memory");
    let said = summary.map(|summary| (summary == wrote, written == data));
    assert!(said.is_none_or(|same| same == (true, true)), "another spelling: {summary:?}");
    if summary.is_none() {
        // The entries that were read, without the end: counts and a hash of 32 bytes.
        let entries = written.len() - 32 - 3.min(written.len());
        let shared = written.iter().zip(data).take_while(|(one, other)| one == other).count();
        assert!(shared + 40 >= entries.min(data.len()), "{shared} of {entries} bytes are the same");
        if previous.is_some() {
            let whole = ManifestReader::open(written.as_slice()).and_then(ManifestReader::finish);
            assert_eq!(whole.ok(), Some(wrote), "what was written is read");
        }
    }
}

/// A file that is read in pieces which end anywhere.
struct InPieces<'d>(&'d [u8]);

impl Read for InPieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let piece = (1 + self.0.len() % 61).min(into.len());
        self.0.read(&mut into[..piece])
    }
}
