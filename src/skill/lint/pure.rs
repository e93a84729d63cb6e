//! The rules that need nothing but one file.

use std::ops::Range;

use crate::skill::Skill;
use crate::skill::notes::Notes;
use crate::skill::yaml::Node;

/// Checks a `SKILL.md` that was read.
pub(in crate::skill) fn check(
    skill: &Skill,
    root: &Node,
    at: &dyn Fn(&Range<usize>) -> Range<usize>,
    body: Range<usize>,
    notes: &mut Notes<'_>,
) {
    let _ = (skill, root, at, body, notes);
}

/// Checks a lone `skill.yaml`.
pub(in crate::skill) fn check_contract(
    skill: &Skill,
    root: &Node,
    at: &dyn Fn(&Range<usize>) -> Range<usize>,
    notes: &mut Notes<'_>,
) {
    let _ = (skill, root, at, notes);
}
