//! Derives the classification: stated values, inferred defaults, and the rules that relate them.

use std::ops::Range;

use super::finding_builder::Notes;
use super::frontmatter::ClassificationForm;
use super::lint::rules;
use super::yaml::{Content, Node};
use super::{Classification, EffectMode, Invocation, Role, WithOrigin};

const ROLE: &str = "metadata.classification.role";
const INVOCATION: &str = "metadata.classification.invocation";
const TARGETS: &str = "metadata.classification.attach_targets";

/// Fills in missing values and reports contradictions. A default never contradicts the file: a sidecar without
/// `invocation` is `attach`, and stated targets make the invocation `both`.
pub(super) fn classify(
    form: &ClassificationForm,
    node: &Node,
    at: &dyn Fn(&Range<usize>) -> Range<usize>,
    notes: &mut Notes<'_>,
) -> Classification {
    if !matches!(node.value, Content::Map(_) | Content::Null) {
        let message = "`metadata.classification` is not a mapping; defaults are used";
        notes.add(&rules::CLASSIFICATION_INVALID, Some("metadata.classification"), at(&node.at), message);
    }
    let place = |key: &str| node.get(key).map(|entry| at(&entry.value.at));
    let key_place = |key: &str| node.get(key).map(|entry| at(&entry.key_at));
    let role = form.role.map_or(WithOrigin::inferred(Role::Procedure), WithOrigin::explicit);
    let targets = form.attach_targets.clone().unwrap_or_default().0;
    let invocation = form.invocation.map_or_else(
        || {
            WithOrigin::inferred(match (role.value, targets.is_empty()) {
                (Role::Sidecar, _) => Invocation::Attach,
                (_, false) => Invocation::Both,
                (_, true) => Invocation::Direct,
            })
        },
        WithOrigin::explicit,
    );
    if role.value == Role::Sidecar && invocation.value == Invocation::Direct {
        notes.add(
            &rules::SIDECAR_DIRECT,
            Some(INVOCATION),
            place("invocation"),
            "a sidecar has `invocation: direct`",
        );
    }
    if invocation.value == Invocation::Direct {
        // An empty list is not a contradiction.
        if !targets.is_empty() {
            let message = "`attach_targets` is given, but `invocation` is direct";
            notes.add(&rules::DIRECT_WITH_TARGETS, Some(TARGETS), key_place("attach_targets"), message);
        }
    } else if targets.is_empty() {
        let (field, key) = match (invocation.inferred, node.get("attach_targets").is_some()) {
            (_, true) => (TARGETS, "attach_targets"),
            (true, false) => (ROLE, "role"),
            (false, false) => (INVOCATION, "invocation"),
        };
        let message = if invocation.inferred {
            "a sidecar needs a valid target in `attach_targets`".to_owned()
        } else {
            format!("`invocation` is {}, but there is no valid target in `attach_targets`", invocation.value)
        };
        notes.add(&rules::ATTACH_WITHOUT_TARGETS, Some(field), place(key), message);
    }
    Classification {
        role,
        attach_targets: if invocation.value == Invocation::Direct { Vec::new() } else { targets },
        invocation,
        effect_mode: form.effect_mode.map_or(WithOrigin::inferred(EffectMode::Enrich), WithOrigin::explicit),
    }
}
