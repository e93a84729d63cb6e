//! `skills budget` and `skills agents`: how a client's budget truncates the catalog, and the agents of a session.

use std::fmt::Write as _;

use super::Context;
use super::args::{AgentsAction, AgentsArgs, BudgetAction, BudgetArgs};
use super::dialog::{clean, sentences};
use super::failure::{Exit, Failure};
use super::output::{
    HANGING, TerminalCaps, TextStyle, cells, counted, estimate_sign, fit, grouped, tokens, wrap, wrap_after,
};
use serde_json::json;
use skills_api::{AssumedFolder, BudgetView, Code, CoreParts, Error, call_order, instead_of_description};
use skills_session::{BudgetResult, ListedEntry, ORCHESTRATOR, Truncation};
use skills_skill::safe_text;
use skills_skill::tokens::TokenCount;

/// Runs `skills budget`.
pub async fn run(cx: &mut Context, args: &BudgetArgs) -> Result<Exit, Failure> {
    if let Some(BudgetAction::Fit(args)) = &args.action {
        return super::budget_fit::run(cx, args).await;
    }
    let core = cx.reach(CoreParts::Catalog).await?;
    if let Some(client) = &args.client {
        let view = core.budget(Some(client), args.window).await?;
        cx.show(&view, |is_plain, look| {
            if is_plain { labeled_one(&view, args.all) } else { render_budget(&view, args.all, look) }
        })?;
        return Ok(Exit::Success);
    }
    let mut views = vec![core.budget(None, args.window).await?];
    for (client, _) in core.client_profiles().await? {
        views.push(core.budget(Some(&*client), args.window).await?);
    }
    cx.show(&views, |is_plain, look| if is_plain { labeled(&views) } else { all(&views, look) })?;
    Ok(Exit::Success)
}

/// Returns the notes about folders that clients do not search and are shown as if they did.
fn assumptions(views: &[BudgetView]) -> Vec<String> {
    let clients = views.iter().filter(|view| view.client.is_some());
    let clients: Vec<_> = clients.map(|view| (view.name.as_str(), view.assumed_folders.as_slice())).collect();
    AssumedFolder::notes(&clients)
}

fn all(views: &[BudgetView], look: TerminalCaps) -> String {
    let mut out = super::list::notes(&assumptions(views), look);
    // Without space for it in the row, the use of the budget has a line of its own.
    let used: Vec<String> = views.iter().map(used).collect();
    let widest = used.iter().map(|text| cells(text)).max().unwrap_or(0);
    let is_narrow = look.text_width(usize::MAX) < 86 + widest;
    let (gap, before_used) = if is_narrow { (" ", "\n  ") } else { ("  ", "  ") };
    let row = |columns: [&str; 7]| {
        let columns = columns.into_iter().zip([10, 7, 7, 9, 9, 7, 7]);
        columns.map(|(text, width)| format!("{gap}{text:>width$}")).collect::<Vec<_>>().concat()
    };
    let names = row(["not loaded", "entries", "full", "truncated", "name only", "omitted", "tokens"]);
    let head = format!("{:<14}{names}{before_used}budget used", "client");
    let _ = writeln!(out, "{}", TextStyle::Muted.paint(&head, look.color));
    let number = |count: usize| grouped(count as u64);
    for (view, used) in views.iter().zip(&used) {
        let BudgetResult { complete: unchanged, shortened, name_only, omitted, .. } =
            view.allowance.fill.made;
        let unseen = not_loaded(view);
        let entries = view.allowance.entries.iter().filter(|(entry, _)| !entry.bundled).count();
        let counts = [unseen, entries, unchanged, shortened, name_only, omitted].map(number);
        let sign = if view.tokens_estimated { estimate_sign(look.unicode) } else { "" };
        let tokens = format!("{sign}{}", grouped(u64::from(view.tokens.1)));
        let [unseen, entries, unchanged, shortened, name_only, omitted] = &counts;
        let columns = row([unseen, entries, unchanged, shortened, name_only, omitted, &tokens]);
        let name = fit(view.client.as_deref().unwrap_or("plain"), 14, look.unicode);
        let name = TextStyle::Strong.paint(&name, look.color);
        let _ = writeln!(out, "{name}{columns}{before_used}{used}");
    }
    out
}

/// Returns the number of skills that a client does not load.
fn not_loaded(view: &BudgetView) -> usize {
    view.not_listed.iter().map(|group| group.skills).fold(0, usize::saturating_add)
}

/// Describes how much of its limit a list uses, and the entries without a column.
fn used(view: &BudgetView) -> String {
    let fill = &view.allowance.fill;
    let BudgetResult { beyond, other_text, unknown, .. } = fill.made;
    let limit = match (&view.client, fill.limit) {
        (None, _) => "none".to_owned(),
        (_, Some(limit)) => {
            let (used, limit) = (grouped(fill.used as u64), grouped(limit as u64));
            let over = if fill.over.is_some() { ", exceeded" } else { "" };
            format!("{used} of {limit} {}{over}", fill.unit)
        }
        (_, None) if fill.unbounded => "no limit".to_owned(),
        (_, None) => "unknown".to_owned(),
    };
    let more = [
        (beyond, "over the limit"),
        (other_text, "with other text"),
        (unknown, "unknown"),
        (fill.own.skills, "built-in"),
    ];
    let more = more.into_iter().filter(|(count, _)| *count > 0);
    more.fold(limit, |text, (count, what)| format!("{text}, {count} {what}"))
}

/// Renders notes as labeled lines.
fn labeled_notes(notes: &[String]) -> String {
    notes.iter().map(|note| format!("Note: {}\n", sentences(vec![clean(note)]))).collect()
}

/// Renders all clients as labeled lines.
fn labeled(views: &[BudgetView]) -> String {
    let mut out = labeled_notes(&assumptions(views));
    for (number, view) in (1..).zip(views) {
        let BudgetResult { complete, shortened, name_only, omitted, .. } = view.allowance.fill.made;
        let unseen = not_loaded(view);
        let entries = view.allowance.entries.iter().filter(|(entry, _)| !entry.bundled).count();
        let prefix = if view.tokens_estimated { "about " } else { "" };
        let parts = vec![
            view.client
                .as_deref()
                .map_or_else(|| "No client".to_owned(), |id| format!("Client {}", clean(id))),
            format!("Skills not loaded: {unseen}"),
            format!(
                "Entries: {entries}, {complete} full, {shortened} truncated, {name_only} name only, {omitted} omitted"
            ),
            format!("Tokens: {prefix}{}", view.tokens.1),
            format!("Budget used: {}", clean(&used(view))),
        ];
        let _ = writeln!(out, "{number}. {}", sentences(parts));
    }
    out
}

/// Renders one client as labeled lines.
fn labeled_one(view: &BudgetView, every: bool) -> String {
    let mut out = labeled_notes(&assumptions(std::slice::from_ref(view)));
    let fill = &view.allowance.fill;
    let version = view.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    let prefix = if view.tokens_estimated { "about " } else { "" };
    let over = fill.over.as_ref().map(|why| format!("Over budget: {}", clean(why)));
    let unknown = fill.unknown.iter().map(|unknown| format!("Unknown: {}", clean(unknown)));
    let lines = [
        format!("Client: {}", clean(&format!("{}{version}", view.name))),
        format!("Limit: {}", clean(&fill.limit_from)),
        format!("Budget used: {}", clean(&used(view))),
        format!("Catalog: {} {} as written, {} as shown", fill.wanted, fill.unit, fill.used),
        format!("Measured: {}", clean(&fill.measured)),
        format!("Tokens: {prefix}{} as written, {prefix}{} as shown", view.tokens.0, view.tokens.1),
    ];
    let groups = view.not_listed.iter().map(|group| {
        let names: Vec<_> = group.names.iter().map(|name| safe_text::name(name)).collect();
        let names = if every { format!(". Names: {}", clean(&names.join(", "))) } else { String::new() };
        format!("Not loaded: {}, {}{names}", counted(group.skills, "skill"), clean(&group.why))
    });
    for line in lines.into_iter().chain(over).chain(unknown).chain(groups) {
        let _ = writeln!(out, "{}", sentences(vec![line]));
    }
    let entries = view.allowance.entries.iter().filter(|(entry, _)| every || !entry.bundled);
    let entries = entries.filter(|(_, state)| every || *state != Truncation::Complete);
    for (number, (entry, state)) in (1..).zip(entries) {
        let (_, word, why) = shown_as(entry, state);
        let built_in = if entry.bundled { "Built into the client" } else { "" };
        let parts = vec![
            format!("{}: {word}", clean(&safe_text::name(entry_name(entry)))),
            built_in.to_owned(),
            clean(&why),
        ];
        let _ = writeln!(out, "{number}. {}", sentences(parts));
    }
    if view.allowance.entries.is_empty() {
        out.push_str("No skills are listed.\n");
    }
    if !view.source.is_empty() {
        let _ = writeln!(out, "Sources: {}", sentences(vec![clean(&view.source)]));
    }
    out
}

/// Returns how an entry is shown, and why.
fn shown_as(entry: &ListedEntry, state: &Truncation) -> (TextStyle, &'static str, String) {
    match state {
        Truncation::Complete => (TextStyle::Good, "full", String::new()),
        Truncation::Shortened { characters, why } => {
            (TextStyle::Warn, "truncated", format!("to {characters} characters: {why}"))
        }
        Truncation::NameOnly { why } => (TextStyle::Warn, "name only", why.clone()),
        Truncation::Omitted { why } => (TextStyle::Bad, "omitted", why.clone()),
        Truncation::Beyond => {
            (TextStyle::Warn, "beyond", "over budget; how the client truncates is not published".to_owned())
        }
        Truncation::OtherText => {
            (TextStyle::Warn, "other", format!("shows {}", instead_of_description(&entry.description)))
        }
        Truncation::Unknown { what } => (TextStyle::Warn, "unknown", what.clone()),
    }
}

fn render_budget(view: &BudgetView, every: bool, look: TerminalCaps) -> String {
    let mut out = super::list::notes(&assumptions(std::slice::from_ref(view)), look);
    let allowance = &view.allowance;
    let measured_at = view.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    let _ = writeln!(out, "{}", TextStyle::Strong.paint(&format!("{}{measured_at}", view.name), look.color));
    let fill = &allowance.fill;
    let _ = writeln!(out, "  limit     {}", safe_text::line(&fill.limit_from));
    let _ = writeln!(
        out,
        "  catalog   {} {} as written, {} as shown{}",
        grouped(fill.wanted as u64),
        fill.unit,
        grouped(fill.used as u64),
        fill.limit.map_or_else(String::new, |limit| format!(", of {}", grouped(limit as u64)))
    );
    let _ = writeln!(out, "  measured  {}", safe_text::line(&fill.measured));
    if fill.own.skills > 0 {
        let own = fill.own;
        let of = fill.limit.map_or_else(String::new, |limit| format!(" of the {}", grouped(limit as u64)));
        let sign = if own.approximate { estimate_sign(look.unicode) } else { "" };
        let skills = counted(own.skills, "skill");
        let used = grouped(own.used as u64);
        let _ = writeln!(out, "  built-in  {skills}, {sign}{used}{of} {}", fill.unit);
    }
    if let Some(why) = &fill.over {
        let _ = writeln!(out, "  {}", TextStyle::Warn.paint(&format!("over budget: {why}"), look.color));
    }
    let in_all = |count| tokens(TokenCount { tokens: count, estimated: view.tokens_estimated }, look.unicode);
    // The client's own list has another format, and its built-in skills.
    let format =
        if view.client.is_some() { "; in the format of a session, without built-in skills" } else { "" };
    let _ = writeln!(
        out,
        "  tokens    {} as written, {} as shown, of {}{format}",
        in_all(view.tokens.0),
        in_all(view.tokens.1),
        grouped(u64::from(view.window))
    );
    for unknown in &fill.unknown {
        let _ = writeln!(out, "  {}", TextStyle::Warn.paint(&format!("unknown: {unknown}"), look.color));
    }
    let available = look.text_width(120);
    not_listed(&mut out, view, every, look);
    let mut shown = 0;
    let listed = allowance.entries.iter();
    let listed = listed.filter(|(entry, state)| every || !(entry.bundled || *state == Truncation::Complete));
    let width = look.name_width(listed.clone().map(|(entry, _)| entry_name(entry)), 12, 32);
    for (entry, state) in listed {
        let (style, word, why) = shown_as(entry, state);
        if shown == 0 {
            out.push('\n');
        }
        shown += 1;
        let name = look.name(&safe_text::name(entry_name(entry)), width);
        let why = match (entry.bundled, why.is_empty()) {
            (true, true) => "built into the client".to_owned(),
            (true, false) => format!("built into the client; {why}"),
            (false, _) => why,
        };
        let _ = writeln!(
            out,
            "  {}  {}  {}",
            style.paint(&format!("{word:<9}"), look.color),
            name,
            wrap_after(2 + 9 + 2 + width + 2, &why, available, TextStyle::Muted, look.color)
        );
    }
    if shown == 0 {
        let text = if allowance.entries.is_empty() {
            "no skills are listed"
        } else {
            "no truncation: every entry is complete"
        };
        let _ = writeln!(out, "  {text}");
    }
    if let Some((name, most)) = view.long.first() {
        let text = format!(
            "{} with more than 20 tokens; the longest, of {}, has {most}",
            counted(view.long.len(), "description"),
            safe_text::name(name)
        );
        let _ = writeln!(out, "\n  {}", TextStyle::Muted.paint(&text, look.color));
    }
    let _ = writeln!(out);
    let by = if view.source.is_empty() { String::new() } else { format!("sources: {}", view.source) };
    for line in wrap(&by, available) {
        let _ = writeln!(out, "{}", TextStyle::Muted.paint(&line, look.color));
    }
    out
}

/// Returns the name of an entry in the list; a built-in skill of the client may have no known name.
fn entry_name(entry: &ListedEntry) -> &str {
    match &entry.title {
        Some(title) => title,
        None if entry.name.is_empty() && entry.bundled => "(name not known)",
        None => &entry.name,
    }
}

/// Lists the skills that are not listed at all: their number by reason, or their names if every entry is shown.
fn not_listed(out: &mut String, view: &BudgetView, every: bool, look: TerminalCaps) {
    if view.not_listed.is_empty() {
        return;
    }
    let all = not_loaded(view);
    let entries = view.allowance.entries.iter().filter(|(entry, _)| !entry.bundled).count();
    let here = all.saturating_add(entries);
    let head = format!("{} of {} skills are not loaded", grouped(all as u64), grouped(here as u64));
    let _ = writeln!(out, "  {}", TextStyle::Warn.paint(&head, look.color));
    for group in &view.not_listed {
        let count = grouped(group.skills as u64);
        let lines = wrap(&safe_text::line(&group.why), look.text_width(120).saturating_sub(11).max(20));
        let _ = writeln!(out, "  {count:>7}  {}", lines.join("\n           "));
        for name in group.names.iter().filter(|_| every) {
            let _ =
                writeln!(out, "           {}", TextStyle::Muted.paint(&safe_text::name(name), look.color));
        }
    }
}

/// Marks an agent that a project defines.
const OF_PROJECT: &str = "  (of the project; its text is escaped)";

/// Prints the components of a call, numbered.
fn order(cx: &mut Context, composed: &[String]) -> Result<(), Failure> {
    cx.out.line("\na call is composed in this order:")?;
    for (part, at) in composed.iter().zip(1..) {
        cx.out.line(format!("  {at} {}", safe_text::line(part)))?;
    }
    Ok(())
}

/// Runs `skills agents`.
pub async fn agents(cx: &mut Context, args: &AgentsArgs) -> Result<Exit, Failure> {
    let core = cx.reach(CoreParts::Catalog).await?;
    let found = core.agents().await?;
    match &args.action {
        AgentsAction::List if cx.out.json => cx.out.value(&found)?,
        AgentsAction::List => {
            if found.is_empty() {
                cx.out.line(
                    "no agents found; agents are files agents/*.yaml next to the skills or in \
                    the project",
                )?;
            }
            let ids = found.iter().map(|view| cells(&safe_text::line(&view.agent.id)));
            let width = ids.max().unwrap_or(0);
            for view in &found {
                let skills = view.agent.uses_skills.join(", ");
                let skills = match skills.as_str() {
                    "" if view.composed.is_empty() && !view.problems.is_empty() => "cannot be read",
                    "" => "sees every skill",
                    own => own,
                };
                let project = if view.of_project { OF_PROJECT } else { "" };
                let id = safe_text::line(&view.agent.id);
                let gap = " ".repeat(width + 2 - cells(&id));
                let text = format!("{id}{gap}{}{project}", safe_text::line(skills));
                let look = cx.out.look;
                let problems = view.problems.iter();
                let problems = problems.flat_map(|why| look.rows("  ! ", HANGING, &safe_text::line(why)));
                for row in look.rows("", HANGING, &text).into_iter().chain(problems) {
                    cx.out.line(row)?;
                }
            }
        }
        AgentsAction::Show { agent } if agent == ORCHESTRATOR => {
            let composed = call_order(None);
            if cx.out.json {
                cx.out.value(&json!({"agent": {"id": ORCHESTRATOR}, "composed": composed}))?;
            } else {
                cx.out.line("orchestrator: used if no agent is set; has no file")?;
                order(cx, &composed)?;
            }
        }
        AgentsAction::Show { agent } => {
            let Some(view) = found.iter().find(|view| view.agent.id == *agent) else {
                let near = skills_api::near(agent, found.iter().map(|view| view.agent.id.as_str()));
                let error = Error::new(Code::NotFound, format!("agent `{agent}` not found"));
                return Err(Error { suggestions: near, ..error }.into());
            };
            if cx.out.json {
                cx.out.value(view)?;
            } else {
                // As the core read it: the file is not on this machine, or another one by now.
                let location = view.location.display().to_string();
                let project = if view.of_project { OF_PROJECT } else { "" };
                cx.out.line(format!("{}{project}", safe_text::line(&location)))?;
                let text = safe_text::block(view.definition.as_deref().unwrap_or_default()).into_owned();
                cx.out.text(&text)?;
                for problem in &view.problems {
                    cx.out.line(format!("! {}", safe_text::line(problem)))?;
                }
                order(cx, &view.composed)?;
            }
        }
    }
    Ok(Exit::Success)
}
