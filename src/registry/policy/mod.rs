//! The person's policy as data: what may be found, run and attached, what a person is asked about first, and what is
//! preferred. Every answer names the rules that led to it.
//!
//! Order in the file does not count. A matching `deny` wins over everything. Where there is any `allow`, it
//! is the whole list: what none of its rules matches is denied. `require_approval` adds a person's approval
//! before the first step. `prefer` adds a bounded term to the score of what matches at all.

mod approvals;
mod load;
mod matching;
mod verdict;

pub use approvals::{ApprovalRule, Approver, NotBy, RequiredApprovals};
pub use load::{PolicyError, parse};
pub use matching::{Criteria, Subject, glob};
pub use verdict::{Effect, MAX_PREFERENCE, Matched, Policy, Rule, Verdict};
