//! A ranked candidate as a result: breakdown, reason, marks, exclusion note.

use super::answer::{Group, Hit, Signal};
use super::embedding::{DIM, normalise};
use super::ledger::breakdown;
use super::link::Addend;
use super::marks;
use super::ranking::Asked;
use super::reason::reason;
use super::sorting::Ranked;
use crate::skill::Role;

/// The result for a candidate whose addends are known.
pub(crate) fn hit(asked: &Asked<'_>, candidate: &Ranked, addends: Vec<Addend>) -> Option<Hit> {
    let breakdown = breakdown(addends, asked.reading);
    let reason = reason(&breakdown, asked.reading);
    let vocabulary = &asked.cx.index.vocabulary;
    let stems = marks::stems(asked.reading, |id| vocabulary.stem(id));
    let words = &asked.router.words;
    let d = &asked.cx.index.entry(candidate.slot)?.document;
    let name_marks = marks::by_stem(&d.name, &stems, words, Signal::Name);
    let mut description_marks = marks::by_stem(&d.description, &stems, words, Signal::Description);
    if breakdown.signals[super::ledger::column(Signal::Semantic)] > 0.0
        && let Ok(model) = &asked.cx.model
    {
        let semantic = &asked.cx.weights.semantic;
        let near = marks::by_meaning(
            &d.description,
            &description_marks,
            &direction(asked),
            model,
            words,
            (semantic.mark_share, semantic.marks),
        );
        description_marks.extend(near);
        description_marks.sort_by_key(|m| m.start);
    }
    Some(Hit {
        skill_id: d.id.clone(),
        name: d.name.clone(),
        score: candidate.score,
        z: candidate.z,
        role: d.role,
        effect_mode: d.effect_mode,
        reason,
        status: d.status.as_str().to_owned(),
        group: match d.role {
            Role::Procedure => Group::Primary,
            Role::Utility => Group::Secondary,
            Role::Sidecar => Group::Attachable,
        },
        description: d.description.clone(),
        name_marks,
        description_marks,
        exclusion_note: marks::exclusion(&d.description, &asked.cx.weights.exclusion_cues, &stems, words),
        breakdown,
    })
}

/// The request's direction in the embedding, centred.
fn direction(asked: &Asked<'_>) -> [f64; DIM] {
    let mut sum = [0.0; DIM];
    if let Ok(model) = &asked.cx.model {
        for piece in &asked.reading.pieces {
            model.add(piece.token, &mut sum);
        }
    }
    normalise(&mut sum);
    for (value, mean) in sum.iter_mut().zip(&asked.cx.index.derived.mean) {
        *value -= asked.cx.weights.centring * mean;
    }
    sum
}
