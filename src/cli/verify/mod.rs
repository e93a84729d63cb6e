//! `skills verify`: whether a service that runs keeps its promises, seen from outside.

mod adapters;
mod cases;
mod controls;
mod parity;
mod probe;

use serde::Serialize;

use self::probe::Probe;
use super::Context;
use super::args::{Verifier, VerifyArgs};
use super::failure::{Done, Failure};
use super::output::{Ink, Look};
use crate::gateway::remote::{Address, KEY_VARIABLE, Key};
use crate::skill::safe_text;

/// One promise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Check {
    /// What was looked at.
    check: String,
    /// Whether it holds.
    holds: bool,
    /// What was found, where it does not hold or is worth a word.
    note: String,
}

impl Check {
    fn new(check: impl Into<String>, holds: bool, note: impl Into<String>) -> Self {
        Self { check: check.into(), holds, note: note.into() }
    }

    /// Holds where there is nothing to say against it.
    fn against(check: impl Into<String>, against: Option<String>) -> Self {
        Self { check: check.into(), holds: against.is_none(), note: against.unwrap_or_default() }
    }
}

/// `skills verify --json`.
#[derive(Serialize)]
struct Report<'a> {
    url: String,
    verifier: Verifier,
    failed: usize,
    checks: &'a [Check],
}

/// Runs the command.
pub async fn run(cx: &mut Context, args: &VerifyArgs) -> Result<Done, Failure> {
    let address = Address::parse(&args.url)?;
    let key = match (&cx.global.api_key_file, cx.env.get(KEY_VARIABLE)) {
        (Some(file), _) => Some(Key::of_file(file)?),
        (None, Some(value)) => Some(Key::of_variable(KEY_VARIABLE, value)?),
        (None, None) => None,
    };
    let url = address.to_string();
    let probe = Probe::new(address, key)?;
    let checks = match args.verifier {
        Verifier::Adapters => adapters::checks(&probe).await?,
        Verifier::Controls => controls::checks(&probe).await?,
        Verifier::Parity => parity::checks(cx, &probe).await?,
    };
    let failed = checks.iter().filter(|check| !check.holds).count();
    if cx.out.json {
        cx.out.value(&Report { url, verifier: args.verifier, failed, checks: &checks })?;
    } else {
        let text = render(&checks, cx.out.look);
        cx.out.raw(text.as_bytes())?;
    }
    Ok(if failed == 0 { Done::Fine } else { Done::Findings })
}

fn render(checks: &[Check], look: Look) -> String {
    let mut out = String::new();
    for check in checks {
        let (ink, sign) = match (check.holds, look.unicode) {
            (true, true) => (Ink::Good, "✓"),
            (true, false) => (Ink::Good, "ok"),
            (false, true) => (Ink::Bad, "✗"),
            (false, false) => (Ink::Bad, "no"),
        };
        out.push_str(&format!("{} {}\n", ink.paint(sign, look.colour), safe_text::line(&check.check)));
        if !check.note.is_empty() {
            out.push_str(&format!("    {}\n", safe_text::line(&check.note)));
        }
    }
    let failed = checks.iter().filter(|check| !check.holds).count();
    out.push_str(&match failed {
        0 => format!("all {} hold\n", checks.len()),
        some => format!("{some} of {} do not hold\n", checks.len()),
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_hold_says_why() {
        let checks =
            [Check::new("a wrong key is refused", true, ""), Check::new("a limit", false, "no header")];
        let look = Look { colour: false, unicode: false, width: 80, terminal: false };
        let text = render(&checks, look);
        assert_eq!(text, "ok a wrong key is refused\nno a limit\n    no header\n1 of 2 do not hold\n");
    }
}
