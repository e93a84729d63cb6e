//! `skills verify`: conformance checks against a running service, from outside.

mod adapters;
mod cases;
mod check;
mod controls;
mod parity;
mod probe;

use serde::Serialize;

use self::check::{Check, Outcome};
use self::probe::Probe;
use super::Context;
use super::args::{Verifier, VerifyArgs};
use super::failure::{Exit, Failure};
use super::output::{TerminalCaps, TextStyle};
use skills_api::remote::{Address, KEY_VARIABLE, Key};
use skills_skill::safe_text;

/// The address of `skills serve` without options.
const DEFAULT_URL: &str = "http://127.0.0.1:8080";

/// `skills verify --json`.
#[derive(Serialize)]
struct Report<'a> {
    url: String,
    verifier: Verifier,
    failed: usize,
    not_tried: usize,
    checks: &'a [Check],
}

pub async fn run(cx: &mut Context, args: &VerifyArgs) -> Result<Exit, Failure> {
    let url = match &args.url {
        Some(url) => url.clone(),
        None => cx.config()?.connect.unwrap_or_else(|| DEFAULT_URL.to_owned()),
    };
    let address = Address::parse(&url)?;
    let key = match (&cx.global.api_key_file, cx.env.get(KEY_VARIABLE)) {
        (Some(file), _) => Some(Key::of_file(file)?),
        (None, Some(value)) => Some(Key::of_variable(KEY_VARIABLE, value)?),
        (None, None) => None,
    };
    let url = address.to_string();
    let probe = Probe::new(address, key, cx.reporter())?;
    let checks = match args.verifier {
        Verifier::Adapters => adapters::checks(&probe).await?,
        Verifier::Controls => controls::checks(&probe).await?,
        Verifier::Parity => parity::checks(cx, &probe).await?,
    };
    let (failed, not_tried) = (count(&checks, Outcome::Fails), count(&checks, Outcome::NotTried));
    cx.out.show(&Report { url, verifier: args.verifier, failed, not_tried, checks: &checks }, |look| {
        render(&checks, look)
    })?;
    Ok(if failed == 0 { Exit::Success } else { Exit::ChecksFailed })
}

fn count(checks: &[Check], outcome: Outcome) -> usize {
    checks.iter().filter(|check| check.outcome == outcome).count()
}

fn render(checks: &[Check], look: TerminalCaps) -> String {
    let mut out = String::new();
    for check in checks {
        let (style, sign) = match (check.outcome, look.unicode) {
            (Outcome::Holds, true) => (TextStyle::Good, "✓"),
            (Outcome::Holds, false) => (TextStyle::Good, "ok"),
            (Outcome::Fails, true) => (TextStyle::Bad, "✗"),
            (Outcome::Fails, false) => (TextStyle::Bad, "no"),
            (Outcome::NotTried, true) => (TextStyle::Warn, "–"),
            (Outcome::NotTried, false) => (TextStyle::Warn, "--"),
        };
        out.push_str(&format!("{} {}\n", style.paint(sign, look.color), safe_text::line(&check.check)));
        if !check.note.is_empty() {
            let what = if check.outcome == Outcome::NotTried { "skipped: " } else { "" };
            out.push_str(&format!("    {what}{}\n", safe_text::line(&check.note)));
        }
        if let Some(advice) = check.advice {
            out.push_str(&format!("    {} {advice}\n", TextStyle::Muted.paint("help:", look.color)));
        }
    }
    let (passed, failed) = (count(checks, Outcome::Holds), count(checks, Outcome::Fails));
    let mut parts = vec![match (passed, failed) {
        (passed, 0) if passed == checks.len() => format!("all {passed} passed"),
        (passed, 0) => format!("{passed} passed"),
        (_, failed) => format!("{failed} of {} failed", checks.len()),
    }];
    match count(checks, Outcome::NotTried) {
        0 => {}
        1 => parts.push("1 was skipped".to_owned()),
        some => parts.push(format!("{some} were skipped")),
    }
    out + &parts.join("; ") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_check_states_its_reason() {
        let checks = [
            Check::new("a wrong key is refused", true, "").or("fix it"),
            Check::new("a body", false, "status 500").or("fix it"),
            Check::not_tried("a limit", "there is none"),
        ];
        let look = TerminalCaps { color: false, unicode: false, width: 80, terminal: false };
        let text = render(&checks, look);
        insta::assert_snapshot!(text, @r"
        ok a wrong key is refused
        no a body
            status 500
            help: fix it
        -- a limit
            skipped: there is none
        1 of 3 failed; 1 was skipped
        ");
    }
}
