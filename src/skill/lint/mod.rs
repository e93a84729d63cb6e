//! The linter: rules of the specification, advice on descriptions, and what a reader should know
//! before trusting a bundle.

pub(super) mod pure;
pub mod rules;
