//! `skills propose` and `skills proposals`: changes that require another person's approval.

use std::fmt::Write as _;

use jiff::tz::TimeZone;
use serde_json::json;

use super::Context;
use super::args::{ApproveProposalArgs, ProposalActionArgs, ProposalsAction, ProposalsListArgs, ProposeArgs};
use super::draft::golden;
use super::failure::{Exit, Failure};
use super::output::{HANGING, TerminalCaps, TextStyle, cells, counted, cut, fit, push_parts, push_row};
use super::runs::{Caller, ask, clock};
use skills_api::{
    CheckResult, Code, CoreParts, Error, HunkLine, ProposalAction, ProposalActionOptions, ProposalCheck,
    ProposalCheckKind, ProposalDecision, ProposalFilter, ProposalList, ProposalRequest, ProposalState,
    ProposalView,
};
use skills_config::quoted;
use skills_skill::safe_text;

/// Number of characters of a digest in a list of versions.
const SHORT_DIGEST: usize = 8;

/// Runs `skills propose`.
pub async fn propose(cx: &mut Context, args: &ProposeArgs) -> Result<Exit, Failure> {
    let diff = if args.diff.as_os_str() == "-" {
        std::io::read_to_string(std::io::stdin())
            .map_err(|error| Failure::usage(format!("cannot read standard input: {error}")))?
    } else {
        let file = cx.cwd.join(&args.diff);
        skills_base::files::read_user_text(&file).map_err(|error| Failure::file(&args.diff, &error))?
    };
    let client = cx.reach(CoreParts::Index).await?;
    let view = client
        .propose(ProposalRequest {
            skill_id: args.skill.clone(),
            diff,
            justification: args.justification.clone(),
            evidence: args.evidence.clone(),
            by: args.by.clone(),
        })
        .await?;
    if cx.out.json {
        cx.out.value(&view)?;
    } else {
        let text = render(&view, clock::now_ms(), &TimeZone::system(), cx.out.look);
        cx.out.text(&text)?;
        report_created(cx, &view);
    }
    Ok(Exit::Success)
}

/// Reports a new proposal and the command that approves it.
pub fn report_created(cx: &Context, view: &ProposalView) {
    let id = &view.summary.proposal_id;
    let next = if cx.global.demo && cx.global.store.is_none() {
        "--demo does not store it; to keep it, add --store".to_owned()
    } else {
        format!("to approve it, run: {}", Caller::of(&cx.global).line(&["proposals", "approve", id]))
    };
    cx.reporter().print_line(&format!("created proposal {}; {next}", safe_text::line(id)));
}

/// Runs `skills proposals`.
pub async fn run(cx: &mut Context, action: &ProposalsAction) -> Result<Exit, Failure> {
    match action {
        ProposalsAction::List(args) => list(cx, args).await,
        ProposalsAction::Show(args) => {
            let client = cx.reach(CoreParts::Index).await?;
            let view = client.proposal(&args.proposal).await?;
            cx.out.show(&view, |look| render(&view, clock::now_ms(), &TimeZone::system(), look))?;
            Ok(Exit::Success)
        }
        ProposalsAction::Approve(args) => {
            let ApproveProposalArgs { action, proposal_digest, base_digest } = args;
            let approval =
                ProposalAction::Approve { proposal_digest: *proposal_digest, base_digest: *base_digest };
            decide(cx, action, approval).await
        }
        ProposalsAction::Deny(args) => decide(cx, args, ProposalAction::Deny).await,
        ProposalsAction::Rollback(args) => decide(cx, args, ProposalAction::RollBack).await,
    }
}

async fn list(cx: &mut Context, args: &ProposalsListArgs) -> Result<Exit, Failure> {
    let client = cx.reach(CoreParts::Catalog).await?;
    let filter = ProposalFilter {
        state: args.state.clone(),
        skill: args.skill.clone(),
        limit: args.limit,
        cursor: args.cursor.clone(),
    };
    let list = client.proposals(filter).await?;
    cx.out.show(&list, |look| render_list(&list, clock::now_ms(), look))?;
    Ok(Exit::Success)
}

async fn decide(
    cx: &mut Context,
    args: &ProposalActionArgs,
    mut action: ProposalAction,
) -> Result<Exit, Failure> {
    let client = cx.reach(CoreParts::Index).await?;
    let view = client.proposal(&args.proposal).await?;
    let state = view.summary.state;
    // A command that the state does not allow is rejected or answered by the core.
    let open = match action {
        ProposalAction::RollBack => state == ProposalState::Approved,
        ProposalAction::Approve { .. } | ProposalAction::Deny => state == ProposalState::Waiting,
    };
    let caller = Caller::of(&cx.global);
    let (verb, question) = match action {
        ProposalAction::Approve { .. } => ("approve", "Approve? [y/N]"),
        ProposalAction::Deny => ("deny", "Deny? [y/N]"),
        ProposalAction::RollBack => ("rollback", "Roll back? [y/N]"),
    };
    let digests = [view.proposal_digest.to_string(), view.base_digest.to_string()];
    let command = {
        let mut words = vec!["proposals", verb, args.proposal.as_str()];
        if let ProposalAction::Approve { .. } = action {
            words.extend(["--proposal-digest", &digests[0], "--base-digest", &digests[1]]);
        }
        for (option, value) in [("--by", &args.by), ("--notes", &args.notes)] {
            words.extend(value.iter().flat_map(|value| [option, value.as_str()]));
        }
        words.push("--yes");
        caller.line(&words)
    };
    let named = match &action {
        ProposalAction::Approve { proposal_digest, base_digest } => {
            proposal_digest.is_some() && base_digest.is_some()
        }
        ProposalAction::Deny | ProposalAction::RollBack => true,
    };
    if open && !(args.yes && named) {
        let text = render(&view, clock::now_ms(), &TimeZone::system(), cx.reporter().look);
        cx.reporter().print_line(&text);
        if let Some(check) = view.blocking_check()
            && matches!(action, ProposalAction::Approve { .. })
        {
            let code = match check.check {
                ProposalCheckKind::Unchanged => Code::SkillChanged,
                _ => Code::InvalidConfiguration,
            };
            let message = format!("proposal {} cannot be approved: {}", args.proposal, check.evidence);
            return Err(Error::new(code, message).into());
        }
        if args.yes {
            let message = format!(
                "no decision made: --yes requires --proposal-digest and --base-digest. To approve, run: {command}"
            );
            let reason = json!({ "proposal": view, "command": command });
            return Err(
                Error { reason: Some(reason), ..Error::new(Code::ConfirmationRequired, message) }.into()
            );
        }
        if !matches!(ask(question, &format!("run: {command}"))?.as_str(), "y" | "yes") {
            let message = format!("no decision made: proposal {} is unchanged", args.proposal);
            return Err(Error::new(Code::ConfirmationRequired, message).into());
        }
    }
    if let ProposalAction::Approve { proposal_digest, base_digest } = &mut action {
        proposal_digest.get_or_insert(view.proposal_digest);
        base_digest.get_or_insert(view.base_digest);
    }
    let by = ProposalActionOptions { by: args.by.clone(), notes: args.notes.clone(), limited: false };
    let result = client.act_on_proposal(&args.proposal, action, by).await?;
    if cx.out.json {
        cx.out.value(&result)?;
    } else {
        let line = format!("proposal {} {}", result.proposal.proposal_id, result.note);
        cx.out.line(safe_text::line(&line))?;
    }
    Ok(Exit::Success)
}

fn state_ink(state: ProposalState) -> TextStyle {
    match state {
        ProposalState::Waiting => TextStyle::Warn,
        ProposalState::Approved => TextStyle::Good,
        ProposalState::Denied => TextStyle::Bad,
        ProposalState::RolledBack => TextStyle::Muted,
    }
}

fn state_label(state: ProposalState) -> String {
    state.to_string().replace('_', " ")
}

fn render_list(list: &ProposalList, now_ms: i64, look: TerminalCaps) -> String {
    let mut out = String::new();
    if list.proposals.is_empty() {
        out.push_str("no proposals\n");
    }
    let ids = list.proposals.iter().map(|one| one.proposal_id.as_str());
    let width = look.name_width(ids, 12, 60);
    let available = look.text_width(usize::MAX).saturating_sub(width + 2 + 11 + 2 + 6 + 2 + 7 + 2);
    if !list.proposals.is_empty() {
        let head = format!(
            "{}  {:<11}  {:>6}  {:>7}  justification",
            fit("id", width, look.unicode),
            "state",
            "age",
            "P@1"
        );
        let _ = writeln!(out, "{}", TextStyle::Muted.paint(&head, look.color));
    }
    for one in &list.proposals {
        let id = look.name(&safe_text::line(&one.proposal_id), width);
        let gain = one.p_at_1.map_or_else(|| "-".to_owned(), |gain| format!("{gain:+.3}"));
        let title = cut(&safe_text::line(&one.title), available.max(8), look.unicode);
        let _ = writeln!(
            out,
            "{}  {}  {:>6}  {gain:>7}  {title}",
            TextStyle::Strong.paint(&id, look.color),
            state_ink(one.state).paint(&format!("{:<11}", state_label(one.state)), look.color),
            clock::age(now_ms.saturating_sub(one.proposed_at_ms)),
        );
    }
    for damaged in &list.damaged {
        let head = format!("{} ", TextStyle::Warn.paint("warning:", look.color));
        for row in look.rows(&head, HANGING, &safe_text::line(damaged)) {
            let _ = writeln!(out, "{row}");
        }
    }
    if !list.proposals.is_empty() {
        let _ = writeln!(out, "\n{}, {} waiting", counted(list.total, "proposal"), list.waiting);
    }
    if let Some(next) = &list.next {
        let _ = writeln!(out, "more: --cursor {}", quoted(next));
    }
    out
}

/// Renders the changed lines of a proposal.
pub fn hunks(view: &ProposalView, look: TerminalCaps) -> String {
    let mut out = String::new();
    for hunk in &view.hunks {
        let place = format!("@@ line {} @@", hunk.old_start);
        let _ = writeln!(out, "{}", TextStyle::Muted.paint(&place, look.color));
        for line in &hunk.lines {
            let (sign, text, style) = match line {
                HunkLine::Context(text) => ("  ", text, None),
                HunkLine::Removed(text) => ("- ", text, Some(TextStyle::Bad)),
                HunkLine::Added(text) => ("+ ", text, Some(TextStyle::Good)),
            };
            for line in look.rows(sign, sign, &safe_text::exact(text)) {
                let _ =
                    writeln!(out, "{}", style.map_or(line.clone(), |style| style.paint(&line, look.color)));
            }
        }
    }
    out
}

/// Renders a proposal with everything that its decision requires.
pub fn render(view: &ProposalView, now_ms: i64, zone: &TimeZone, look: TerminalCaps) -> String {
    let mut out = String::new();
    let strong = |text: &str| TextStyle::Strong.paint(text, look.color);
    let muted = |text: &str| TextStyle::Muted.paint(text, look.color);
    let hanging = |out: &mut String, head: &str, text: &str| {
        for line in look.rows(head, HANGING, &safe_text::line(text)) {
            let _ = writeln!(out, "{line}");
        }
    };
    let summary = &view.summary;
    let (name, id) = (safe_text::name(summary.skill_id.as_str()), safe_text::line(&summary.proposal_id));
    let state = state_label(summary.state);
    let parts =
        [(TextStyle::Strong, &*name), (state_ink(summary.state), state.as_str()), (TextStyle::Muted, &*id)];
    push_parts(&mut out, &parts, look);
    let age = clock::age(now_ms.saturating_sub(summary.proposed_at_ms));
    hanging(&mut out, "", &format!("proposed by {}, {age} ago", summary.proposed_by));
    let decided = |out: &mut String, what: &str, one: &Option<ProposalDecision>| {
        if let Some(one) = one {
            let notes = one.notes.as_deref().map(|notes| format!(": {notes}")).unwrap_or_default();
            // The audit log has the decisions of this machine; the file may come with a repository.
            let at = clock::moment(one.at_ms, zone);
            let line = format!("{what} by {}, {at}, as recorded in the file{notes}", one.by);
            hanging(out, "", &line);
        }
    };
    decided(
        &mut out,
        if summary.state == ProposalState::Denied { "denied" } else { "approved" },
        &summary.decision,
    );
    decided(&mut out, "rolled back", &summary.rollback);
    for line in look.rows("", HANGING, &safe_text::line(&view.location.display().to_string())) {
        let _ = writeln!(out, "{}", muted(&line));
    }
    if !view.checks.is_empty() {
        out.push('\n');
    }
    for check in &view.checks {
        push_check(&mut out, check, look);
    }
    let part = view.part.map(|part| format!(" of the {part}")).unwrap_or_default();
    let tokens = view.description_tokens.filter(|(old, new)| old != new);
    let tokens = tokens.map(|(old, new)| format!(", description {old} -> {new} tokens")).unwrap_or_default();
    let _ = writeln!(out, "\n{}", strong(&format!("diff{part}{tokens}")));
    out += &hunks(view, look);
    let mut text = |title: &str, text: &str| {
        let _ = writeln!(out, "\n{}", strong(title));
        for line in text.lines() {
            push_row(&mut out, "  ", &safe_text::line(line), look);
        }
    };
    text("justification", &view.justification);
    if let Some(evidence) = &view.evidence {
        text("evidence", evidence);
    }
    for (title, findings) in [("new findings", &view.new_findings), ("fixed findings", &view.fixed_findings)]
    {
        if !findings.is_empty() {
            let _ = writeln!(out, "\n{}", strong(title));
            for finding in findings {
                hanging(&mut out, "  ", &format!("{} ({})", finding.message, finding.code));
            }
        }
    }
    out.push('\n');
    match &view.effect {
        Some(effect) => golden(&mut out, effect, look),
        None => out.push_str("the effect on golden queries is unknown: there is no golden set, the skill is not ranked, or the file has changed\n"),
    }
    if view.versions.len() > 1 {
        let _ = writeln!(out, "\n{}", strong("versions"));
        for version in &view.versions {
            let digest: String = version.digest.to_string().chars().take(SHORT_DIGEST).collect();
            let when = version.at_ms.map_or_else(|| "-".to_owned(), |at| clock::moment(at, zone));
            let who =
                version.by.as_deref().unwrap_or(if version.number == 1 { "original" } else { "edited" });
            let back = if version.rollback { "rollback " } else { "" };
            let why = version.why.as_deref().unwrap_or_default();
            let now = if version.current { "  current" } else { "" };
            let line = format!("  v{}  {digest}  {when}  {who}  {back}{why}{now}", version.number);
            hanging(&mut out, "", line.trim_end());
        }
    }
    let _ = writeln!(out, "\n{}", muted(&format!("proposal digest  {}", view.proposal_digest)));
    let _ = writeln!(out, "{}", muted(&format!("base digest      {}", view.base_digest)));
    out
}

fn push_check(out: &mut String, check: &ProposalCheck, look: TerminalCaps) {
    let (sign, ascii, style) = match check.result {
        CheckResult::Pass => ("✓", "ok", TextStyle::Good),
        CheckResult::Fail => ("✗", "FAIL", TextStyle::Bad),
        CheckResult::Unknown => ("!", "!", TextStyle::Warn),
    };
    let sign = if look.unicode { sign } else { ascii };
    let label = format!(" {:<10} ", check.check.to_string());
    let head = format!("  {}{label}", style.paint(sign, look.color));
    let rest = " ".repeat(2 + cells(sign) + cells(&label));
    for line in look.rows(&head, &rest, &safe_text::line(&check.evidence)) {
        let _ = writeln!(out, "{line}");
    }
}
