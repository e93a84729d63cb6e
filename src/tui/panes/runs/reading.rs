//! The content of the reader for `v`: the step, checkpoint or run under the cursor, with all results and output.

use serde_json::{Map, Value, json};

use super::detail::{DetailCursor, DetailState, DetailView};
use super::detail_view::label_of;
use super::list::tail;
use super::live;
use crate::overlay::{Passage, Reading};
use crate::pane::Effect;
use crate::theme::Role;
use crate::widgets::relative_time::{duration, time_of_day};
use crate::widgets::text_width::{cells, shown};
use skills_api::{RunDetail, StepView};
use skills_store::{RunEvent, RunId};

/// The run, or a step of it, that is shown in the reader and follows new events.
pub(super) type Followed = Option<(RunId, Option<String>)>;

/// Returns the item under the cursor for the reader, and what the reader follows; `None` while the run is loaded.
pub(super) fn read(state: &DetailState, on_detail: bool) -> Option<(Reading, Followed)> {
    let detail = state.get()?;
    let stop = state.stop.as_ref().filter(|_| on_detail);
    let number = match (&state.showing, stop) {
        (DetailView::State(number) | DetailView::Changes(_, number), _) => Some(*number),
        (_, Some(DetailCursor::Checkpoint(number))) => Some(*number),
        _ => None,
    };
    if let Some(number) = number {
        return Some((checkpoint(detail, number), None));
    }
    let path = match stop {
        Some(DetailCursor::Step(path)) => Some(path.clone()),
        _ => None,
    };
    let events: Vec<&RunEvent> = state.events().collect();
    Some((step_or_run(detail, path.as_deref(), &events), Some((detail.run.id.clone(), path))))
}

/// Returns the update of the reader with the current state.
pub(super) fn read_again(state: &DetailState, followed: &Followed) -> Option<Effect> {
    let (id, path) = followed.as_ref()?;
    let detail = state.get().filter(|detail| detail.run.id == *id)?;
    let events: Vec<&RunEvent> = state.events().collect();
    Some(Effect::ReadAgain(Box::new(step_or_run(detail, path.as_deref(), &events))))
}

fn step_or_run(detail: &RunDetail, path: Option<&str>, events: &[&RunEvent]) -> Reading {
    match path.and_then(|path| detail.steps.iter().find(|step| step.step == path)) {
        Some(view) => step(detail, view, events),
        None => run(detail, events),
    }
}

fn checkpoint(detail: &RunDetail, number: u64) -> Reading {
    let state = detail.checkpoints.iter().find(|point| point.number == number).map(|point| &point.state);
    let value = state.cloned().unwrap_or_default();
    Reading {
        title: format!("{} c{number}, {}", shown(&detail.run.skill_id), label_of(detail, number)),
        what: format!("state at c{number}"),
        passages: vec![Passage::Value(value)],
        ..Reading::default()
    }
}

fn step(detail: &RunDetail, view: &StepView, events: &[&RunEvent]) -> Reading {
    let mut passages = Vec::new();
    let took = view.started_ms.zip(view.ended_ms).map(|(start, end)| duration(end - start));
    let facts = [
        ("uses", Some(view.uses.clone())),
        ("state", Some(view.state.to_string())),
        ("took", took),
        ("attempts", (view.attempts > 1).then(|| view.attempts.to_string())),
        ("seen", live::completed_by_decision(detail, &view.step)),
        ("binding", view.binding.clone()),
        ("isolation", view.isolation.clone()),
    ];
    for (name, fact) in facts {
        let Some(text) = fact.filter(|fact| !fact.is_empty()) else { continue };
        passages.push(Passage::Text { before: format!("{name:<11}"), text, role: Role::Text });
    }
    let note = "not recorded (step inputs are recorded only in audit mode full)";
    value("given", view.inputs.as_ref(), note, &mut passages);
    value("result", view.result.as_ref(), "none yet", &mut passages);
    printed(detail, events.iter().filter(|event| of_step(event, &view.step)), &mut passages);
    Reading {
        title: format!(
            "{} {} {}",
            shown(detail.run.title_or_skill()),
            tail(&detail.run.id),
            shown(&view.step)
        ),
        what: format!("step {}", shown(&view.step)),
        passages,
        ..Reading::default()
    }
}

/// Returns whether an event concerns a step or a part of it.
fn of_step(event: &RunEvent, step: &str) -> bool {
    let about = event.event.step.as_deref().and_then(|at| at.strip_prefix(step));
    about.is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', '/', '~']))
}

fn run(detail: &RunDetail, events: &[&RunEvent]) -> Reading {
    let mut passages = Vec::new();
    if let Some(error) = &detail.run.error {
        value("error", Some(error), "", &mut passages);
    }
    value("outputs", detail.run.outputs.as_ref(), "none yet", &mut passages);
    value("inputs", Some(&detail.run.inputs), "", &mut passages);
    printed(detail, events.iter(), &mut passages);
    Reading {
        title: format!("{} {}", shown(&detail.run.skill_id), shown(&detail.run.id.0)),
        what: "run".to_owned(),
        passages,
        ..Reading::default()
    }
}

fn value(name: &str, value: Option<&Value>, none: &str, passages: &mut Vec<Passage>) {
    passages.push(Passage::Heading(name.to_owned()));
    passages.push(match value.filter(|value| !value.is_null()) {
        Some(value) => Passage::Value(value.clone()),
        None if none.is_empty() => Passage::Value(json!(Map::new())),
        None => Passage::Text { before: String::new(), text: none.to_owned(), role: Role::Muted },
    });
}

/// Appends output and events in order.
fn printed<'e>(
    detail: &RunDetail,
    events: impl Iterator<Item = &'e &'e RunEvent>,
    passages: &mut Vec<Passage>,
) {
    passages.push(Passage::Heading("output".to_owned()));
    let column = usize::from(live::column(detail));
    let before_any = passages.len();
    for event in events {
        let Some((text, role)) = live::full_text(event, detail) else { continue };
        let name = live::step_name(event);
        let pad = " ".repeat(column.saturating_sub(usize::from(cells(&name))));
        passages.push(Passage::Text {
            before: format!("{} {name}{pad}  ", time_of_day(event.at_ms)),
            text,
            role,
        });
    }
    if passages.len() == before_any {
        let text = "none".to_owned();
        passages.push(Passage::Text { before: String::new(), text, role: Role::Muted });
    }
}
