//! Proposals: changes of a `SKILL.md` that another person approves, stored as Markdown files with every version.

pub mod diff;
mod document;
mod store;
mod versions;

pub use document::{Facts, Proposal, ProposalDecision, ProposalHead, ProposalState};
pub use store::{MAX_WAITING, NewProposal, ProposalError, ProposalStore, StoredProposals, present_digest};
pub use versions::{SkillVersion, versions};
