//! The commands of Browse, by the part that has the focus.

use super::detail::{Detail, Tab};
use super::skill_list::{ShownBundle, SkillList};
use crate::action::{Action, Command};
use crate::widgets::shown;
use skills_skill::Invocation;

/// Returns the commands with the focus on the list.
pub(super) fn in_list(list: &SkillList, detail: &Detail) -> Vec<Command> {
    let bundle = list.shown();
    let none = bundle.is_none().then(|| "no skill selected".to_owned());
    let on_skill = |command: Command| Command { blocked: none.clone(), ..command };
    let (in_catalog, in_file) = (not_in_catalog(bundle), no_file(bundle));
    let of_catalog = |command: Command| Command { blocked: in_catalog.clone(), ..command };
    let mut out = vec![
        Command { blocked: none.clone(), ..Command::shown(Action::Down, "move") },
        on_skill(Command::shown(Action::Open, "open")),
        on_skill(Command::shown(Action::Filter, "filter")),
        on_skill(Command::shown(Action::Why, "why")),
        of_catalog(Command::shown(Action::Draft, "draft")),
        on_skill(Command::shown(Action::OpenByName, "open by name")),
        Command { blocked: in_file, ..Command::shown(Action::Edit, "edit") },
        Command::shown(Action::PickClient, "client"),
        on_skill(Command::shown(Action::Sort, "sort")),
        on_skill(Command::shown(Action::GroupBy, "group")),
        of_catalog(Command::shown(Action::DiscoverThis, "similar")),
        of_catalog(Command::hidden(Action::AddGolden, "add golden query")),
        Command::shown(Action::ShowCollisions, "collisions"),
        attach(bundle),
        launch(bundle, detail, false),
        of_catalog(Command::shown(Action::LoadSkill, "load")),
        on_skill(Command::shown(Action::Copy, "copy")),
        on_skill(Command::hidden(Action::CopyAs, "copy as")),
        on_skill(Command::hidden(Action::Fold, "fold")),
        on_skill(Command::hidden(Action::NextTab, "next tab")),
        on_skill(Command::hidden(Action::PreviousTab, "previous tab")),
        Command::hidden(Action::NextPart, "next panel"),
        Command::hidden(Action::PreviousPart, "previous panel"),
    ];
    if !list.filter.is_empty() {
        out.insert(3, Command::shown(Action::Back, "clear filter"));
    }
    out.extend(Command::moves());
    out
}

/// Returns the commands with the focus on the content of the skill.
pub(super) fn in_detail(list: &SkillList, detail: &Detail) -> Vec<Command> {
    let bundle = list.shown();
    let none = bundle.is_none().then(|| "no skill selected".to_owned());
    let on_skill = |command: Command| Command { blocked: none.clone(), ..command };
    let (in_catalog, in_file) = (not_in_catalog(bundle), no_file(bundle));
    let of_catalog = |command: Command| Command { blocked: in_catalog.clone(), ..command };
    let is_list = matches!(detail.tab, Tab::Files | Tab::Findings | Tab::Rivals);
    let label = if is_list { "move" } else { "scroll" };
    let mut out = vec![Command::shown(Action::Down, label)];
    if matches!(detail.tab, Tab::Files | Tab::Findings) {
        out.push(on_skill(Command::shown(Action::Open, "edit file")));
    }
    if detail.tab == Tab::Rivals {
        let blocked = bundle
            .and_then(|shown| detail.chosen_rival(&shown.entry.id))
            .is_none()
            .then(|| "no rival".to_owned());
        out.push(Command { blocked, ..Command::shown(Action::Open, "compare") });
    }
    out.push(launch(bundle, detail, detail.tab == Tab::Contract));
    out.extend([
        Command::shown(Action::NextTab, "next tab"),
        Command::shown(Action::Back, "back to list"),
        Command { blocked: in_file, ..Command::shown(Action::Edit, "edit") },
        of_catalog(Command::shown(Action::DiscoverThis, "similar")),
        on_skill(Command::shown(Action::Why, "why")),
        of_catalog(Command::shown(Action::Draft, "draft")),
        of_catalog(Command::hidden(Action::AddGolden, "add golden query")),
        Command::hidden(Action::ShowCollisions, "collisions"),
        attach(bundle),
        of_catalog(Command::shown(Action::LoadSkill, "load")),
        on_skill(Command::shown(Action::Copy, "copy")),
        on_skill(Command::hidden(Action::CopyAs, "copy as")),
        Command::hidden(Action::Filter, "filter"),
        on_skill(Command::hidden(Action::OpenByName, "open by name")),
        Command::hidden(Action::PickClient, "client"),
        Command::hidden(Action::PreviousTab, "previous tab"),
        Command::hidden(Action::NextPart, "next panel"),
        Command::hidden(Action::PreviousPart, "previous panel"),
    ]);
    out.extend(Command::moves());
    out
}

/// Returns why a command on a skill of the catalog is not possible.
fn not_in_catalog(bundle: Option<ShownBundle<'_>>) -> Option<String> {
    let Some(bundle) = bundle else { return Some("no skill selected".to_owned()) };
    let why = if bundle.refusal.is_some() { "its file is rejected" } else { "it is not in the catalog" };
    bundle.skill.is_none().then(|| why.to_owned())
}

/// Returns why no file can be edited.
fn no_file(bundle: Option<ShownBundle<'_>>) -> Option<String> {
    let is_known = |bundle: &ShownBundle<'_>| bundle.refusal.is_some() || bundle.skill.is_some();
    if bundle.as_ref().is_some_and(is_known) { None } else { not_in_catalog(bundle) }
}

fn attach(bundle: Option<ShownBundle<'_>>) -> Command {
    let blocked = match bundle.and_then(|bundle| bundle.skill) {
        None => not_in_catalog(bundle),
        Some(skill) if skill.classification.invocation.value == Invocation::Direct => {
            Some(format!("{} cannot be attached: its invocation is `direct`", shown(&skill.name)))
        }
        Some(_) => None,
    };
    Command { blocked, ..Command::shown(Action::AttachThis, "attach") }
}

/// Returns the command to launch, disabled if the contract is known to be missing or not runnable.
fn launch(bundle: Option<ShownBundle<'_>>, detail: &Detail, footer: bool) -> Command {
    let blocked = match bundle.map(|bundle| detail.contracts.get(&bundle.entry.id)) {
        None => Some("no skill selected".to_owned()),
        Some(Some(Err(error))) => Some(shown(&error.message)),
        Some(Some(Ok(view))) => view.blocked.as_deref().map(shown),
        Some(None) => None,
    };
    Command { blocked, footer, ..Command::shown(Action::Launch, "launch") }
}
