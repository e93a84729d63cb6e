//! `skills budget fit`: the smallest change that makes the lists of clients fit their budgets.

use std::fmt::Write as _;

use super::Context;
use super::args::BudgetFitArgs;
use super::draft::diff;
use super::failure::{Exit, Failure};
use super::output::{TerminalCaps, TextStyle, grouped, inflected};
use skills_api::{
    BudgetFit, BudgetFitRequest, Code, CoreParts, FitLevel, FittedClient, NewDescription, SavedDescription,
    ShownFile, save_description, write_overrides,
};
use skills_skill::safe_text;

/// Maximum number of lost queries listed.
const MAX_LISTED: usize = 20;

pub async fn run(cx: &mut Context, args: &BudgetFitArgs) -> Result<Exit, Failure> {
    let core = cx.reach(CoreParts::Index).await?;
    if args.write && core.as_local().is_none() {
        return Err(Failure::usage("--write changes files of this machine; remove --connect or --write"));
    }
    let request =
        BudgetFitRequest { clients: args.clients.clone(), window: args.window, queries: Vec::new() };
    let fit = core.budget_fit(request).await?;
    cx.show(&fit, |is_plain, look| render(&fit, is_plain, look))?;
    let has_changes =
        !fit.descriptions.is_empty() || fit.clients.iter().any(|client| client.overrides.is_some());
    if !fit.fits {
        if args.write {
            cx.reporter().print_line("nothing is written: a list does not fit or a golden query is lost");
        }
        return Ok(Exit::ChecksFailed);
    }
    if !has_changes {
        cx.reporter().print_line("nothing to change: every list already fits");
    } else if !args.write {
        cx.reporter().print_line("nothing is written; --write applies the change");
    }
    if !args.write {
        return Ok(Exit::Success);
    }
    for description in &fit.descriptions {
        let new = NewDescription {
            skill_id: description.skill_id.to_string(),
            shown: Some(ShownFile::Description(description.before.clone())),
            description: Some(description.after.clone()),
            justification: Some(format!("Fits the catalog budget of {}.", args.clients.join(", "))),
            ..NewDescription::default()
        };
        let saved = match save_description(&*core, new).await {
            // The other changes are independent of a file that this program never writes.
            Err(error) if error.code == Code::InvalidRequest => {
                let message = cx.completed_in(&error.message);
                cx.reporter().warn(&format!("{}: {}", description.skill_id, safe_text::line(&message)));
                continue;
            }
            saved => saved?,
        };
        match saved {
            SavedDescription::Written(location, ..) => {
                cx.reporter()
                    .print_line(&format!("wrote {}", safe_text::line(&location.display().to_string())));
            }
            SavedDescription::Proposed(view, obstacle) => {
                cx.reporter().warn(&format!("not written: {}", safe_text::line(&obstacle)));
                super::proposals::report_created(cx, &view);
            }
        }
    }
    for overrides in fit.clients.iter().filter_map(|client| client.overrides.as_ref()) {
        write_overrides(overrides)?;
        cx.reporter()
            .print_line(&format!("wrote {}", safe_text::line(&overrides.file.display().to_string())));
    }
    Ok(Exit::Success)
}

fn label(level: FitLevel) -> &'static str {
    match level {
        FitLevel::Full => "full",
        FitLevel::Shortened => "shortened",
        FitLevel::NameOnly => "name only",
        FitLevel::Manual => "user-only",
        FitLevel::Off => "off",
    }
}

fn render(fit: &BudgetFit, plain: bool, look: TerminalCaps) -> String {
    let mut out = String::new();
    if !fit.fits {
        let note = "no change makes every list fit without losing a golden query";
        let _ = writeln!(out, "{}\n", TextStyle::Bad.paint(note, look.color));
    }
    for one in &fit.clients {
        client(&mut out, one, fit.fits, plain, look);
    }
    if !fit.fits {
        let note = "The figures above are for the closest change found; --json contains the change.";
        let _ = writeln!(out, "{}", TextStyle::Muted.paint(note, look.color));
    } else if !fit.descriptions.is_empty() {
        let head = inflected(fit.descriptions.len(), "description changes", "descriptions change");
        let _ = writeln!(out, "{}", TextStyle::Strong.paint(&head, look.color));
        for one in &fit.descriptions {
            let _ = writeln!(out, "\n{}", safe_text::line(&one.location.display().to_string()));
            if plain {
                let (before, after) = (safe_text::line(&one.before), safe_text::line(&one.after));
                let _ = writeln!(out, "Before: {before}\nAfter: {after}");
            } else {
                out.push_str(&diff(&one.before, &one.after, look));
            }
        }
    }
    out
}

/// Writes the figures of a client, and the settings of a change that can be applied.
fn client(out: &mut String, client: &FittedClient, is_applicable: bool, plain: bool, look: TerminalCaps) {
    let head = |name: &str| if plain { format!("{name}:") } else { format!("{name:<9}") };
    let version = client.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    let _ = writeln!(out, "{}", TextStyle::Strong.paint(&format!("{}{version}", client.name), look.color));
    let of = match client.limit {
        Some(limit) => format!("of {} {}", grouped(limit as u64), client.unit),
        None => format!("{}, no known limit", client.unit),
    };
    let fits = match (client.fits_now, client.fits) {
        (true, true) => TextStyle::Good.paint("already fits", look.color),
        (false, true) => TextStyle::Good.paint("fits", look.color),
        (_, false) => TextStyle::Bad.paint("does not fit", look.color),
    };
    let (now, then) = client.size;
    let _ =
        writeln!(out, "  {} {} -> {} {of}: {fits}", head("list"), grouped(now as u64), grouped(then as u64));
    let (now, then) = client.tokens;
    let _ = writeln!(out, "  {} {} -> {}", head("tokens"), grouped(u64::from(now)), grouped(u64::from(then)));
    let _ = writeln!(
        out,
        "  {} {} with complete descriptions, {} with what the client shows now, {} with the change",
        head("golden"),
        inflected(client.expected, "passes", "pass"),
        client.expected_now,
        client.expected.saturating_sub(client.lost.len())
    );
    for query in client.lost.iter().take(MAX_LISTED) {
        let lost = TextStyle::Bad.paint("lost", look.color);
        let _ = writeln!(out, "          {lost} {}", safe_text::line(query));
    }
    let levels: Vec<String> =
        client.levels.iter().map(|(level, skills)| format!("{skills} {}", label(*level))).collect();
    // Its list may have only its own skills.
    let levels =
        if levels.is_empty() { "none of the catalog is listed".to_owned() } else { levels.join(", ") };
    let _ = writeln!(out, "  {} {levels}", head("skills"));
    if let Some(overrides) = client.overrides.as_ref().filter(|_| is_applicable) {
        let _ = writeln!(
            out,
            "  {} {}",
            head("settings"),
            safe_text::line(&overrides.file.display().to_string())
        );
        for line in overrides.text.lines() {
            let added = if plain { "Added:" } else { "+" };
            let line = format!("{added} {}", safe_text::line(line));
            let _ = writeln!(out, "    {}", TextStyle::Good.paint(&line, look.color));
        }
    } else if !client.fits && client.overrides.is_none() {
        let message = "no settings of this client are known that reduce a skill; move or remove skills";
        let _ = writeln!(out, "  {}", TextStyle::Muted.paint(message, look.color));
    }
    out.push('\n');
}
