//! Groups of skills with identical descriptions, or descriptions that differ in a few words.

use std::collections::{BTreeMap, HashMap, HashSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::document::Document;
use super::tokenize::Words;
use skills_skill::SkillId;

/// Minimum number of skills of a reported template.
const MIN_TEMPLATE: usize = 3;
/// Minimum number of words of a template, in addition to the one that differs.
const MIN_TEMPLATE_WORDS: usize = 5;
/// Maximum number of compared words of a description.
const MAX_WORDS: usize = 80;

/// How the descriptions of a group are similar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum GroupKind {
    /// Identical descriptions, except for case and punctuation.
    Identical,
    /// Identical descriptions, except for one word or the words of the names.
    Template,
    /// Identical names: only one of the skills is used.
    Shadowed,
}

/// Skills with the same or nearly the same text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimilarGroup {
    /// How they are similar.
    pub kind: GroupKind,
    /// The skills.
    pub skills: Vec<SkillId>,
    /// Their common text; in a template, `{…}` replaces the words that differ.
    pub text: String,
}

/// Groups the documents that can be results, largest group first; `shadowed` skills form groups of their own.
pub(crate) fn groups(documents: &[&Document], words: &Words) -> Vec<SimilarGroup> {
    let (shadowed, ranked): (Vec<&Document>, Vec<&Document>) =
        documents.iter().copied().partition(|document| document.shadowed_by.is_some());
    let texts: Vec<Vec<String>> = ranked
        .iter()
        .map(|document| {
            let mut out = Vec::new();
            words.each(&document.description, |word| out.push(word.text));
            out.truncate(MAX_WORDS);
            out
        })
        .collect();
    let mut same: BTreeMap<&[String], Vec<usize>> = BTreeMap::new();
    for (at, text) in texts.iter().enumerate().filter(|(_, text)| !text.is_empty()) {
        same.entry(text).or_default().push(at);
    }
    let mut grouped: HashSet<usize> = HashSet::new();
    let mut out = Vec::new();
    for members in same.values().filter(|members| members.len() > 1) {
        grouped.extend(members);
        out.push(group(GroupKind::Identical, members, &ranked, ranked[members[0]].description.clone()));
    }
    out.extend(templates(&ranked, &texts, &grouped));
    let mut names: BTreeMap<&str, Vec<SkillId>> = BTreeMap::new();
    for document in shadowed {
        names.entry(id_before_digest(&document.id)).or_default().push(document.id.clone());
    }
    out.extend(names.into_iter().map(|(name, mut skills)| {
        skills.insert(0, SkillId::new(name));
        SimilarGroup { kind: GroupKind::Shadowed, skills, text: name.to_owned() }
    }));
    out.sort_by(|a, b| (a.kind as u8).cmp(&(b.kind as u8)).then(b.skills.len().cmp(&a.skills.len())));
    out
}

fn id_before_digest(id: &SkillId) -> &str {
    id.as_str().split('@').next().unwrap_or_default()
}

fn group(kind: GroupKind, members: &[usize], ranked: &[&Document], text: String) -> SimilarGroup {
    let mut skills: Vec<SkillId> = members.iter().map(|at| ranked[*at].id.clone()).collect();
    skills.sort();
    SimilarGroup { kind, skills, text }
}

/// The words of a text that a form masks.
#[derive(Debug, Clone, Copy)]
enum Mask {
    One(usize),
    Name,
}

/// Finds texts that are equal when one word, or every word of the name, is masked. A skill is only in its largest
/// group.
fn templates(ranked: &[&Document], texts: &[Vec<String>], grouped: &HashSet<usize>) -> Vec<SimilarGroup> {
    let form = |at: usize, mask: Mask| match mask {
        Mask::One(left_out) => masked(&texts[at], |place, _| place == left_out),
        Mask::Name => {
            let name = ranked[at].name.to_lowercase();
            let is_of_name = |word: &str| name.split(|c: char| !c.is_alphanumeric()).any(|part| part == word);
            masked(&texts[at], |_, word| is_of_name(word))
        }
    };
    // Stores hashes of the forms: the forms of a large collection would take hundreds of megabytes.
    let mut by_form: HashMap<u64, (Mask, Vec<usize>)> = HashMap::new();
    for (at, text) in texts.iter().enumerate() {
        if grouped.contains(&at) || text.len() <= MIN_TEMPLATE_WORDS {
            continue;
        }
        let mut seen: HashSet<u64> = HashSet::new();
        for mask in (0..text.len()).map(Mask::One).chain([Mask::Name]) {
            let form = form(at, mask);
            let is_long = form.iter().filter(|word| **word != BLANK).count() >= MIN_TEMPLATE_WORDS;
            let hash = hashed(&form);
            if is_long && form.contains(&BLANK) && seen.insert(hash) {
                by_form.entry(hash).or_insert((mask, Vec::new())).1.push(at);
            }
        }
    }
    let mut found: Vec<(Mask, Vec<usize>)> =
        by_form.into_values().filter(|(_, members)| members.len() >= MIN_TEMPLATE).collect();
    found.sort_by(|(_, a), (_, b)| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    let mut taken: HashSet<usize> = HashSet::new();
    let mut out = Vec::new();
    for (mask, members) in found {
        let text = form(members[0], mask).join(" ");
        let free: Vec<usize> = members.into_iter().filter(|member| !taken.contains(member)).collect();
        if free.len() >= MIN_TEMPLATE {
            taken.extend(&free);
            out.push(group(GroupKind::Template, &free, ranked, text));
        }
    }
    out
}

fn hashed(form: &[&str]) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    form.hash(&mut hasher);
    hasher.finish()
}

/// Placeholder of the words that differ.
const BLANK: &str = "{…}";

/// Replaces masked words of a text by a placeholder; adjacent placeholders are merged.
fn masked(text: &[String], is_left_out: impl Fn(usize, &str) -> bool) -> Vec<&str> {
    let mut out: Vec<&str> = Vec::with_capacity(text.len());
    for (place, word) in text.iter().enumerate() {
        if !is_left_out(place, word) {
            out.push(word);
        } else if out.last() != Some(&BLANK) {
            out.push(BLANK);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::weights::Weights;
    use super::*;

    fn found(documents: &[Document]) -> Vec<(GroupKind, Vec<String>, String)> {
        let words = Words::new(Weights::shipped().unwrap().stop_words.clone());
        let documents: Vec<&Document> = documents.iter().collect();
        let ungrouped = |group: SimilarGroup| {
            (group.kind, group.skills.iter().map(ToString::to_string).collect(), group.text)
        };
        groups(&documents, &words).into_iter().map(ungrouped).collect()
    }

    #[test]
    fn identical_template_and_shadowed_texts_are_groups() {
        let client = |api: &str| {
            let text = format!("Calls the {api} API with retries and typed errors. Use for {api} requests.");
            Document::new(format!("{api}-client"), format!("{api}-client"), text)
        };
        let mut documents: Vec<Document> = ["billing", "mail", "search"].map(client).into();
        documents.push(Document::new("notes", "notes", "Writes meeting notes."));
        documents.push(Document::new("minutes", "minutes", "writes Meeting notes"));
        documents.push(
            Document::new("notes@0a1b2c3d", "notes", "Writes other notes.").shadowed("~/.claude/skills"),
        );
        documents.push(Document::new("alone", "alone", "Has a text that no other skill of this list has."));
        let found = found(&documents);
        let kinds: Vec<GroupKind> = found.iter().map(|group| group.0).collect();
        assert_eq!(kinds, [GroupKind::Identical, GroupKind::Template, GroupKind::Shadowed], "{found:?}");
        assert_eq!(found[0].1, ["minutes", "notes"]);
        assert_eq!(found[1].1, ["billing-client", "mail-client", "search-client"]);
        assert!(found[1].2.starts_with("calls the {…} api with retries"), "{}", found[1].2);
        assert_eq!(found[2].1, ["notes", "notes@0a1b2c3d"]);
    }

    #[test]
    fn two_texts_are_not_a_template() {
        let text = |word: &str| format!("Reads the {word} file of the project and prints its keys.");
        let documents = [Document::new("a", "a", text("lock")), Document::new("b", "b", text("manifest"))];
        assert_eq!(found(&documents), []);
    }
}
