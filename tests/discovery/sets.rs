//! The public query sets in the folder of `SKILLS_TEST_DATA`.
#![allow(dead_code, reason = "each test file uses its part")]

use std::path::PathBuf;

use skills_discovery::{Case, Document, Router, Weights, queries_jsonl, skills_jsonl};

pub struct Set {
    pub skills: Vec<Document>,
    /// Requests that have a skill.
    pub queries: Vec<Case>,
    /// Requests that fit nothing, or not one certain skill.
    pub out_of_scope: Vec<Case>,
}

impl Set {
    /// A router over its skills.
    #[must_use]
    pub fn router(&self) -> Router {
        let mut router = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
        router.update(self.skills.clone(), &[]);
        router
    }
}

/// The set of that name; `None`, and a line on stderr, when the data is not here.
#[must_use]
pub fn set(name: &str) -> Option<Set> {
    let Some(dir) = std::env::var_os("SKILLS_TEST_DATA") else {
        eprintln!("SKIPPED: SKILLS_TEST_DATA is not set; {name} is not measured");
        return None;
    };
    let dir = PathBuf::from(dir).join("golden").join(name);
    let read = |file: &str| std::fs::read_to_string(dir.join(file));
    Some(Set {
        skills: skills_jsonl(&read("skills.jsonl").unwrap()).unwrap(),
        queries: queries_jsonl(&read("queries.jsonl").unwrap()).unwrap(),
        out_of_scope: read("out_of_scope.jsonl")
            .map(|text| queries_jsonl(&text).unwrap())
            .unwrap_or_default(),
    })
}
