//! The public query sets, a corpus of skills, and random draws that every run repeats.
#![allow(dead_code, reason = "each example uses its part")]

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use skills_discovery::{Case, Document, Router, Weights, queries_jsonl, skills_jsonl};
use skills_skill::{parse, read_index_text};

/// The sets; the first has bodies.
pub const SETS: [&str; 5] = ["skilltrig", "metatool", "sealtools", "clinc150", "banking77"];

/// Skills with requests.
pub struct Set {
    /// The skills.
    pub skills: Vec<Document>,
    /// Requests that have a skill.
    pub queries: Vec<Case>,
    /// Requests that one certain skill must not win.
    pub near_misses: Vec<Case>,
}

fn cases(data: &Path, name: &str, file: &str) -> Option<Vec<Case>> {
    let text = std::fs::read_to_string(data.join("golden").join(name).join(file)).ok()?;
    Some(queries_jsonl(&text).unwrap())
}

/// The set of a name.
pub fn set(data: &Path, name: &str) -> Set {
    let skills = std::fs::read_to_string(data.join("golden").join(name).join("skills.jsonl")).unwrap();
    let near_misses = if name == "skilltrig" { cases(data, name, "out_of_scope.jsonl") } else { None };
    Set {
        skills: skills_jsonl(&skills).unwrap(),
        queries: cases(data, name, "queries.jsonl").unwrap(),
        near_misses: near_misses.unwrap_or_default(),
    }
}

/// Requests of everyday life that fit no skill of any of the sets.
pub fn strangers(data: &Path) -> Vec<Case> {
    cases(data, "clinc150", "out_of_scope.jsonl").unwrap()
}

/// A router over some skills.
pub fn filled(skills: Vec<Document>, weights: &Weights) -> Router {
    let mut router = Router::new(weights.clone());
    router.update(skills, &[]);
    router
}

fn files(folder: &Path, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().flatten().map(|e| e.path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, out);
        } else if path.file_name().is_some_and(|name| name == "SKILL.md") {
            out.push(path);
        }
    }
}

/// All usable skills of a folder, one for each id.
pub fn corpus(folder: &Path) -> Vec<Document> {
    let mut found = Vec::new();
    files(folder, &mut found);
    let mut ids = HashSet::new();
    let read = |file: PathBuf| {
        let skill = parse(&file, &std::fs::read(&file).ok()?, 0).ok()?;
        let text = read_index_text(&skill).ok()?;
        Some(Document::from_skill(&skill, Some(text)))
    };
    found.into_iter().filter_map(read).filter(|document| ids.insert(document.id.clone())).collect()
}

/// A small generator (xorshift).
pub struct Seeded(u64);

impl Seeded {
    /// From a seed other than 0.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) % n as u64) as usize
    }

    /// `n` of the skills.
    pub fn part(&mut self, mut all: Vec<Document>, n: usize) -> Vec<Document> {
        for at in 0..n.min(all.len()) {
            let other = at + self.below(all.len() - at);
            all.swap(at, other);
        }
        all.truncate(n);
        all
    }

    /// A text with one letter left out, doubled, replaced, or swapped with its neighbor.
    pub fn misspell(&mut self, text: &str) -> String {
        let mut chars: Vec<char> = text.chars().collect();
        let letters: Vec<usize> = (0..chars.len()).filter(|at| chars[*at].is_alphabetic()).collect();
        if letters.is_empty() {
            return text.to_owned();
        }
        let at = letters[self.below(letters.len())];
        let letter = char::from(b'a' + self.below(26) as u8);
        let turns = chars.get(at + 1).is_some_and(|next| next.is_alphabetic() && *next != chars[at]);
        match self.below(4) {
            0 => drop(chars.remove(at)),
            1 => chars.insert(at, letter),
            2 if turns => chars.swap(at, at + 1),
            _ => chars[at] = letter,
        }
        chars.into_iter().collect()
    }
}
