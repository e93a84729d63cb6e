//! A path as a key of ordered maps.

use std::cmp::Ordering;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// Number of bytes compared at once.
const CHUNK: usize = 16;

/// A path ordered by its components, compared by bytes: [`Path`] splits both paths into components for every
/// comparison, which takes longer than reading a large tree.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct OrderedPath(PathBuf);

impl From<PathBuf> for OrderedPath {
    fn from(path: PathBuf) -> Self {
        let mut parts = path.as_os_str().as_encoded_bytes().split(|byte| *byte == b'/').skip(1);
        let is_plain = parts.all(|part| !part.is_empty() && part != b".");
        // Collected from components, equal paths have equal bytes.
        Self(if is_plain { path } else { path.components().collect() })
    }
}

impl From<&Path> for OrderedPath {
    fn from(path: &Path) -> Self {
        path.to_owned().into()
    }
}

impl Deref for OrderedPath {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Ord for OrderedPath {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(&self.0, &other.0)
    }
}

/// Compares two paths without superfluous separators by their components: a folder precedes everything below it, and
/// nothing else is between them.
pub(super) fn compare(a: &Path, b: &Path) -> Ordering {
    let (a, b) = (a.as_os_str().as_encoded_bytes(), b.as_os_str().as_encoded_bytes());
    // Paths of one root start alike: equal parts are compared in chunks.
    let (a_chunks, b_chunks) = (a.chunks_exact(CHUNK), b.chunks_exact(CHUNK));
    let start = a_chunks.zip(b_chunks).take_while(|(a, b)| a == b).count() * CHUNK;
    let same = start + a[start..].iter().zip(&b[start..]).take_while(|(a, b)| a == b).count();
    // A separator ends a component: it sorts before every byte that could extend the component.
    let rank = |byte: Option<&u8>| byte.map(|byte| if *byte == b'/' { 0 } else { u16::from(*byte) + 1 });
    rank(a.get(same)).cmp(&rank(b.get(same)))
}

impl PartialOrd for OrderedPath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn components_are_compared_by_bytes(
            start in "/?[ab/]{0,40}",
            a in "/[ab./!-]{0,12}",
            b in "/[ab./!-]{0,12}",
        ) {
            let (a, b) = (PathBuf::from(format!("{start}{a}")), PathBuf::from(format!("{start}{b}")));
            let ordered = OrderedPath::from(a.clone()).cmp(&OrderedPath::from(b.clone()));
            // `Path` itself orders `..` before every name; a name such as `!` precedes it in bytes.
            let components = |path: &Path| path.iter().map(|part| part.as_encoded_bytes().to_vec()).collect::<Vec<_>>();
            proptest::prop_assert_eq!(ordered, components(&a).cmp(&components(&b)));
        }
    }
}
