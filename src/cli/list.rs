//! `skills list`: one line a skill.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;

use super::Context;
use super::args::ListArgs;
use super::context::Whole;
use super::failure::{Done, Failure};
use super::output::{Ink, Look, cells, counted, cut, fit};
use crate::gateway::{
    ClientView, ClientViewEntry, ClientViewState, ListFilter, Needs, SkillList, SkillSummary, near,
};
use crate::skill::safe_text;

/// `skills list --client … --json`: the list, and what the client makes of each skill.
#[derive(Serialize)]
struct SeenBy<'a> {
    #[serde(flatten)]
    list: &'a SkillList,
    client: &'a ClientView,
}

/// Runs the command.
pub async fn run(cx: &mut Context, args: &ListArgs) -> Result<Done, Failure> {
    let client = cx.reach(Needs::Catalogue).await?;
    let filter = ListFilter {
        domain: args.domain.clone(),
        role: args.role,
        status: args.status.clone(),
        query: args.query.clone(),
        limit: args.limit,
        cursor: args.cursor.clone(),
    };
    let list = client.list(filter).await?;
    if list.skills.is_empty() {
        hint(cx, &*client, args).await?;
    }
    let view = match &args.client {
        Some(id) => Some(client.client_view(id).await?),
        None => None,
    };
    match (&view, cx.out.json) {
        (Some(view), true) => cx.out.value(&SeenBy { list: &list, client: view })?,
        (None, true) => cx.out.value(&list)?,
        (view, false) => {
            let text = render(&list, view.as_ref(), cx.out.look);
            cx.out.raw(text.as_bytes())?;
        }
    }
    Ok(Done::Fine)
}

/// Says which values of the filters no skill has, and which near ones some do.
async fn hint(cx: &Context, client: &dyn Whole, args: &ListArgs) -> Result<(), Failure> {
    if args.status.is_none() && args.domain.is_empty() {
        return Ok(());
    }
    let all = client.list(ListFilter::default()).await?.skills;
    let statuses: BTreeSet<&str> = all.iter().map(|skill| skill.status.as_str()).collect();
    let domains: BTreeSet<&str> = all.iter().filter_map(|skill| skill.domain.as_deref()).collect();
    let filters = args.status.iter().map(|status| ("status", status, &statuses));
    let filters = filters.chain(args.domain.iter().map(|domain| ("domain", domain, &domains)));
    for (filter, value, known) in filters {
        if known.iter().any(|one| one.eq_ignore_ascii_case(value)) {
            continue;
        }
        let near = near(value, known.iter().copied());
        let near = match near.first() {
            Some(name) => format!("; did you mean {}?", safe_text::line(name)),
            None => String::new(),
        };
        cx.voice().say(&format!("help: no skill has the {filter} {}{near}", safe_text::line(value)));
    }
    Ok(())
}

/// The list as text.
pub fn render(list: &SkillList, view: Option<&ClientView>, look: Look) -> String {
    let mut out = String::new();
    let (winners, shadowed): (Vec<&SkillSummary>, Vec<_>) =
        list.skills.iter().partition(|skill| skill.shadowed_by.is_none());
    let ids = list.skills.iter().map(|skill| skill.skill_id.as_str());
    let id_width = look.name_width(ids, 12, if look.width >= 120 { 48 } else { 30 });
    let statuses = winners.iter().map(|skill| cells(skill.status.as_str())).max().unwrap_or(6).clamp(6, 12);
    let about = look.room(usize::MAX).saturating_sub(id_width + 2 + 9 + 2 + statuses + 2 + 3 + 2);
    if !winners.is_empty() {
        let head = format!(
            "{}  {:<9}  {}  {:>3}  {}",
            fit("id", id_width, look.unicode),
            "role",
            fit("status", statuses, look.unicode),
            "!",
            "description"
        );
        let _ = writeln!(out, "{}", Ink::Muted.paint(head.trim_end(), look.colour));
    }
    for skill in &winners {
        let id = look.name(&safe_text::line(skill.skill_id.as_str()), id_width);
        let status = fit(&safe_text::line(skill.status.as_str()), statuses, look.unicode);
        let findings = if skill.findings == 0 { String::new() } else { skill.findings.to_string() };
        let text = match state(view, skill) {
            Some(state) => state_text(state),
            None => skill.description.clone(),
        };
        let _ = writeln!(
            out,
            "{}  {:<9}  {status}  {}  {}",
            Ink::Strong.paint(&id, look.colour),
            skill.role.to_string(),
            Ink::Warn.paint(&format!("{findings:>3}"), look.colour),
            Ink::Muted.paint(&cut(&safe_text::line(&text), about.max(8), look.unicode), look.colour),
        );
    }
    if !shadowed.is_empty() {
        let _ = writeln!(out, "\n{}", Ink::Strong.paint("shadowed", look.colour));
    }
    for skill in shadowed {
        let id = look.name(&safe_text::line(skill.skill_id.as_str()), id_width);
        let winner = skill.shadowed_by.as_deref().map(path_text).unwrap_or_default();
        let by = format!("by {winner}");
        let _ =
            writeln!(out, "{id}  {}", middle(&by, look.room(usize::MAX).saturating_sub(id_width + 2), look));
    }
    if !list.refused.is_empty() {
        let _ = writeln!(out, "\n{}", Ink::Strong.paint("refused", look.colour));
    }
    for refusal in &list.refused {
        let id = look.name(&safe_text::line(refusal.id.as_str()), id_width);
        let why = refusal.findings.last().map_or_else(String::new, |finding| finding.message.clone());
        let why =
            cut(&safe_text::line(&why), look.room(usize::MAX).saturating_sub(id_width + 2), look.unicode);
        let _ = writeln!(out, "{id}  {}", Ink::Bad.paint(&why, look.colour));
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out + &footer(list, look)
}

fn footer(list: &SkillList, look: Look) -> String {
    let shadowed = list.skills.iter().filter(|skill| skill.shadowed_by.is_some()).count();
    let here = list.skills.len() - shadowed;
    let mut parts = if list.total > list.skills.len() {
        vec![format!("{} of {}", list.skills.len(), counted(list.total, "skill", "skills"))]
    } else {
        vec![counted(here, "skill", "skills")]
    };
    if shadowed > 0 {
        parts.push(format!("{shadowed} shadowed"));
    }
    if !list.refused.is_empty() {
        parts.push(format!("{} refused", list.refused.len()));
    }
    if let Some(next) = &list.next {
        parts.push(format!("more: --cursor '{}'", safe_text::line(next).replace('\'', "'\\''")));
    }
    let dot = if look.unicode { " · " } else { " - " };
    Ink::Muted.paint(&parts.join(dot), look.colour) + "\n"
}

fn state<'a>(view: Option<&'a ClientView>, skill: &SkillSummary) -> Option<&'a ClientViewState> {
    let entry: Option<&ClientViewEntry> = view?.entries.iter().find(|entry| entry.skill_id == skill.skill_id);
    entry.map(|entry| &entry.state)
}

fn state_text(state: &ClientViewState) -> String {
    match state {
        ClientViewState::Found => "found".to_owned(),
        ClientViewState::Repaired(what) => format!("found, repaired: {what}"),
        ClientViewState::Shadowed(by) => format!("shadowed by {}", path_text(by)),
        ClientViewState::Dropped(why) => format!("dropped: {why}"),
        ClientViewState::Unknown(why) => format!("unknown: {why}"),
        ClientViewState::NotRead(why) => format!("not read: {why}"),
        ClientViewState::ForPeople(said) => format!("for people alone: {said}"),
        ClientViewState::NotLooked => "not where this client looks".to_owned(),
        ClientViewState::TooDeep(place) => {
            format!("too deep: it takes only folders right below {}", path_text(place))
        }
    }
}

fn path_text(path: &Path) -> String {
    safe_text::line(&path.display().to_string()).into_owned()
}

/// A path cut in its middle, so that its beginning and its end stay.
fn middle(text: &str, width: usize, look: Look) -> String {
    if cells(text) <= width {
        return text.to_owned();
    }
    let ellipsis = if look.unicode { "…" } else { "..." };
    let keep = width.saturating_sub(cells(ellipsis)) / 2;
    let chars: Vec<char> = text.chars().collect();
    let front: String = chars.iter().take(keep).collect();
    let back: String = chars[chars.len().saturating_sub(keep)..].iter().collect();
    format!("{front}{ellipsis}{back}")
}
