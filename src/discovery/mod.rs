//! Which skill fits a request, and why: the chain of links, the index, the score and its
//! breakdown, policies, confidence, golden sets. No I/O beside its model file.

mod answer;
mod request;

pub use answer::{
    Answer, Attachable, BodyLine, Breakdown, Confidence, Correction, Excluded, ExcludedWhy, Fit, Group, Hit,
    Lead, LinkReport, LinkState, Mark, Part, PartKind, QueryWord, Signal, SignalSums, WordRow,
};
pub use request::{Policy, Request};
