//! The commands of Browse, by the part that has the focus.

use super::detail::{Detail, Tab};
use super::skill_list::{ShownBundle, SkillList};
use crate::action::{Action, PaneCommand};
use crate::widgets::shown;
use skills_skill::Invocation;

/// Returns the commands with the focus on the list.
pub(super) fn in_list(list: &SkillList, detail: &Detail) -> Vec<PaneCommand> {
    let bundle = list.shown();
    let none = bundle.is_none().then(|| "no skill selected".to_owned());
    let on_skill = |command: PaneCommand| PaneCommand { blocked: none.clone(), ..command };
    let (in_catalog, in_file) = (not_in_catalog(bundle), no_file(bundle));
    let of_catalog = |command: PaneCommand| PaneCommand { blocked: in_catalog.clone(), ..command };
    let mut out = vec![
        PaneCommand { blocked: none.clone(), ..PaneCommand::shown(Action::Down, "move") },
        on_skill(PaneCommand::shown(Action::Open, "open")),
        on_skill(PaneCommand::shown(Action::Filter, "filter")),
        on_skill(PaneCommand::shown(Action::Why, "why")),
        of_catalog(PaneCommand::shown(Action::Draft, "draft")),
        on_skill(PaneCommand::shown(Action::OpenByName, "open by name")),
        PaneCommand { blocked: in_file, ..PaneCommand::shown(Action::Edit, "edit") },
        PaneCommand::shown(Action::PickClient, "client"),
        on_skill(PaneCommand::shown(Action::Sort, "sort")),
        on_skill(PaneCommand::shown(Action::GroupBy, "group")),
        of_catalog(PaneCommand::shown(Action::DiscoverThis, "similar")),
        of_catalog(PaneCommand::hidden(Action::AddGolden, "add golden query")),
        PaneCommand::shown(Action::ShowCollisions, "collisions"),
        attach(bundle),
        launch(bundle, detail, false),
        of_catalog(PaneCommand::shown(Action::LoadSkill, "load")),
        on_skill(PaneCommand::shown(Action::Copy, "copy")),
        on_skill(PaneCommand::hidden(Action::CopyAs, "copy as")),
        on_skill(PaneCommand::hidden(Action::Fold, "fold")),
        on_skill(PaneCommand::hidden(Action::NextTab, "next tab")),
        on_skill(PaneCommand::hidden(Action::PreviousTab, "previous tab")),
        PaneCommand::hidden(Action::NextPart, "next panel"),
        PaneCommand::hidden(Action::PreviousPart, "previous panel"),
    ];
    if !list.filter.is_empty() {
        out.insert(3, PaneCommand::shown(Action::Back, "clear filter"));
    }
    out.extend(PaneCommand::moves());
    out
}

/// Returns the commands with the focus on the content of the skill.
pub(super) fn in_detail(list: &SkillList, detail: &Detail) -> Vec<PaneCommand> {
    let bundle = list.shown();
    let none = bundle.is_none().then(|| "no skill selected".to_owned());
    let on_skill = |command: PaneCommand| PaneCommand { blocked: none.clone(), ..command };
    let (in_catalog, in_file) = (not_in_catalog(bundle), no_file(bundle));
    let of_catalog = |command: PaneCommand| PaneCommand { blocked: in_catalog.clone(), ..command };
    let is_list = matches!(detail.tab, Tab::Files | Tab::Findings | Tab::Rivals);
    let label = if is_list { "move" } else { "scroll" };
    let mut out = vec![PaneCommand::shown(Action::Down, label)];
    if matches!(detail.tab, Tab::Files | Tab::Findings) {
        out.push(on_skill(PaneCommand::shown(Action::Open, "edit file")));
    }
    if detail.tab == Tab::Rivals {
        let blocked = bundle
            .and_then(|shown| detail.chosen_rival(&shown.entry.id))
            .is_none()
            .then(|| "no rival".to_owned());
        out.push(PaneCommand { blocked, ..PaneCommand::shown(Action::Open, "compare") });
    }
    out.push(launch(bundle, detail, detail.tab == Tab::Contract));
    out.extend([
        PaneCommand::shown(Action::NextTab, "next tab"),
        PaneCommand::shown(Action::Back, "back to list"),
        PaneCommand { blocked: in_file, ..PaneCommand::shown(Action::Edit, "edit") },
        of_catalog(PaneCommand::shown(Action::DiscoverThis, "similar")),
        on_skill(PaneCommand::shown(Action::Why, "why")),
        of_catalog(PaneCommand::shown(Action::Draft, "draft")),
        of_catalog(PaneCommand::hidden(Action::AddGolden, "add golden query")),
        PaneCommand::hidden(Action::ShowCollisions, "collisions"),
        attach(bundle),
        of_catalog(PaneCommand::shown(Action::LoadSkill, "load")),
        on_skill(PaneCommand::shown(Action::Copy, "copy")),
        on_skill(PaneCommand::hidden(Action::CopyAs, "copy as")),
        PaneCommand::hidden(Action::Filter, "filter"),
        on_skill(PaneCommand::hidden(Action::OpenByName, "open by name")),
        PaneCommand::hidden(Action::PickClient, "client"),
        PaneCommand::hidden(Action::PreviousTab, "previous tab"),
        PaneCommand::hidden(Action::NextPart, "next panel"),
        PaneCommand::hidden(Action::PreviousPart, "previous panel"),
    ]);
    out.extend(PaneCommand::moves());
    out
}

/// Returns why a command on a skill of the catalog is not possible.
fn not_in_catalog(bundle: Option<ShownBundle<'_>>) -> Option<String> {
    let Some(bundle) = bundle else { return Some("no skill selected".to_owned()) };
    let name = &bundle.entry.label;
    bundle.skill.is_none().then(|| {
        if bundle.refusal.is_some() {
            format!("the SKILL.md of {name} was rejected")
        } else {
            format!("{name} is not in the catalog")
        }
    })
}

/// Returns why no file can be edited.
fn no_file(bundle: Option<ShownBundle<'_>>) -> Option<String> {
    let is_known = |bundle: &ShownBundle<'_>| bundle.refusal.is_some() || bundle.skill.is_some();
    if bundle.as_ref().is_some_and(is_known) { None } else { not_in_catalog(bundle) }
}

fn attach(bundle: Option<ShownBundle<'_>>) -> PaneCommand {
    let blocked = match bundle.and_then(|bundle| bundle.skill) {
        None => not_in_catalog(bundle),
        Some(skill) if skill.classification.invocation.value == Invocation::Direct => {
            Some(format!("{} cannot be attached: its invocation is `direct`", shown(&skill.name)))
        }
        Some(_) => None,
    };
    PaneCommand { blocked, ..PaneCommand::shown(Action::AttachThis, "attach") }
}

/// Returns the command to launch, disabled if the contract is known to be missing or not runnable.
fn launch(bundle: Option<ShownBundle<'_>>, detail: &Detail, footer: bool) -> PaneCommand {
    let blocked = match bundle.map(|bundle| detail.contracts.get(&bundle.entry.id)) {
        None => Some("no skill selected".to_owned()),
        Some(Some(Err(error))) => Some(shown(&error.message)),
        Some(Some(Ok(view))) => view.blocked.as_deref().map(shown),
        Some(None) => None,
    };
    PaneCommand { blocked, footer, ..PaneCommand::shown(Action::Launch, "launch") }
}
