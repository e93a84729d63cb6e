//! The user's policy as data: what may be found, run and attached, what requires approval, and what is preferred.
//! Every result names the rules that led to it.
//!
//! The order in the file is irrelevant. A matching `deny` takes precedence over everything. If there is any `allow`,
//! only matching skills are allowed: everything else is denied. `require_approval` requires an approval before the
//! first step. `prefer` adds a bounded term to the score of matching skills.

mod approvals;
mod load;
mod matching;
mod result;

pub use approvals::{ApprovalRule, Approver, Escalation, ExcludedApprover, RequiredApprovals};
pub use load::{PolicyError, parse};
pub use matching::{Criteria, LinkedPaths, SkillPath, SkillProperties, glob};
pub use result::{Effect, MAX_PREFERENCE, Policy, PolicyResult, Rule, RuleMatch};
