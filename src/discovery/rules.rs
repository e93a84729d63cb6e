//! Rule terms of the blended policy (role, status, and read-only skills for read-only requests), and the terms of the
//! user's policy, which apply under either ranking policy.

use super::answer::{ScoreComponent, TermKind};
use super::index::Facts;
use super::matcher::{Label, Row, ScoreTerm};
use super::ranking::{QueryContext, strict};
use super::sorting::Ranked;
use super::weights::Rules;
use skills_skill::{Role, Status};

/// Returns the rank of a role in the literal order.
pub(crate) fn role_rank(role: Role) -> u8 {
    match role {
        Role::Procedure => 0,
        Role::Utility => 1,
        Role::Sidecar => 2,
    }
}

/// Returns the rank of a status in the literal order.
pub(crate) fn status_rank(status: &Status) -> u8 {
    match status {
        Status::Stable => 0,
        Status::Experimental => 1,
        Status::Deprecated | Status::Other(_) => 2,
    }
}

/// Returns the term of each rule: role, status, read-only intent.
pub(crate) fn terms(rules: &Rules, facts: Facts, read_only: bool) -> [f64; 3] {
    let role = match facts.role {
        Role::Procedure => rules.role.procedure,
        Role::Utility => rules.role.utility,
        Role::Sidecar => rules.role.sidecar,
    };
    let status = match facts.status {
        0 => rules.status.stable,
        1 => rules.status.experimental,
        _ => rules.status.other,
    };
    [role, status, if read_only && facts.read_only { rules.read_only } else { 0.0 }]
}

/// Returns the largest sum of [`terms`].
pub(crate) fn max_terms_sum(rules: &Rules) -> f64 {
    let (role, status) = (&rules.role, &rules.status);
    role.procedure.max(role.utility).max(role.sidecar)
        + status.stable.max(status.experimental).max(status.other)
        + rules.read_only.max(0.0)
}

/// Appends the rule terms of a candidate; under the strict policy, rules are an order instead of terms.
pub(crate) fn add(query: &QueryContext<'_>, candidate: &Ranked, score_terms: &mut Vec<ScoreTerm>) {
    let index = query.cx.index;
    let Some(entry) = index.entry(candidate.slot) else { return };
    let d = &entry.document;
    let own = query.adjustments.of(&d.id).map_or(&[][..], |own| &own.terms);
    score_terms.extend(own.iter().map(|(label, value)| ScoreTerm {
        row: Row::Policy,
        signal: ScoreComponent::Rule,
        kind: TermKind::Policy,
        field: None,
        label: Label::Text(label.clone()),
        value: *value,
    }));
    let Some(facts) = index.facts()[candidate.slot].filter(|_| !strict(query.request)) else { return };
    let values = terms(&query.cx.weights.rules, facts, query.read_only);
    let kinds = [TermKind::RuleRole, TermKind::RuleStatus, TermKind::RuleReadOnly];
    let status = Label::Text(d.status.as_str().to_owned());
    let labels = [Label::Fixed(d.role.into()), status, Label::Fixed("read-only")];
    for ((value, kind), label) in values.into_iter().zip(kinds).zip(labels) {
        if value != 0.0 {
            score_terms.push(ScoreTerm {
                row: Row::Rules,
                signal: ScoreComponent::Rule,
                kind,
                field: None,
                label,
                value,
            });
        }
    }
}
