//! What is read and ranked: registry, lint, contracts, discovery, shipped skills, and the rules for the sources.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

#[path = "../support/corpus.rs"]
mod corpus_data;
#[path = "../registry_support/mod.rs"]
mod registry_support;
#[path = "../discovery"]
mod discovery {
    pub mod sets;
    pub mod skills;
}

mod architecture;
mod clients;
mod contracts;
mod corpus;
mod discovery_answers;
mod discovery_calibration;
mod discovery_matchers;
mod discovery_properties;
mod discovery_table;
mod discovery_verdict;
mod docs;
mod hostile_text;
mod hot_reload;
mod lint;
mod registry;
mod shipped_ranking;
mod shipped_skills;
mod skill_scripts;
