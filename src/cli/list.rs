//! `skills list`: one line per skill.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;

use super::Context;
use super::args::ListArgs;
use super::dialog::{clean, clean_own, sentences};
use super::failure::{Exit, Failure};
use super::output::{TerminalCaps, TextStyle, cells, counted, cut, cut_middle, fit, wrap};
use skills_api::{
    ClientView, ClientViewEntry, ClientViewState, CoreParts, ListFilter, SkillList, SkillSummary,
    instead_of_description, other_files,
};
use skills_registry::TrustSummary;
use skills_session::{ListedEntry, Truncation};
use skills_skill::{SkillId, safe_text};

/// `skills list --client … --json`: the list, and the client's state for each skill.
#[derive(Serialize)]
struct SeenBy<'a> {
    #[serde(flatten)]
    list: &'a SkillList,
    client: &'a ClientView,
}

pub async fn run(cx: &mut Context, args: &ListArgs) -> Result<Exit, Failure> {
    let client = cx.reach(CoreParts::Catalog).await?;
    let filter = ListFilter {
        domain: args.domain.clone(),
        role: args.role,
        status: args.status.clone(),
        query: args.query.clone(),
        limit: args.limit,
        cursor: args.cursor.clone(),
    };
    let mut list = client.list(filter).await?;
    if !cx.out.json {
        super::failure::warn(&list.hints);
    }
    let view = match &args.client {
        Some(id) => Some(client.client_view(id).await?),
        None => None,
    };
    if let Some(view) = view.as_ref().filter(|_| args.query.is_none()) {
        in_order_of(&mut list, view);
    }
    match (&view, cx.out.json) {
        (Some(view), true) => cx.out.value(&SeenBy { list: &list, client: view })?,
        (None, true) => cx.out.value(&list)?,
        (Some(view), false) => {
            cx.print_rendered(|is_plain, look| {
                render_client(&list, view, args.is_filtered(), is_plain, look)
            })?;
        }
        (None, false) => {
            cx.print_rendered(|is_plain, look| if is_plain { labeled(&list) } else { render(&list, look) })?;
        }
    }
    Ok(Exit::Success)
}

/// Sorts the skills in the order in which a client lists them; those that it does not list come last.
fn in_order_of(list: &mut SkillList, view: &ClientView) {
    let listed = view.list.entries.iter().filter_map(|(entry, _)| entry.skill_id.as_ref());
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (at, id) in listed.enumerate() {
        places.entry(id.as_str()).or_insert(at);
    }
    let place = |skill: &SkillSummary| places.get(skill.skill_id.as_str()).copied().unwrap_or(usize::MAX);
    list.skills.sort_by_key(place);
}

/// Renders the list as labeled lines.
fn labeled(list: &SkillList) -> String {
    let mut out = String::new();
    for (number, skill) in (1..).zip(&list.skills) {
        let shadowed =
            skill.shadowed_by.as_deref().map(|by| format!("Shadowed by {}", clean(&path_text(by))));
        let findings = (skill.findings > 0).then(|| format!("Findings: {}", skill.findings));
        let parts = vec![
            clean(&safe_text::name(skill.skill_id.as_str())),
            format!("Role: {}. Status: {}", skill.role, clean(skill.status.as_str())),
            findings.unwrap_or_default(),
            shadowed.unwrap_or_default(),
            format!("Description: {}", clean(&skill.description)),
        ];
        let _ = writeln!(out, "{number}. {}", sentences(parts));
    }
    for refusal in &list.refused {
        let why = refusal.findings.last().map(|finding| clean_own(&finding.message)).unwrap_or_default();
        let _ =
            writeln!(out, "Rejected: {}", sentences(vec![clean(&safe_text::name(refusal.id.as_str())), why]));
    }
    let look = TerminalCaps { color: false, unicode: false, width: usize::MAX, terminal: false };
    out + &footer(list, look)
}

pub fn render(list: &SkillList, look: TerminalCaps) -> String {
    let mut out = String::new();
    let (winners, shadowed): (Vec<&SkillSummary>, Vec<_>) =
        list.skills.iter().partition(|skill| skill.shadowed_by.is_none());
    let ids = list.skills.iter().map(|skill| skill.skill_id.as_str());
    let id_width = look.name_width(ids, 12, if look.width >= 120 { 48 } else { 30 });
    let statuses = winners.iter().map(|skill| cells(skill.status.as_str())).max().unwrap_or(6).clamp(6, 12);
    let about = look.text_width(usize::MAX).saturating_sub(id_width + 2 + 9 + 2 + statuses + 2 + 3 + 2);
    if !winners.is_empty() {
        let head = format!(
            "{}  {:<9}  {}  {:>3}  {}",
            fit("id", id_width, look.unicode),
            "role",
            fit("status", statuses, look.unicode),
            "!",
            "description"
        );
        let _ = writeln!(out, "{}", TextStyle::Muted.paint(head.trim_end(), look.color));
    }
    for skill in &winners {
        let id = look.name(&safe_text::name(skill.skill_id.as_str()), id_width);
        let status = fit(&safe_text::line(skill.status.as_str()), statuses, look.unicode);
        let findings = if skill.findings == 0 { String::new() } else { skill.findings.to_string() };
        let text = skill.description.clone();
        let _ = writeln!(
            out,
            "{}  {:<9}  {status}  {}  {}",
            TextStyle::Strong.paint(&id, look.color),
            skill.role.to_string(),
            TextStyle::Warn.paint(&format!("{findings:>3}"), look.color),
            TextStyle::Muted.paint(&cut(&safe_text::line(&text), about.max(8), look.unicode), look.color),
        );
    }
    if !shadowed.is_empty() {
        let _ = writeln!(out, "\n{}", TextStyle::Strong.paint("shadowed", look.color));
    }
    for skill in shadowed {
        let id = look.name(&safe_text::name(skill.skill_id.as_str()), id_width);
        let winner = skill.shadowed_by.as_deref().map(path_text).unwrap_or_default();
        let by = format!("by {winner}");
        let _ = writeln!(
            out,
            "{id}  {}",
            cut_middle(&by, look.text_width(usize::MAX).saturating_sub(id_width + 2), look.unicode)
        );
    }
    if !list.refused.is_empty() {
        let _ = writeln!(out, "\n{}", TextStyle::Strong.paint("rejected", look.color));
    }
    for refusal in &list.refused {
        let id = look.name(&safe_text::name(refusal.id.as_str()), id_width);
        let why = refusal.findings.last().map_or_else(String::new, |finding| finding.message.clone());
        let why = cut(
            &safe_text::line(&why),
            look.text_width(usize::MAX).saturating_sub(id_width + 2),
            look.unicode,
        );
        let _ = writeln!(out, "{id}  {}", TextStyle::Bad.paint(&why, look.color));
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out + &footer(list, look)
}

fn footer(list: &SkillList, look: TerminalCaps) -> String {
    let shadowed = list.skills.iter().filter(|skill| skill.shadowed_by.is_some()).count();
    let here = list.skills.len() - shadowed;
    let mut parts = if list.total > list.skills.len() {
        vec![format!("{} of {}", list.skills.len(), counted(list.total, "skill"))]
    } else {
        vec![counted(here, "skill")]
    };
    if shadowed > 0 {
        parts.push(format!("{shadowed} shadowed"));
    }
    if !list.refused.is_empty() {
        parts.push(format!("{} rejected", list.refused.len()));
    }
    parts.extend(next_page(list));
    let dot = if look.unicode { " · " } else { " - " };
    TextStyle::Muted.paint(&parts.join(dot), look.color) + "\n"
}

/// Returns the option that lists the next page, if there is one.
fn next_page(list: &SkillList) -> Option<String> {
    let next = list.next.as_ref()?;
    Some(format!("more: --cursor '{}'", safe_text::line(next).replace('\'', "'\\''")))
}

/// An entry of a client's list, as it is rendered.
struct ClientRow<'v> {
    number: usize,
    title: String,
    shown: &'v Truncation,
    text: String,
}

/// Renders what a client lists, in its order and with its names, and what it does not list. With `filtered`, only the
/// skills of the list.
fn render_client(
    list: &SkillList,
    view: &ClientView,
    filtered: bool,
    plain: bool,
    look: TerminalCaps,
) -> String {
    let requested: HashSet<&str> = list.skills.iter().map(|skill| skill.skill_id.as_str()).collect();
    let is_wanted = |id: Option<&SkillId>| !filtered || id.is_some_and(|id| requested.contains(id.as_str()));
    let rejected: HashSet<&Path> = list.refused.iter().map(|one| one.location.as_path()).collect();
    let rows = client_rows(view, &rejected, is_wanted);
    let unseen = unseen_skills(list, view, is_wanted);
    let table = if plain { labeled_client(&rows, &unseen, look) } else { client_table(&rows, &unseen, look) };
    let version = view.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    let name = safe_text::line(&view.name);
    let mut parts = if list.total > list.skills.len() {
        // How many skills of the other pages the client lists is not known.
        let of = format!("{} of {}", list.skills.len(), counted(list.total, "skill"));
        vec![format!("{name}{version}, {of}: {} listed", rows.len())]
    } else {
        vec![format!("{name}{version}: {}", counted(rows.len(), "skill"))]
    };
    parts.push(format!("{} not listed", unseen.len()));
    let own = view.list.fill.own.skills;
    if own > 0 {
        parts.push(format!("{own} built-in"));
    }
    parts.extend(next_page(list));
    let dot = if look.unicode { " · " } else { " - " };
    let footer = TextStyle::Muted.paint(&parts.join(dot), look.color);
    notes(&view.notes(), look) + &table + "\n" + &footer + "\n"
}

/// Returns the entries of the catalog in a client's list.
fn client_rows<'v>(
    view: &'v ClientView,
    rejected: &HashSet<&Path>,
    is_wanted: impl Fn(Option<&SkillId>) -> bool,
) -> Vec<ClientRow<'v>> {
    let states: HashMap<&str, &ClientViewState> =
        view.entries.iter().map(|entry| (entry.skill_id.as_str(), &entry.state)).collect();
    (1..)
        .zip(&view.list.entries)
        // A built-in skill that the client has unpacked into a root is a skill of the catalog too.
        .filter(|(_, (entry, _))| !entry.bundled || entry.skill_id.is_some())
        .filter(|(_, (entry, _))| is_wanted(entry.skill_id.as_ref()))
        .map(|(number, (entry, shown))| {
            let state = entry.skill_id.as_ref().and_then(|id| states.get(id.as_str()).copied());
            let title = entry.title.clone().unwrap_or_else(|| entry.name.clone());
            ClientRow { number, title, shown, text: entry_text(entry, state, rejected) }
        })
        .collect()
}

/// Returns the description that a client lists, or why it is another text.
fn entry_text(entry: &ListedEntry, state: Option<&ClientViewState>, rejected: &HashSet<&Path>) -> String {
    match (state, &entry.unknown, &entry.name_only) {
        (_, Some(what), _) => format!("unknown: {what}"),
        _ if entry.other_text && !entry.description.is_empty() => {
            format!("shows {}", instead_of_description(&entry.description))
        }
        (_, _, Some(setting)) => format!("name only: {setting}"),
        (None, ..) => {
            let is_rejected = entry.location.as_deref().is_some_and(|file| rejected.contains(file));
            let why = if is_rejected { "rejected here" } else { "not in this catalog" };
            format!("{why}: {}", entry.location.as_deref().map(path_text).unwrap_or_default())
        }
        (Some(ClientViewState::Found), ..) => entry.description.clone(),
        (Some(state), ..) => state_text(state),
    }
}

/// Returns the names of the skills that a client does not list, with the reasons.
fn unseen_skills<'v>(
    list: &SkillList,
    view: &'v ClientView,
    is_wanted: impl Fn(Option<&SkillId>) -> bool,
) -> Vec<(&'v str, String)> {
    // A skill whose state is unknown may have no entry.
    let has_entry = |id: &SkillId, location: Option<&Path>| {
        view.list.entries.iter().any(|(entry, _)| match &entry.skill_id {
            Some(listed) => listed == id,
            None => entry.location.as_deref().is_some_and(|file| Some(file) == location),
        })
    };
    let is_unseen = |state: &ClientViewState, id: &SkillId, location: Option<&Path>| match state {
        ClientViewState::Unknown(_) => !has_entry(id, location),
        state => !is_listed(state),
    };
    // No client is expected to list the skills of this program.
    let shipped = list.skills.iter().filter(|skill| skill.trusted == TrustSummary::Shipped);
    let shipped: HashSet<&str> = shipped.map(|skill| skill.skill_id.as_str()).collect();
    let is_expected = |entry: &&ClientViewEntry| {
        entry.state != ClientViewState::NotLooked || !shipped.contains(entry.skill_id.as_str())
    };
    let entries = view.entries.iter().filter(|entry| is_wanted(Some(&entry.skill_id))).filter(is_expected);
    // This program may hide a skill that the client finds.
    let groups = view.not_listed.iter();
    let hidden: HashMap<&str, &str> =
        groups.flat_map(|group| group.names.iter().map(|name| (name.as_str(), group.why.as_str()))).collect();
    // The entry of a rejected file has no id.
    let rejected =
        |id: &SkillId| list.refused.iter().find(|one| one.id == *id).map(|one| one.location.as_path());
    let entries = entries.filter_map(|entry| {
        let id = entry.skill_id.as_str();
        let why = if is_unseen(&entry.state, &entry.skill_id, rejected(&entry.skill_id)) {
            state_text(&entry.state)
        } else {
            safe_text::line(hidden.get(id)?).into_owned()
        };
        Some((id, why))
    });
    let foreign = view.foreign.iter().filter(|_| is_wanted(None));
    let foreign = foreign.filter(|one| is_unseen(&one.state, &SkillId::new(&*one.name), Some(&one.location)));
    entries.chain(foreign.map(|one| (one.name.as_str(), state_text(&one.state)))).collect()
}

/// Returns how much of a description is shown, with its style.
fn shown_label(shown: &Truncation) -> (TextStyle, String) {
    match shown {
        Truncation::Complete => (TextStyle::Good, "full".to_owned()),
        Truncation::Shortened { characters, .. } => (TextStyle::Warn, format!("{characters} chars")),
        Truncation::NameOnly { .. } => (TextStyle::Warn, "name only".to_owned()),
        Truncation::Omitted { .. } => (TextStyle::Bad, "omitted".to_owned()),
        Truncation::Beyond => (TextStyle::Warn, "beyond".to_owned()),
        Truncation::OtherText => (TextStyle::Warn, "other text".to_owned()),
        Truncation::Unknown { .. } => (TextStyle::Warn, "unknown".to_owned()),
    }
}

/// Renders a client's list as labeled lines.
fn labeled_client(rows: &[ClientRow<'_>], unseen: &[(&str, String)], look: TerminalCaps) -> String {
    let mut out = String::new();
    for ClientRow { number, title, shown, text } in rows {
        let (_, label) = shown_label(shown);
        let (title, text) = (safe_text::line(title), safe_text::line(text));
        let _ = writeln!(out, "{number}. {title}. Shown: {label}. {text}");
    }
    out += &unseen_heading(unseen, look);
    for (name, why) in unseen {
        let _ = writeln!(out, "{}: {why}.", safe_text::line(name));
    }
    out
}

/// Renders a client's list as a table.
fn client_table(rows: &[ClientRow<'_>], unseen: &[(&str, String)], look: TerminalCaps) -> String {
    let names = rows.iter().map(|row| row.title.as_str()).chain(unseen.iter().map(|(name, _)| *name));
    let width = look.name_width(names, 12, if look.width >= 120 { 48 } else { 30 });
    let about = look.text_width(usize::MAX).saturating_sub(6 + width + 2 + 10 + 2).max(8);
    let mut out = String::new();
    if !rows.is_empty() {
        let head = format!("{:>4}  {}  {:<10}  description", "", fit("name", width, look.unicode), "shown");
        let _ = writeln!(out, "{}", TextStyle::Muted.paint(head.trim_end(), look.color));
    }
    for ClientRow { number, title, shown, text } in rows {
        let (style, label) = shown_label(shown);
        let name = look.name(&safe_text::name(title), width);
        let _ = writeln!(
            out,
            "{number:>4}  {}  {}  {}",
            TextStyle::Strong.paint(&name, look.color),
            style.paint(&format!("{label:<10}"), look.color),
            TextStyle::Muted.paint(&cut(&safe_text::line(text), about, look.unicode), look.color),
        );
    }
    out += &unseen_heading(unseen, look);
    for (name, why) in unseen {
        let id = look.name(&safe_text::name(name), width);
        let available = look.text_width(usize::MAX).saturating_sub(6 + width + 2);
        let _ = writeln!(out, "      {id}  {}", cut_middle(why, available, look.unicode));
    }
    out
}

fn unseen_heading(unseen: &[(&str, String)], look: TerminalCaps) -> String {
    if unseen.is_empty() {
        return String::new();
    }
    format!("\n{}\n", TextStyle::Strong.paint("not listed", look.color))
}

/// Renders notes above a list, a line each.
pub fn notes(notes: &[String], look: TerminalCaps) -> String {
    let lines = notes.iter().flat_map(|note| wrap(&safe_text::line(note), look.text_width(120)));
    let mut out: String = lines.map(|line| TextStyle::Warn.paint(&line, look.color) + "\n").collect();
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

fn is_listed(state: &ClientViewState) -> bool {
    use ClientViewState::{Either, Found, Repaired, Unknown};
    matches!(state, Found | Repaired(_) | Unknown(_) | Either(_))
}

fn state_text(state: &ClientViewState) -> String {
    match state {
        ClientViewState::Found => "found".to_owned(),
        ClientViewState::Repaired(what) => format!("found, repaired: {what}"),
        ClientViewState::Shadowed(by) => format!("shadowed by {}", path_text(by)),
        ClientViewState::Dropped(why) => format!("dropped: {why}"),
        ClientViewState::Unknown(why) => format!("unknown: {why}"),
        ClientViewState::NotRead(why) => format!("not read: {why}"),
        ClientViewState::ForPeople(message) => format!("user-only: {message}"),
        ClientViewState::TurnedOff(message) => format!("turned off: {message}"),
        ClientViewState::Either(others) => {
            let others = other_files(others, " or ", path_text);
            format!("undefined: this skill or {others}; the choice varies between starts")
        }
        ClientViewState::Waiting(until) => format!("not loaded yet: {until}"),
        ClientViewState::NotLooked => "not in a folder that this client searches".to_owned(),
        ClientViewState::TooDeep(place) => {
            format!("nested too deep: only folders directly in {} are loaded", path_text(place))
        }
    }
}

fn path_text(path: &Path) -> String {
    safe_text::line(&path.display().to_string()).into_owned()
}
