//! The decision preview of a gate as text.

use std::fmt::Write as _;

use jiff::tz::TimeZone;

use super::next_steps::Caller;
use super::{clock, status, values};
use crate::output::{HANGING, TerminalCaps, TextStyle, fit, wrap};
use skills_api::{DecisionPreview, DecisionTarget, SuppliedFile};
use skills_model::{BEFORE_FIRST_STEP, approval_label};
use skills_skill::safe_text;

pub fn render(
    preview: &DecisionPreview,
    caller: &Caller,
    now_ms: i64,
    zone: &TimeZone,
    look: TerminalCaps,
) -> String {
    let mut out = String::new();
    let look = look.at_most(100);
    let available = look.text_width(100);
    for line in look.rows("", HANGING, &safe_text::exact(&preview.headline)) {
        let _ = writeln!(out, "{}", TextStyle::Strong.paint(&line, look.color));
    }
    let (place, steps) = preview.place;
    let step = if preview.step == BEFORE_FIRST_STEP {
        approval_label(&preview.step).to_owned()
    } else {
        format!("step {place} of {steps}, {},", safe_text::line(&preview.step))
    };
    let waiting = format!(
        "{step} of {} {}, waiting for {}",
        safe_text::name(&preview.skill_id),
        status::short(&preview.run.0),
        clock::age(now_ms.saturating_sub(preview.since_ms)),
    );
    for line in look.rows("", HANGING, &waiting) {
        let _ = writeln!(out, "{line}");
    }
    let blocked = preview.blocked.as_deref().map(|why| caller.completed_in(why));
    for warning in preview.irreversible.iter().chain(&blocked) {
        for line in wrap(&safe_text::line(warning), available.saturating_sub(2)) {
            let _ = writeln!(
                out,
                "{} {}",
                TextStyle::Bad.paint("!", look.color),
                TextStyle::Bad.paint(&line, look.color)
            );
        }
    }
    out.push('\n');
    let capability = match (preview.capability.is_empty(), preview.capability_note.is_empty()) {
        (true, _) => String::new(),
        (false, true) => preview.capability.clone(),
        (false, false) => format!("{} ({})", preview.capability, preview.capability_note),
    };
    let expires =
        preview.expires_ms.map_or_else(String::new, |at| status::expiry(at, preview.on_expiry, now_ms, zone));
    let pause = preview.pause.as_ref().map_or_else(String::new, |sidecar| {
        format!("requested by {sidecar}: after approval the run is paused until it is resumed")
    });
    let approver =
        preview.approver.as_ref().map_or_else(String::new, |(name, origin)| format!("{name} ({origin})"));
    let labels = preview.labels_text();
    let facts = [
        ("labels", labels.as_str()),
        ("reason", preview.why.as_str()),
        ("capability", &capability),
        ("binding", &preview.binding),
    ];
    let more_facts = [
        ("isolation", preview.isolation.as_str()),
        ("pause", &pause),
        ("expires", &expires),
        ("approver", &approver),
    ];
    let files: Vec<String> = preview.files.iter().map(SuppliedFile::text).collect();
    let target = preview.target.as_ref().map(DecisionTarget::text);
    let facts = facts
        .into_iter()
        .chain(named("fallbacks", &preview.fallbacks))
        .chain(more_facts)
        .chain(named("files", &files))
        .chain(target.as_deref().map(|target| ("attached to", target)));
    for (name, value) in facts.filter(|(_, value)| !value.is_empty()) {
        let head = TextStyle::Muted.paint(&fit(name, 12, look.unicode), look.color);
        for line in look.rows(&head, HANGING, &safe_text::exact(value)) {
            let _ = writeln!(out, "{line}");
        }
    }
    if let Some(target) = &preview.target {
        out += &values::rows(&target.fields(), 2, look);
        if target.truncated {
            let command = caller.line(&["runs", "show", &preview.run.0, "--json"]);
            let hint = format!("(truncated; `{command}` prints all of it)");
            let _ = writeln!(out, "  {}", TextStyle::Muted.paint(&safe_text::line(&hint), look.color));
        }
    }
    let _ = writeln!(out, "{}", TextStyle::Muted.paint("inputs", look.color));
    let promise = if preview.inputs.is_null() {
        let _ = writeln!(out, "  {}", DecisionPreview::CHANGED);
        ""
    } else {
        out += &values::rows(&preview.inputs, 2, look);
        match &preview.target {
            Some(_) => " (the decision applies to exactly these inputs and this target)",
            None => " (the decision applies to exactly these inputs)",
        }
    };
    let _ = writeln!(
        out,
        "{}{}",
        TextStyle::Muted.paint(&fit("digest", 12, look.unicode), look.color),
        TextStyle::Muted.paint(&format!("{}{promise}", brief_digest(&preview.inputs_digest)), look.color)
    );
    out
}

/// Returns several values as facts: the first has the name.
fn named<'v>(name: &'static str, values: &'v [String]) -> impl Iterator<Item = (&'static str, &'v str)> {
    let names = std::iter::once(name).chain(std::iter::repeat(""));
    names.zip(values).map(|(name, value)| (name, value.as_str()))
}

/// Abbreviates a digest to its beginning and its end.
fn brief_digest(digest: &str) -> String {
    let digest = safe_text::line(digest);
    match (digest.get(..8), digest.get(digest.len().saturating_sub(4)..)) {
        (Some(front), Some(back)) if digest.len() > 16 => format!("{front}..{back}"),
        _ => digest.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::output::cells;
    use crate::runs::samples::{NOW_MS, caller, detail};
    use skills_model::RunState;

    #[test]
    fn preview_shows_the_effect_and_the_digest() {
        let preview = detail(RunState::WaitingForHuman).sheet.unwrap();
        let look = TerminalCaps { color: false, unicode: true, width: 80, terminal: true };
        let text = render(&preview, &caller(&["--demo"]), NOW_MS, &TimeZone::UTC, look);
        insta::assert_snapshot!(text, @r"
        Book 1204.5 EUR in the ledger
        step 4 of 4, book, of invoice-intake 0000abcd, waiting for 1 m
        ! It leaves this machine and cannot be undone.

        reason      the capability always requires approval
        capability  ledger.entry.create (elevated, not idempotent)
        binding     openapi POST https://ledger.example/entries
        isolation   leaves this machine
        expires     in 2 h, at 2026-07-14 11:30:00: then denied and canceled
        approver    kim (from git config)
        inputs
          total     1204.5
          currency  EUR
        digest      9f9f9f9f..9f9f (the decision applies to exactly these inputs)
        ");
        assert!(text.lines().all(|line| cells(line) <= 80));
    }

    #[test]
    fn target_and_fallbacks_are_shown() {
        let mut preview = detail(RunState::WaitingForHuman).sheet.unwrap();
        preview.fallbacks =
            vec!["openapi POST https://a.example/x".to_owned(), "script scripts/x.sh".to_owned()];
        preview.target = Some(DecisionTarget {
            kind: "artifact".to_owned(),
            reference: "artifact:394a".to_owned(),
            label: None,
            content_bytes: 31,
            sha256: "cd".repeat(32),
            content: json!({ "iban": "DE00 MALLORY\ndigest      00" }),
            truncated: true,
        });
        let look = TerminalCaps { color: false, unicode: true, width: 120, terminal: true };
        let text = render(&preview, &caller(&["--demo"]), NOW_MS, &TimeZone::UTC, look);
        let fallbacks = "fallbacks   openapi POST https://a.example/x\n            script scripts/x.sh\n";
        assert!(text.contains(fallbacks), "{text}");
        assert!(text.contains("attached to artifact artifact:394a, 31 B as JSON, sha256"), "{text}");
        assert!(text.contains("  iban  DE00 MALLORY\n"), "{text}");
        assert!(text.contains("(truncated; `skills --demo runs show"), "{text}");
        assert!(text.contains("exactly these inputs and this target"), "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with("digest ")).count(), 1, "{text}");
    }

    #[test]
    fn no_part_of_the_headline_begins_a_fact() {
        let mut preview = detail(RunState::WaitingForHuman).sheet.unwrap();
        preview.headline = format!("Pays{}binding     none", " ".repeat(77));
        preview.skill_id = format!("pay {}", "reason      none ".repeat(9));
        let look = TerminalCaps { color: false, unicode: true, width: 80, terminal: true };
        let text = render(&preview, &caller(&[]), NOW_MS, &TimeZone::UTC, look);
        for fact in ["binding ", "reason "] {
            assert_eq!(text.lines().filter(|line| line.starts_with(fact)).count(), 1, "{text}");
        }
        assert!(text.lines().all(|line| cells(line) <= 80), "{text}");
    }

    #[test]
    fn each_file_is_one_fact() {
        let mut preview = detail(RunState::WaitingForHuman).sheet.unwrap();
        let file = |name: &str, path: &str, sha256: Option<String>| SuppliedFile {
            name: name.to_owned(),
            path: path.to_owned(),
            sha256,
        };
        preview.files = vec![
            file("pay.csv", "/srv/pay.csv", Some("ab".repeat(32))),
            file("x\ndigest      00", "/srv/x", None),
        ];
        let look = TerminalCaps { color: false, unicode: true, width: 120, terminal: true };
        let text = render(&preview, &caller(&["--demo"]), NOW_MS, &TimeZone::UTC, look);
        let digest = "ab".repeat(32);
        assert!(text.contains("\nfiles       pay.csv  /srv/pay.csv  sha256"), "{text}");
        assert!(text.contains(&digest) && text.contains("/srv/x  sha256 not recorded\n"), "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with("digest ")).count(), 1, "{text}");
    }
}
