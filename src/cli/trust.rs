//! `skills trust`: shows what an approval would allow to run, prompts, and pins what was shown.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::json;

use super::Context;
use super::args::TrustArgs;
use super::failure::{Exit, Failure};
use super::output::{HANGING, TerminalCaps, TextStyle, byte_size, counted, push_parts, push_row};
use skills_api::{Code, CoreParts, Error, Local, TrustSubject};
use skills_base::paths::escaped;
use skills_config::shown;
use skills_registry::trust::is_bundle;
use skills_registry::{Pin, TrustState, TrustSummary};
use skills_skill::safe_text;

/// Maximum number of lines of one kind shown of a bundle, except those that apply to the runs of other skills or act with
/// the user's credentials.
const MAX_SHOWN_LINES: usize = 12;

/// `skills trust --json`: what was shown, and the outcome.
#[derive(Serialize)]
struct Answer<'a> {
    subjects: &'a [TrustSubject],
    pinned: usize,
}

/// A line of `skills trust --list --json`.
#[derive(Serialize)]
struct TrustRow<'a> {
    #[serde(serialize_with = "skills_base::paths::serialize")]
    path: &'a Path,
    #[serde(flatten)]
    state: &'a TrustState,
    digest: String,
    trusted_at: &'a str,
    files: usize,
}

pub async fn run(cx: &mut Context, args: &TrustArgs) -> Result<Exit, Failure> {
    let local = cx.open(CoreParts::Catalog).await?;
    if args.list || args.what.is_empty() {
        return list(cx, &local).await;
    }
    if args.revoke {
        return revoke(cx, &local, &args.what);
    }
    let mut subjects: Vec<TrustSubject> = Vec::new();
    for requested in &args.what {
        for subject in local.trust_pins().digest(requested).await? {
            if !subjects.iter().any(|known| known.place == subject.place) {
                subjects.push(subject);
            }
        }
    }
    let needs_approval = |subject: &TrustSubject| !subject.state.may_run();
    let (requested, blocked): (Vec<TrustSubject>, Vec<_>) = subjects
        .iter()
        .filter(|subject| needs_approval(subject))
        .cloned()
        .partition(|subject| subject.obstacle.is_none());
    let mut hidden = 0;
    if !cx.out.json {
        let (text, hidden_lines) = render(cx, &subjects);
        hidden = hidden_lines;
        cx.out.text(&text)?;
    }
    if requested.is_empty() {
        return nothing_to_ask(cx, &subjects, &blocked);
    }
    if !args.yes {
        cx.out.flush()?;
        if !confirmed(cx, &requested, &subjects, hidden)? {
            return Err(Error::new(Code::Forbidden, "no changes made").into());
        }
    }
    let pinned = local.trust_pins().pin(requested).await?;
    if cx.out.json {
        let after: Vec<TrustSubject> = subjects
            .iter()
            .map(|subject| pinned.iter().find(|now| now.place == subject.place).unwrap_or(subject).clone())
            .collect();
        cx.out.value(&Answer { subjects: &after, pinned: pinned.len() })?;
    } else {
        let word = cx.out.paint(TextStyle::Good, "trusted");
        cx.out.line(format!("{word} the current content of {}", counted(pinned.len(), "folder")))?;
    }
    Ok(if blocked.is_empty() { Exit::Success } else { Exit::ChecksFailed })
}

/// Reports that everything is already trusted, or why the rest cannot be.
fn nothing_to_ask(
    cx: &mut Context,
    subjects: &[TrustSubject],
    blocked: &[TrustSubject],
) -> Result<Exit, Failure> {
    if let Some(first) = blocked.first() {
        let why = first.obstacle.as_deref().unwrap_or_default();
        let message = format!("{} cannot be trusted: {why}", first.place.display());
        return Err(Error::new(Code::Untrusted, message).into());
    }
    if cx.out.json {
        cx.out.value(&Answer { subjects, pinned: 0 })?;
    } else {
        cx.out.line("already trusted; no changes made")?;
    }
    Ok(Exit::Success)
}

/// Prompts on the terminal. Without one, the command fails with exit code 5.
fn confirmed(
    cx: &Context,
    requested: &[TrustSubject],
    subjects: &[TrustSubject],
    hidden: usize,
) -> Result<bool, Failure> {
    let hidden = if hidden == 0 {
        String::new()
    } else {
        format!(" and {} not shown (--json lists all)", counted(hidden, "line"))
    };
    if cx.out.json || !io::stdin().is_terminal() {
        let (what, its) = match requested.len() {
            1 => ("the folder executes".to_owned(), "its"),
            several => (format!("the {several} folders execute"), "their"),
        };
        let message = format!(
            "confirmation required: review what {what}{hidden}, then pass --yes to trust {its} current content"
        );
        let reason = Some(json!({ "subjects": subjects }));
        return Err(Error { reason, ..Error::new(Code::ConfirmationRequired, message) }.into());
    }
    let what = match requested.len() {
        1 => "this folder".to_owned(),
        several => format!("these {}", counted(several, "folder")),
    };
    eprint!("Trust the current content of {what}, so that the above{hidden} can be executed? [y/N] ");
    io::stderr().flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Renders what would be trusted, bundle by bundle; also returns how many lines of it are not shown.
fn render(cx: &Context, subjects: &[TrustSubject]) -> (String, usize) {
    let look = cx.out.look;
    let mut hidden = 0;
    let home = skills_config::Dirs::new(&cx.env).home;
    let mut out = String::new();
    let (running, quiet): (Vec<&TrustSubject>, Vec<_>) = subjects
        .iter()
        .partition(|subject| subject.runs_something() || !subject.services.is_empty() || subjects.len() == 1);
    for subject in running {
        let name = match &subject.skill_id {
            Some(id) => id.as_str(),
            None if is_bundle(&subject.place) => "invalid skill",
            None => "registry files",
        };
        let place = safe_text::name(&shown(&subject.place, &cx.cwd, &home)).into_owned();
        let (style, state) = state(&subject.state);
        let name = safe_text::name(name);
        let parts =
            [(TextStyle::Strong, &*name), (TextStyle::Muted, place.as_str()), (style, state.as_str())];
        push_parts(&mut out, &parts, look);
        for line in subject.obstacle.iter().flat_map(|why| look.rows("  ", HANGING, &safe_text::line(why))) {
            let _ = writeln!(out, "{}", TextStyle::Bad.paint(&line, look.color));
        }
        let contract: Vec<String> = subject.contract.iter().cloned().collect();
        let hooks =
            subject.hooks.then(|| "in the frontmatter; some clients execute them automatically".to_owned());
        let hooks: Vec<String> = hooks.into_iter().collect();
        let changed: &[String] = if let TrustState::Changed { files } = &subject.state { files } else { &[] };
        let most = MAX_SHOWN_LINES;
        let parts: [(&str, &[String], usize); 8] = [
            ("defines", &subject.capabilities, usize::MAX),
            ("bindings", &subject.bindings, most.max(subject.first_bindings)),
            ("contract", &contract, most),
            ("scripts", &subject.scripts, most),
            ("services", &subject.services, most),
            ("commands", &subject.commands, most),
            ("hooks", &hooks, most),
            ("changed", changed, most),
        ];
        for (name, part, most) in parts {
            lines(&mut out, name, part, most, look);
            if !subject.state.may_run() {
                hidden += part.len().saturating_sub(most);
            }
        }
        if let Some(digest) = subject.digest {
            let files = counted(subject.files, "file");
            let text = format!("{files}, {}, sha256 {digest}", byte_size(subject.bytes));
            let _ = writeln!(out, "  {}", TextStyle::Muted.paint(&text, look.color));
        }
    }
    if !quiet.is_empty() {
        let _ = writeln!(
            out,
            "{} with instructions only; also pinned, so that a script added later is not trusted",
            counted(quiet.len(), "more bundle")
        );
    }
    (out, hidden)
}

fn lines(out: &mut String, name: &str, lines: &[String], most: usize, look: TerminalCaps) {
    for (at, line) in lines.iter().take(most).enumerate() {
        let head = if at == 0 { name } else { "" };
        push_row(out, &format!("  {head:<9} "), &safe_text::line(line), look);
    }
    if lines.len() > most {
        let more = format!("and {} more (--json lists all)", lines.len() - most);
        let _ = writeln!(out, "  {:<9} {}", "", TextStyle::Muted.paint(&more, look.color));
    }
}

fn state(state: &TrustState) -> (TextStyle, String) {
    let (style, text) = match state {
        TrustState::Shipped => (TextStyle::Good, "shipped".to_owned()),
        TrustState::Config { path } => {
            (TextStyle::Good, format!("trusted by your config.yaml ({})", path.display()))
        }
        TrustState::Pinned { at } => (TextStyle::Good, format!("trusted since {at}")),
        TrustState::Changed { .. } => (TextStyle::Warn, "changed since it was trusted".to_owned()),
        TrustState::Untrusted => (TextStyle::Muted, "not trusted".to_owned()),
    };
    (style, safe_text::line(&text).into_owned())
}

async fn list(cx: &mut Context, local: &Local) -> Result<Exit, Failure> {
    let pins = local.trust_pins().list().await?;
    let changed = pins.iter().any(|(_, state)| state.summary() == TrustSummary::Changed);
    let named: Vec<PathBuf> = local.trust_pins().trust().named().to_vec();
    if cx.out.json {
        let listed = |(pin, state): &(Pin, TrustState)| {
            serde_json::to_value(TrustRow {
                path: &pin.path,
                state,
                digest: pin.digest.to_string(),
                trusted_at: &pin.at,
                files: pin.files.len(),
            })
        };
        let pins = pins.iter().map(listed).collect::<Result<Vec<_>, _>>().map_err(io::Error::other)?;
        let file = local.trust_pins().trust().file().map(escaped);
        let config: Vec<_> = named.iter().map(|path| escaped(path)).collect();
        cx.out.value(&json!({ "file": file, "pins": pins, "config": config }))?;
    } else {
        let home = skills_config::Dirs::new(&cx.env).home;
        let look = cx.out.look;
        let mut out = String::new();
        for (pin, now) in &pins {
            let place = safe_text::name(&shown(&pin.path, &cx.cwd, &home)).into_owned();
            let (style, state) = state(now);
            push_parts(&mut out, &[(TextStyle::Strong, place.as_str()), (style, state.as_str())], look);
            if let TrustState::Changed { files } = now {
                lines(&mut out, "changed", files, MAX_SHOWN_LINES, look);
            }
        }
        for folder in &named {
            let place = safe_text::name(&shown(folder, &cx.cwd, &home)).into_owned();
            for line in look.rows("", HANGING, &format!("{place}  by your config.yaml")) {
                let _ = writeln!(out, "{}", TextStyle::Strong.paint(&line, look.color));
            }
        }
        if out.is_empty() {
            let text = "only the shipped skills are trusted; `skills trust PATH|SKILL` shows what would be trusted\n";
            out += &cx.completed_in(text);
        }
        cx.out.text(&out)?;
    }
    Ok(if changed { Exit::ChecksFailed } else { Exit::Success })
}

fn revoke(cx: &mut Context, local: &Local, what: &[String]) -> Result<Exit, Failure> {
    let mut gone = Vec::new();
    for requested in what {
        gone.extend(local.trust_pins().revoke(requested)?);
    }
    if cx.out.json {
        cx.out.value(&json!({ "revoked": gone }))?;
    } else {
        for folder in &gone {
            cx.out.line(format!("no longer trusted: {}", safe_text::name(&folder.display().to_string())))?;
        }
    }
    Ok(Exit::Success)
}
