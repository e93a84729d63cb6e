//! What can be copied of a run.

use super::detail::DetailState;
use crate::pane::{Effect, Picker, PickerKind};
use crate::widgets::text_width::shown;
use skills_config::quoted;
use skills_store::RunRecord;

pub(super) fn choices(run: &RunRecord) -> Picker {
    let mut choices = vec![
        ("id".to_owned(), "id".to_owned(), shown(&run.id.0)),
        ("cli".to_owned(), "command line".to_owned(), format!("skills runs show {}", quoted(&run.id.0))),
        ("trace".to_owned(), "trace".to_owned(), shown(&run.trace_id)),
        ("json".to_owned(), "JSON".to_owned(), "the complete run".to_owned()),
    ];
    if run.outputs.is_some() {
        choices.push(("outputs".to_owned(), "outputs".to_owned(), "result".to_owned()));
    }
    Picker { what: PickerKind::CopyAs, title: "Copy as".to_owned(), choices, current: Some(0) }
}

/// Returns the effect that copies the chosen part.
pub(super) fn copy(run: &RunRecord, detail: &DetailState, what: &str) -> Option<Effect> {
    let text = match what {
        "id" => return Some(Effect::copy_line(&run.id.0, what)),
        "cli" => {
            let line = format!("skills runs show {}", quoted(&run.id.0));
            return Some(Effect::CopyCommand(line, "command line".to_owned()));
        }
        "trace" => return Some(Effect::copy_line(&run.trace_id, what)),
        "outputs" => serde_json::to_string_pretty(run.outputs.as_ref()?).ok()?,
        "json" => match detail.get() {
            Some(detail) => serde_json::to_string_pretty(detail.as_ref()).ok()?,
            None if run.lacks_inputs() => {
                return Some(Effect::Toast("loading the run; try again in a moment".to_owned()));
            }
            None => serde_json::to_string_pretty(run).ok()?,
        },
        _ => return None,
    };
    Some(Effect::Copy(text, what.to_owned()))
}
