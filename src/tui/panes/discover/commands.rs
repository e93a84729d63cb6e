//! The commands of Discover, by the part that has the focus, and those on the selected skill.

use std::collections::BTreeMap;

use super::Focus;
use super::ask::{Options, PendingRequests};
use super::history::History;
use super::result_list::ResultList;
use crate::action::{Action, Command};
use crate::golden_requests::GoldenForm;
use crate::overlay::DescriptionEdit;
use crate::pane::{Effect, PaneId, Picker, PickerKind, Target};
use crate::widgets::count;
use skills_api::WhyRequest;
use skills_discovery::Fit;
use skills_registry::Catalog;
use skills_skill::Invocation;

pub(super) fn of_request(history: &History) -> Vec<Command> {
    let earlier = (!history.has_earlier()).then(|| "no earlier request".to_owned());
    vec![
        Command::shown(Action::Down, "results"),
        Command { blocked: earlier, ..Command::shown(Action::HistoryEarlier, "earlier") },
        Command::shown(Action::Clear, "clear"),
        Command::shown(Action::LeaveField, "leave"),
        Command::hidden(Action::HistoryLater, "later"),
        Command::hidden(Action::Submit, "results"),
        Command::hidden(Action::NextPart, "next panel"),
        Command::hidden(Action::PreviousPart, "previous panel"),
    ]
}

fn attach(list: &ResultList) -> Command {
    let skill = list.selected().and_then(|id| list.catalog.by_id(id.as_str()));
    let blocked = match skill {
        None => Some("no skill selected".to_owned()),
        Some(skill) if skill.classification.invocation.value == Invocation::Direct => {
            Some("it cannot be attached: its invocation is `direct`".to_owned())
        }
        Some(_) => None,
    };
    Command { blocked, ..Command::shown(Action::AttachThis, "attach") }
}

/// Returns the commands of the results and of the explanation.
pub(super) fn of_results(list: &ResultList, focus: Focus, is_ranked: bool) -> Vec<Command> {
    let none = || list.selected().is_none().then(|| "no skill selected".to_owned());
    let on_skill = |command: Command| Command { blocked: none(), ..command };
    let opens = if list.on_copies() {
        if list.unfolded { "fold" } else { "unfold" }
    } else if list.folded && focus == Focus::Results {
        "why"
    } else {
        "open"
    };
    let mut out = vec![Command::shown(Action::Down, if focus == Focus::Why { "scroll" } else { "move" })];
    if list.on_copies() && focus == Focus::Results {
        out.extend([Command::shown(Action::Open, opens), Command::hidden(Action::Fold, opens)]);
    } else {
        out.push(on_skill(Command::shown(Action::Open, opens)));
    }
    if focus == Focus::Why {
        out.push(Command::shown(Action::Back, "back to results"));
    }
    let ranked = (!is_ranked).then(|| "no results yet".to_owned());
    out.extend([
        Command::shown(Action::FocusIntent, "request"),
        on_skill(Command::shown(Action::Why, "why")),
        on_skill(Command::shown(Action::Draft, "draft")),
        Command { blocked: ranked, ..Command::shown(Action::Filter, "filter") },
        Command::shown(Action::OpenByName, "open by name"),
        Command::shown(Action::TogglePolicy, "ranking policy"),
        Command::shown(Action::CycleRole, "role"),
        Command::shown(Action::PickDomain, "domain"),
        Command::shown(Action::ToggleBody, "body"),
        on_skill(Command::shown(Action::AddGolden, "add golden query")),
        on_skill(Command::shown(Action::LoadSkill, "load")),
        on_skill(Command::shown(Action::Copy, "copy")),
        attach(list),
        on_skill(Command::hidden(Action::CopyAs, "copy as")),
        on_skill(Command::shown(Action::Edit, "edit")),
        Command::hidden(Action::NextPart, "next panel"),
        Command::hidden(Action::PreviousPart, "previous panel"),
    ]);
    out.extend(Command::moves());
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
        Action::Copy => Some(vec![Effect::Copy(id.to_string(), "id".to_owned())]),
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
        "id" => list.selected().map(|id| Effect::Copy(id.to_string(), "id".to_owned())),
        "cli" => Some(Effect::CopyCommand(line, "command line".to_owned())),
        "json" => list
            .hit()
            .and_then(|hit| serde_json::to_string_pretty(hit).ok())
            .map(|json| Effect::Copy(json, "JSON".to_owned())),
        _ => None,
    }
}
