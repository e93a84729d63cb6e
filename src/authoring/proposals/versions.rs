//! The known versions of a skill's file: who wrote each, when and why.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::document::{ProposalDecision, ProposalHead};
use skills_skill::Digest;

/// A version of a skill's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillVersion {
    /// Sequence number, from 1.
    pub number: usize,
    /// Digest of the file.
    pub digest: Digest,
    /// Who approved it; absent if it was not written by a proposal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When, milliseconds since 1970-01-01 UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ms: Option<i64>,
    /// Why: the first line of the justification, or the notes of a rollback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The proposal that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposal_id: Option<String>,
    /// Whether it is a rollback to the version before the proposal.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rollback: bool,
    /// Whether it is the current content of the file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub current: bool,
}

/// Returns the versions, oldest first, from the proposals of one file and its current digest.
pub fn versions<'p>(
    proposals: impl IntoIterator<Item = &'p ProposalHead>,
    present: Option<Digest>,
) -> Vec<SkillVersion> {
    struct Write<'p> {
        before: Digest,
        after: Digest,
        decision: &'p ProposalDecision,
        why: Option<String>,
        proposal: &'p ProposalHead,
        rollback: bool,
    }
    let mut writes = Vec::new();
    for proposal in proposals {
        let facts = &proposal.facts;
        let approved = facts.decision.as_ref().filter(|_| facts.state != super::ProposalState::Denied);
        writes.extend(approved.map(|decision| Write {
            before: facts.base_digest,
            after: facts.result_digest,
            decision,
            why: Some(proposal.title.clone()),
            proposal,
            rollback: false,
        }));
        writes.extend(facts.rollback.as_ref().map(|decision| Write {
            before: facts.result_digest,
            after: facts.base_digest,
            decision,
            why: decision.notes.clone(),
            proposal,
            rollback: true,
        }));
    }
    writes.sort_by(|a, b| {
        let key = |write: &Write<'_>| (write.decision.at_ms, write.rollback);
        key(a).cmp(&key(b)).then_with(|| a.proposal.facts.proposal_id.cmp(&b.proposal.facts.proposal_id))
    });
    let mut versions: Vec<SkillVersion> = Vec::new();
    // Written manually, or before there were proposals.
    let other = |digest| SkillVersion {
        number: 0,
        digest,
        by: None,
        at_ms: None,
        why: None,
        proposal_id: None,
        rollback: false,
        current: false,
    };
    for write in writes {
        if versions.last().is_none_or(|last| last.digest != write.before) {
            versions.push(other(write.before));
        }
        versions.push(SkillVersion {
            by: Some(write.decision.by.clone()),
            at_ms: Some(write.decision.at_ms),
            why: write.why,
            proposal_id: Some(write.proposal.facts.proposal_id.clone()),
            rollback: write.rollback,
            ..other(write.after)
        });
    }
    if let Some(present) = present {
        if versions.last().is_none_or(|last| last.digest != present) {
            versions.push(other(present));
        }
        if let Some(last) = versions.last_mut() {
            last.current = true;
        }
    }
    for (at, version) in versions.iter_mut().enumerate() {
        version.number = at + 1;
    }
    versions
}

#[cfg(test)]
mod tests {
    use super::super::ProposalState;
    use super::super::document::tests::proposal;
    use super::*;

    #[test]
    fn versions_include_writes_rollbacks_and_manual_edits() {
        let (a, b, c) = (Digest::of(b"a"), Digest::of(b"b"), Digest::of(b"c"));
        let decided = |at_ms| Some(ProposalDecision { by: "kim".to_owned(), at_ms, notes: None });
        let mut first = proposal("billing-1");
        (first.facts.base_digest, first.facts.result_digest) = (a, b);
        (first.facts.state, first.facts.decision, first.facts.rollback) =
            (ProposalState::RolledBack, decided(1), decided(2));
        let mut second = proposal("billing-2");
        (second.facts.base_digest, second.facts.result_digest) = (c, b);
        (second.facts.state, second.facts.decision) = (ProposalState::Approved, decided(3));
        let mut denied = proposal("billing-3");
        (denied.facts.state, denied.facts.decision) = (ProposalState::Denied, decided(4));
        let all = [second, denied, first].map(|proposal| proposal.head());
        let found = versions(&all, Some(b));
        let shown: Vec<_> = found
            .iter()
            .map(|one| (one.number, one.digest, one.by.is_some(), one.rollback, one.current))
            .collect();
        assert_eq!(
            shown,
            [
                (1, a, false, false, false),
                (2, b, true, false, false),
                (3, a, true, true, false),
                (4, c, false, false, false),
                (5, b, true, false, true)
            ]
        );
        assert_eq!(versions(&all, Some(a)).len(), 6, "an edit after the last proposal is a version");
        assert!(versions(&[], None).is_empty());
    }
}
