//! A fast hash for short keys. It is not collision-resistant: crafted keys slow down only the lookup of the words of
//! the skill that contains them.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// Builds [`Fast`] hashers.
pub(crate) type FastBuildHasher = BuildHasherDefault<Fast>;

/// A map that uses [`Fast`].
pub(crate) type FastMap<K, V> = HashMap<K, V, FastBuildHasher>;

/// A set that uses [`Fast`].
pub(crate) type FastSet<K> = HashSet<K, FastBuildHasher>;

/// Multiply and rotate, eight bytes at a time (the scheme of Firefox's hasher).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Fast(u64);

impl Fast {
    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for Fast {
    fn finish(&self) -> u64 {
        // The hash tables use the lowest and the highest bits: mix once more (the finalizer of MurmurHash3).
        let h = (self.0 ^ (self.0 >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        h ^ (h >> 33)
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.mix(u64::from_le_bytes(last) ^ ((rest.len() as u64) << 56));
    }

    fn write_u8(&mut self, n: u8) {
        self.mix(u64::from(n));
    }

    fn write_u32(&mut self, n: u32) {
        self.mix(u64::from(n));
    }

    fn write_u64(&mut self, n: u64) {
        self.mix(n);
    }

    fn write_usize(&mut self, n: usize) {
        self.mix(n as u64);
    }
}

/// Hashes a text.
pub(crate) fn hash(text: impl AsRef<[u8]>) -> u64 {
    let mut hasher = Fast::default();
    hasher.write(text.as_ref());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_texts_spread_over_small_tables() {
        let places: HashSet<u64> = (0..1000).map(|i| hash(format!("stem{i}")) & 0xFFFF).collect();
        assert!(places.len() > 970, "{}", places.len());
        assert_ne!(hash("a"), hash("a\0"));
    }
}
