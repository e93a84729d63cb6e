//! The static embedding: word pieces, each with a vector whose length is its learned weight.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use half::f16;

use super::fast_hash::hash;
use super::tokenize::fold_width;
use skills_skill::slice;

/// The embedded table.
static SHIPPED: &[u8] = include_bytes!("../../assets/embedding/skill-embed-128.bin");

/// Number of dimensions of a vector.
pub(crate) const DIM: usize = 128;

/// A model file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid embedding: {0}")]
pub struct EmbeddingError(&'static str);

/// A word piece and its range in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Index into the table.
    pub token: u16,
    /// First byte in the text.
    pub start: u32,
    /// Byte after the last.
    pub end: u32,
}

/// Tokens and their vectors, read in place.
#[derive(Debug)]
pub struct Embedding {
    bytes: Vec<u8>,
    shipped: bool,
    tokens: usize,
    /// Length of the longest token in bytes: no word piece is longer.
    longest: usize,
    scales: usize,
    matrix: usize,
    offsets: usize,
    blob: usize,
    /// Tokens by the hash of their text: open addressing; the size is a power of two.
    table: Vec<u16>,
}

/// Marks an empty entry of the hash table.
const EMPTY: u16 = u16::MAX;

impl Embedding {
    /// Returns the embedded table, which is parsed once.
    ///
    /// # Errors
    /// Returns an error if the embedded file is damaged.
    pub fn shipped() -> Result<Arc<Self>, EmbeddingError> {
        static ONCE: OnceLock<Result<Arc<Embedding>, EmbeddingError>> = OnceLock::new();
        ONCE.get_or_init(|| Self::checked(Vec::new(), true).map(Arc::new)).clone()
    }

    /// Parses a table. Format, little endian: magic `SKEMB01\0`; u32 version (1), n, d; u32 byte offsets of scales (n
    /// × f16), matrix (n × d × i8), string offsets ((n+1) × u32), string blob; u32 file size.
    ///
    /// # Errors
    /// Returns an error if the bytes do not have that format.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, EmbeddingError> {
        Self::checked(bytes, false)
    }

    fn checked(own: Vec<u8>, shipped: bool) -> Result<Self, EmbeddingError> {
        let bytes = if shipped { SHIPPED } else { &own };
        if bytes.len() < 64 || &bytes[..8] != b"SKEMB01\0" {
            return Err(EmbeddingError("it does not start with SKEMB01"));
        }
        let word = |at: usize| u32_at(bytes, at) as usize;
        if word(8) != 1 || word(16) != DIM {
            return Err(EmbeddingError("its version is not 1, or its vectors do not have 128 values"));
        }
        let (tokens, scales, matrix, offsets, blob) = (word(12), word(20), word(24), word(28), word(32));
        if word(36) != bytes.len() {
            return Err(EmbeddingError("truncated"));
        }
        if tokens >= usize::from(EMPTY)
            || scales + tokens * 2 > bytes.len()
            || matrix + tokens * DIM > bytes.len()
            || offsets + (tokens + 1) * 4 > bytes.len()
            || blob > bytes.len()
        {
            return Err(EmbeddingError("its parts are out of bounds"));
        }
        let ends: Vec<usize> = (0..=tokens).map(|i| word(offsets + i * 4)).collect();
        if ends.windows(2).any(|w| w[0] > w[1]) || ends.last().is_none_or(|e| blob + e > bytes.len()) {
            return Err(EmbeddingError("its strings are out of order"));
        }
        let longest = ends.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0);
        let table = vec![EMPTY; (tokens * 2).next_power_of_two()];
        let mut model = Self { shipped, tokens, longest, scales, matrix, offsets, blob, table, bytes: own };
        for token in 0..tokens {
            let place = model.place(model.token_bytes(token));
            model.table[place] = token as u16;
        }
        Ok(model)
    }

    fn bytes(&self) -> &[u8] {
        if self.shipped { SHIPPED } else { &self.bytes }
    }

    /// Returns the number of tokens.
    pub(crate) fn len(&self) -> usize {
        self.tokens
    }

    /// Returns the text of a token; continuation pieces of a word start with `##`.
    pub(crate) fn text(&self, token: u16) -> &str {
        std::str::from_utf8(self.token_bytes(usize::from(token))).unwrap_or_default()
    }

    fn token_bytes(&self, i: usize) -> &[u8] {
        let bytes = self.bytes();
        let at = self.offsets + i * 4;
        let (from, to) = (u32_at(bytes, at) as usize, u32_at(bytes, at + 4) as usize);
        &bytes[self.blob + from..self.blob + to]
    }

    /// Finds the token with exactly that text.
    pub(crate) fn find(&self, text: &str) -> Option<u16> {
        let token = self.table[self.place(text.as_bytes())];
        (token != EMPTY).then_some(token)
    }

    /// Returns the position of a token in the hash table, or of the empty entry where it would be inserted.
    fn place(&self, text: &[u8]) -> usize {
        let mask = self.table.len() - 1;
        let mut at = hash(text) as usize & mask;
        while self.table[at] != EMPTY && self.token_bytes(usize::from(self.table[at])) != text {
            at = (at + 1) & mask;
        }
        at
    }

    /// Returns the only complete word of the table that is one edit away from a word and has the same first letter.
    pub(crate) fn only_near(&self, word: &str) -> Option<String> {
        let first = word.get(..1)?;
        let from = self.from(first);
        let mut near = (from..self.tokens)
            .map(|i| self.token_bytes(i))
            .take_while(|bytes| bytes.starts_with(first.as_bytes()))
            .filter(|bytes| bytes.len().abs_diff(word.len()) <= 1)
            .filter_map(|bytes| std::str::from_utf8(bytes).ok())
            .filter(|token| token.bytes().all(|b| b.is_ascii_lowercase()))
            .filter(|token| strsim::osa_distance(word, token) == 1);
        let only = near.next()?.to_owned();
        near.next().is_none().then_some(only)
    }

    /// Returns the first token that is not less than a text.
    fn from(&self, text: &str) -> usize {
        let (mut low, mut high) = (0, self.tokens);
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.token_bytes(middle) < text.as_bytes() { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// Adds a token's vector to a sum.
    pub(crate) fn add(&self, token: u16, sum: &mut [f64; DIM]) {
        for (s, v) in sum.iter_mut().zip(self.vector(token)) {
            *s += v;
        }
    }

    /// Computes a token's vector: scale times row.
    pub(crate) fn vector(&self, token: u16) -> impl Iterator<Item = f64> + '_ {
        let bytes = self.bytes();
        let i = usize::from(token);
        let at = self.scales + i * 2;
        let scale = f16::from_le_bytes([bytes[at], bytes[at + 1]]).to_f64();
        let row = self.matrix + i * DIM;
        bytes[row..row + DIM].iter().map(move |b| f64::from(b.cast_signed()) * scale)
    }

    /// Computes the inner product of a token's vector with another vector.
    pub(crate) fn product(&self, token: u16, other: &[f64; DIM]) -> f64 {
        const LANES: usize = 8;
        let bytes = self.bytes();
        let i = usize::from(token);
        let at = self.scales + i * 2;
        let scale = f16::from_le_bytes([bytes[at], bytes[at + 1]]).to_f64();
        let row = self.matrix + i * DIM;
        let mut sums = [0.0; LANES];
        let (rows, _) = bytes[row..row + DIM].as_chunks::<LANES>();
        let (others, _) = other.as_chunks::<LANES>();
        for (row, other) in rows.iter().zip(others) {
            for lane in 0..LANES {
                sums[lane] += f64::from(row[lane].cast_signed()) * other[lane];
            }
        }
        scale * sums.iter().sum::<f64>()
    }

    /// Computes the inner product with an integer vector: faster, and exact to about four digits.
    pub(crate) fn rough_product(&self, token: u16, other: &[i16; DIM]) -> f64 {
        let bytes = self.bytes();
        let i = usize::from(token);
        let at = self.scales + i * 2;
        let row = self.matrix + i * DIM;
        let scale = f16::from_le_bytes([bytes[at], bytes[at + 1]]).to_f64();
        let pairs = bytes[row..row + DIM].iter().zip(other);
        let sum: i32 = pairs.map(|(a, b)| i32::from(i16::from(a.cast_signed())) * i32::from(*b)).sum();
        scale * f64::from(sum)
    }

    /// Splits a text into at most `limit` word pieces. Each run of ASCII letters and digits is one token if it is in
    /// the table, else its camelCase parts are split by greedy longest match. A part that cannot be covered completely
    /// yields no pieces.
    pub(crate) fn pieces(&self, text: &str, limit: usize) -> Vec<Piece> {
        let Cow::Owned(folded) = fold_width(text) else { return self.pieces_of(text, limit) };
        // Full-width characters are longer than the usual ones.
        let mut starts: Vec<u32> = vec![0; folded.len() + 1];
        for ((from, _), (to, c)) in text.char_indices().zip(folded.char_indices()) {
            starts[to] = from as u32;
            starts[to + c.len_utf8()] = text.len() as u32;
        }
        let mut out = self.pieces_of(&folded, limit);
        for found in &mut out {
            (found.start, found.end) = (starts[found.start as usize], starts[found.end as usize]);
        }
        out
    }

    fn pieces_of(&self, text: &str, limit: usize) -> Vec<Piece> {
        let mut out = Vec::new();
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() && out.len() < limit {
            if !bytes[at].is_ascii_alphanumeric() {
                at += 1;
                continue;
            }
            let start = at;
            while at < bytes.len() && bytes[at].is_ascii_alphanumeric() {
                at += 1;
            }
            self.run(text, start, at, &mut out);
        }
        out.truncate(limit);
        out
    }

    fn run(&self, text: &str, start: usize, end: usize, out: &mut Vec<Piece>) {
        if let Some(token) = self.find(&slice(text, start..end).to_ascii_lowercase()) {
            out.push(Piece { token, start: start as u32, end: end as u32 });
            return;
        }
        let bytes = text.as_bytes();
        let mut from = start;
        for at in start + 1..=end {
            let cut = at == end
                || (bytes[at].is_ascii_uppercase()
                    && (bytes[at - 1].is_ascii_lowercase()
                        || (bytes[at - 1].is_ascii_uppercase()
                            && at + 1 < end
                            && bytes[at + 1].is_ascii_lowercase())));
            if cut {
                self.part(text, from, at, out);
                from = at;
            }
        }
    }

    fn part(&self, text: &str, start: usize, end: usize, out: &mut Vec<Piece>) {
        let word = slice(text, start..end).to_ascii_lowercase();
        let keep = out.len();
        let mut from = 0;
        let mut key = String::with_capacity(word.len() + 2);
        while from < word.len() {
            let longest = word.len().min(from + self.longest);
            let found = (from + 1..=longest).rev().find_map(|to| {
                key.clear();
                if from > 0 {
                    key.push_str("##");
                }
                key.push_str(slice(&word, from..to));
                self.find(&key).map(|token| (token, to))
            });
            let Some((token, to)) = found else {
                out.truncate(keep);
                return;
            };
            out.push(Piece { token, start: (start + from) as u32, end: (start + to) as u32 });
            from = to;
        }
    }

    /// Computes the vector of a text: the normalized sum of its pieces, or zero if there are none.
    pub(crate) fn encode(&self, text: &str, limit: usize) -> [f64; DIM] {
        let mut sum = [0.0; DIM];
        for token in self.pieces(text, limit) {
            self.add(token.token, &mut sum);
        }
        normalize(&mut sum);
        sum
    }
}

/// Scales a vector to length one; a zero vector stays zero.
pub(crate) fn normalize(v: &mut [f64; DIM]) {
    let length = dot(v, v).sqrt();
    if length > 0.0 {
        for x in v {
            *x /= length;
        }
    }
}

/// Computes the inner product.
pub(crate) fn dot(a: &[f64; DIM], b: &[f64; DIM]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts with the token ids and the first eight values of their vectors as computed by the original model.
    #[derive(serde::Deserialize)]
    struct Vectors {
        vectors: Vec<Case>,
    }

    #[derive(serde::Deserialize)]
    struct Case {
        text: String,
        ids: Vec<u16>,
        vec8: Vec<f64>,
    }

    fn check(json: &str) {
        let model = Embedding::shipped().unwrap();
        let cases: Vectors = serde_json::from_str(json).unwrap();
        assert!(cases.vectors.len() > 3);
        for case in cases.vectors {
            let ids: Vec<u16> = model.pieces(&case.text, 256).iter().map(|p| p.token).collect();
            assert_eq!(ids, case.ids, "{}", case.text);
            let vector = model.encode(&case.text, 256);
            for (got, want) in vector.iter().zip(&case.vec8) {
                assert!((got - want).abs() < 2e-5, "{}: {got} for {want}", case.text);
            }
        }
    }

    #[test]
    fn tokens_and_vectors_match_the_reference() {
        check(include_str!("../../tests/fixtures/discovery/vectors.json"));
    }

    #[test]
    fn all_test_vectors_match() {
        match std::env::var_os("SKILLS_TEST_DATA") {
            Some(dir) => {
                let path = std::path::Path::new(&dir).join("embedding/test-vectors.json");
                check(&std::fs::read_to_string(path).unwrap());
            }
            None => {
                eprintln!("SKIPPED: SKILLS_TEST_DATA is not set; test vectors of the embedding not checked");
            }
        }
    }

    #[test]
    fn damaged_files_are_refused_with_a_reason() {
        let message = |bytes: Vec<u8>| Embedding::parse(bytes).unwrap_err().to_string();
        assert_eq!(message(vec![0; 80]), "invalid embedding: it does not start with SKEMB01");
        assert_eq!(message(SHIPPED[..1000].to_vec()), "invalid embedding: truncated");
        let mut bytes = SHIPPED.to_vec();
        bytes[28..32].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(message(bytes), "invalid embedding: its parts are out of bounds");
    }
}
