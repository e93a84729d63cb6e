//! The choices of "Copy as".

use super::skill_list::ShownBundle;
use crate::pane::{Effect, Picker, PickerKind};
use skills_config::operands;

/// Returns what of a bundle can be copied.
pub(super) fn choices(bundle: ShownBundle<'_>) -> Picker {
    let entry = bundle.entry;
    let line = format!("skills describe {}", operands([entry.id.as_str()]));
    let mut choices = vec![
        ("id".to_owned(), "id".to_owned(), entry.id.to_string()),
        ("cli".to_owned(), "command line".to_owned(), line),
    ];
    if let Some(skill) = bundle.skill {
        let place = skill.location.display().to_string();
        choices.push(("location".to_owned(), "location".to_owned(), place));
        choices.push(("json".to_owned(), "JSON".to_owned(), "the record".to_owned()));
    }
    Picker { what: PickerKind::CopyAs, title: "Copy as".to_owned(), choices, current: Some(0) }
}

pub(super) fn copy(bundle: ShownBundle<'_>, what: &str) -> Option<Effect> {
    let (entry, skill) = (bundle.entry, bundle.skill);
    match what {
        "id" => Some(Effect::copy_line(entry.id.as_str(), "id")),
        "cli" => {
            let line = format!("skills describe {}", operands([entry.id.as_str()]));
            Some(Effect::CopyCommand(line, "command line".to_owned()))
        }
        "location" => skill.map(|s| Effect::copy_line(&s.location.display().to_string(), "location")),
        "json" => skill
            .and_then(|s| serde_json::to_string_pretty(s.as_ref()).ok())
            .map(|json| Effect::Copy(json, "JSON".to_owned())),
        _ => None,
    }
}
