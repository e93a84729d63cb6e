//! The commands of Discover, by the part that has the focus, and those on the selected skill.

use std::collections::BTreeMap;

use super::Focus;
use super::ask::{Options, PendingRequests};
use super::history::History;
use super::result_list::ResultList;
use crate::action::{Action, PaneCommand};
use crate::golden_requests::GoldenForm;
use crate::overlay::DescriptionEdit;
use crate::pane::{Effect, PaneId, Picker, PickerKind, Target};
use crate::widgets::{count, shown};
use skills_api::WhyRequest;
use skills_discovery::Fit;
use skills_registry::Catalog;
use skills_skill::Invocation;

pub(super) fn of_request(history: &History) -> Vec<PaneCommand> {
    let earlier = (!history.has_earlier()).then(|| "no earlier request".to_owned());
    vec![
        PaneCommand::shown(Action::Down, "results"),
        PaneCommand { blocked: earlier, ..PaneCommand::shown(Action::HistoryEarlier, "earlier") },
        PaneCommand::shown(Action::Clear, "clear"),
        PaneCommand::shown(Action::LeaveField, "leave"),
        PaneCommand::hidden(Action::HistoryLater, "later"),
        PaneCommand::hidden(Action::Submit, "results"),
        PaneCommand::hidden(Action::NextPart, "next panel"),
        PaneCommand::hidden(Action::PreviousPart, "previous panel"),
    ]
}

fn attach(list: &ResultList) -> PaneCommand {
    let skill = list.selected().and_then(|id| list.catalog.by_id(id.as_str()));
    let blocked = match skill {
        None => Some("no skill selected".to_owned()),
        Some(skill) if skill.classification.invocation.value == Invocation::Direct => {
            Some(format!("{} cannot be attached: its invocation is `direct`", shown(&skill.name)))
        }
        Some(_) => None,
    };
    PaneCommand { blocked, ..PaneCommand::shown(Action::AttachThis, "attach") }
}

/// Returns the commands of the results and of the explanation.
pub(super) fn of_results(list: &ResultList, focus: Focus, is_ranked: bool) -> Vec<PaneCommand> {
    let none = || list.selected().is_none().then(|| "no skill selected".to_owned());
    let on_skill = |command: PaneCommand| PaneCommand { blocked: none(), ..command };
    let opens = if list.on_copies() {
        if list.unfolded { "fold" } else { "unfold" }
    } else if list.folded && focus == Focus::Results {
        "why"
    } else {
        "open"
    };
    let mut out = vec![PaneCommand::shown(Action::Down, if focus == Focus::Why { "scroll" } else { "move" })];
    if list.on_copies() && focus == Focus::Results {
        out.extend([PaneCommand::shown(Action::Open, opens), PaneCommand::hidden(Action::Fold, opens)]);
    } else {
        out.push(on_skill(PaneCommand::shown(Action::Open, opens)));
    }
    if focus == Focus::Why {
        out.push(PaneCommand::shown(Action::Back, "back to results"));
    }
    let ranked = (!is_ranked).then(|| "no results yet".to_owned());
    out.extend([
        PaneCommand::shown(Action::FocusIntent, "request"),
        on_skill(PaneCommand::shown(Action::Why, "why")),
        on_skill(PaneCommand::shown(Action::Draft, "draft")),
        PaneCommand { blocked: ranked, ..PaneCommand::shown(Action::Filter, "filter") },
        PaneCommand::shown(Action::OpenByName, "open by name"),
        PaneCommand::shown(Action::TogglePolicy, "ranking policy"),
        PaneCommand::shown(Action::CycleRole, "role"),
        PaneCommand::shown(Action::PickDomain, "domain"),
        PaneCommand::shown(Action::ToggleBody, "body"),
        on_skill(PaneCommand::shown(Action::AddGolden, "add golden query")),
        on_skill(PaneCommand::shown(Action::LoadSkill, "load")),
        on_skill(PaneCommand::shown(Action::Copy, "copy")),
        attach(list),
        on_skill(PaneCommand::hidden(Action::CopyAs, "copy as")),
        on_skill(PaneCommand::shown(Action::Edit, "edit")),
        PaneCommand::hidden(Action::NextPart, "next panel"),
        PaneCommand::hidden(Action::PreviousPart, "previous panel"),
    ]);
    out.extend(PaneCommand::moves());
    out
}

/// Executes an action on the selected skill.
pub(super) fn act_on_skill(
    action: Action,
    list: &ResultList,
    request: &str,
    asking: &PendingRequests,
) -> Option<Vec<Effect>> {
    let id = list.selected()?.clone();
    let stated = || Some(request.trim().to_owned()).filter(|text| !text.is_empty());
    match action {
        Action::Copy => Some(vec![Effect::copy_line(id.as_str(), "id")]),
        Action::AttachThis => {
            let target = Target::Attach { skill: Some(id), target: None };
            Some(vec![Effect::Go(PaneId::Attach, Some(target))])
        }
        Action::LoadSkill => Some(vec![Effect::Go(PaneId::Session, Some(Target::Skill(id)))]),
        Action::Draft => {
            let skill = list.catalog.by_id(id.as_str())?;
            Some(vec![Effect::EditDescription(DescriptionEdit::of(skill, stated()))])
        }
        Action::AddGolden => {
            // The verdict is the initial suggestion.
            let is_rejected = asking.shown().is_some_and(|shown| shown.answer.fit == Fit::None);
            let skills =
                if is_rejected && list.chosen.is_none() { "none".to_owned() } else { id.to_string() };
            Some(vec![Effect::AddGolden(GoldenForm { query: stated(), skills, replaces: None })])
        }
        Action::Why => {
            let intent = Some(request.to_owned());
            Some(vec![Effect::Why(WhyRequest { skill_id: id.to_string(), intent, ..WhyRequest::default() })])
        }
        Action::Edit => {
            let skill = list.catalog.by_id(id.as_str())?;
            Some(vec![Effect::Edit(skill.location.clone(), 1)])
        }
        _ => None,
    }
}

/// Returns the domains of the catalog to choose from.
pub(super) fn domains(catalog: &Catalog, options: &Options) -> Picker {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in &catalog.entries {
        if let Some(domain) = &entry.skill.domain {
            *counts.entry(domain.value.as_str()).or_default() += 1;
        }
    }
    let any = (String::new(), "any domain".to_owned(), count(catalog.entries.len()));
    let named = counts.into_iter().map(|(d, n)| (d.to_owned(), d.to_owned(), count(n)));
    let choices: Vec<_> = std::iter::once(any).chain(named).collect();
    let requested = options.domain.clone().unwrap_or_default();
    let current = choices.iter().position(|(value, ..)| *value == requested);
    Picker { what: PickerKind::Domain, title: "Domain".to_owned(), choices, current }
}

/// Returns what of the selected skill can be copied; `line` is the command line of the request.
pub(super) fn copy_choices(list: &ResultList, line: String) -> Option<Vec<Effect>> {
    let id = list.selected()?;
    let mut choices = vec![
        ("id".to_owned(), "id".to_owned(), id.to_string()),
        ("cli".to_owned(), "command line".to_owned(), line),
    ];
    if list.hit().is_some() {
        let note = "the result with its breakdown".to_owned();
        choices.push(("json".to_owned(), "JSON".to_owned(), note));
    }
    let title = "Copy as".to_owned();
    Some(vec![Effect::Pick(Picker { what: PickerKind::CopyAs, title, choices, current: Some(0) })])
}

pub(super) fn copy_as(what: &str, list: &ResultList, line: String) -> Option<Effect> {
    match what {
        "id" => list.selected().map(|id| Effect::copy_line(id.as_str(), "id")),
        "cli" => Some(Effect::CopyCommand(line, "command line".to_owned())),
        "json" => list
            .hit()
            .and_then(|hit| serde_json::to_string_pretty(hit).ok())
            .map(|json| Effect::Copy(json, "JSON".to_owned())),
        _ => None,
    }
}
