//! Converts a ranked candidate to a result: breakdown, reason, marks, exclusion note.

use super::analysis::{PackedPositions, UNIT};
use super::answer::{Group, Hit, ScoreComponent};
use super::breakdown::breakdown;
use super::embedding::{DIM, normalize};
use super::marks;
use super::matcher::{Context, ScoreTerm};
use super::ranking::QueryContext;
use super::reading::Reading;
use super::reason::reason;
use super::sorting::Ranked;
use super::vocabulary::StemId;
use skills_skill::Role;

/// Builds the result of a candidate whose score terms are known.
pub(crate) fn hit(query: &QueryContext<'_>, candidate: &Ranked, terms: Vec<ScoreTerm>) -> Option<Hit> {
    let breakdown = breakdown(terms, query);
    let content = query.reading.words.iter().zip(query.stems).filter(|(read, _)| !read.word.is_stop_word);
    let mut numbers: Vec<StemId> = content.flat_map(|(_, stems)| stems).copied().collect();
    numbers.sort_unstable();
    let words = &query.router.words;
    let entry = query.cx.index.entry(candidate.slot)?;
    let d = &entry.document;
    let places = entry.places.each_ref().map(PackedPositions::unpack);
    let reason = reason(&breakdown, query, entry, &places);
    let [in_name, in_description] = places;
    let name_marks = marks::by_number(&in_name, &numbers, ScoreComponent::Name);
    let mut description_marks = marks::by_number(&in_description, &numbers, ScoreComponent::Description);
    // The ranked text continues with `when_to_use`.
    description_marks.retain(|mark| mark.end as usize <= d.description.len());
    if breakdown.signals[super::breakdown::column(ScoreComponent::Semantic)] > 0.0
        && let Ok(model) = &query.cx.model
    {
        let semantic = &query.cx.weights.semantic;
        let near = marks::by_meaning(
            (&d.description, &entry.piece_places.unpack()),
            &description_marks,
            query.direction,
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
        exclusion_note: marks::exclusion(&d.full_description(), &entry.exclusions, &numbers),
        breakdown,
        needs_approval: query.adjustments.of(&d.id).and_then(|own| own.needs_approval.clone()),
        rank: candidate.rank,
    })
}

/// Computes the centered vector of the request in the embedding, as integers.
pub(crate) fn direction(reading: &Reading, cx: &Context<'_>) -> [i16; DIM] {
    let mut sum = [0.0; DIM];
    if let Ok(model) = &cx.model {
        for token in &reading.pieces {
            model.add(token.token, &mut sum);
        }
    }
    normalize(&mut sum);
    for (value, mean) in sum.iter_mut().zip(&cx.index.derived.mean) {
        *value -= cx.weights.centring * mean;
    }
    normalize(&mut sum);
    sum.map(|value| (value * UNIT).round() as i16)
}
