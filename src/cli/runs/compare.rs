//! `skills runs compare`: compares two runs step by step.

use std::fmt::Write as _;

use serde_json::Value;

use super::{clock, plain, status};
use crate::Context;
use crate::args::CompareArgs;
use crate::dialog::{clean, sentences};
use crate::failure::{Exit, Failure};
use crate::output::{HANGING, TerminalCaps, TextStyle, cells, cut};
use skills_api::{Change, CoreParts, RunComparison, StepState, compare_runs};
use skills_skill::safe_text;

pub async fn run(cx: &mut Context, args: &CompareArgs) -> Result<Exit, Failure> {
    let client = cx.reach(CoreParts::Catalog).await?;
    let (left, right) = (client.run(&args.run).await?, client.run(&args.other).await?);
    let comparison = compare_runs(&left, &right);
    cx.show(
        &comparison,
        |is_plain, look| if is_plain { labeled(&comparison) } else { render(&comparison, look) },
    )?;
    Ok(if comparison.same { Exit::Success } else { Exit::ChecksFailed })
}

/// Renders changes as rows of location, before and after.
pub fn changes_text(changes: &[Change], look: TerminalCaps) -> String {
    let mut out = String::new();
    let paths: Vec<String> =
        changes.iter().map(|change| safe_text::line(&change.path).into_owned()).collect();
    let width = paths.iter().map(|path| cells(path)).max().unwrap_or(4).clamp(4, 32);
    let arrow = if look.unicode { "→" } else { "->" };
    let available = (look.text_width(200).saturating_sub(2 + width + 2 + 3) / 2).max(8);
    for (path, change) in paths.iter().zip(changes) {
        let exact = |value: &Value| {
            value.as_str().map_or_else(|| safe_text::exact(&value.to_string()), safe_text::exact)
        };
        let side = |value: &Option<Value>| {
            value
                .as_ref()
                .map_or_else(|| "(absent)".to_owned(), |value| cut(&exact(value), available, look.unicode))
        };
        let _ = writeln!(
            out,
            "  {}  {} {arrow} {}",
            TextStyle::Muted.paint(&look.name(path, width), look.color),
            side(&change.left),
            side(&change.right)
        );
    }
    out
}

/// Renders the comparison as labeled lines.
fn labeled(comparison: &RunComparison) -> String {
    let mut out = String::new();
    for (name, side) in [("Left", &comparison.left), ("Right", &comparison.right)] {
        let skill = format!("skill {} {}", clean(&side.skill_id), clean(&side.contract_version));
        let took = side.took_ms.map(|took| format!(" after {}", clock::took(took))).unwrap_or_default();
        let _ = writeln!(out, "{name}: run {}, {skill}, {}{took}.", side.run, side.state.label());
    }
    if !comparison.same_contract {
        out.push_str("The runs have different contracts.\n");
    }
    let _ = match &comparison.first {
        Some(first) => writeln!(out, "First difference: {}.", clean(first)),
        None => writeln!(out, "No differences except timing."),
    };
    let changed = |out: &mut String, what: &str, changes: &[Change]| {
        let side = |value: &Option<Value>| {
            value
                .as_ref()
                .map_or_else(|| "absent".to_owned(), |value| safe_text::coded(&plain::text::exact(value)))
        };
        for change in changes {
            let (left, right) = (side(&change.left), side(&change.right));
            let _ = writeln!(out, "  {what} {}: left {left}; right {right}.", clean(&change.path));
        }
    };
    changed(&mut out, "Input", &comparison.inputs);
    changed(&mut out, "Attached to", &comparison.target);
    let _ = writeln!(out, "Steps: {}.", comparison.steps.len());
    for (number, step) in (1..).zip(&comparison.steps) {
        let side = |state: Option<StepState>, ms: Option<i64>| {
            let took = ms.map(|ms| format!(" in {}", clock::took(ms))).unwrap_or_default();
            state.map_or_else(
                || "absent".to_owned(),
                |state| format!("{}{took}", state.to_string().replace('_', " ")),
            )
        };
        let differs = match step.differences() {
            none if none.is_empty() => "Same".to_owned(),
            some => format!("Differs: {}", some.join(", ")),
        };
        let parts = vec![
            clean(&step.step),
            differs,
            format!("Left: {}", side(step.left, step.left_ms)),
            format!("Right: {}", side(step.right, step.right_ms)),
        ];
        let _ = writeln!(out, "{number}. {}", sentences(parts));
        if step.other_binding() {
            let named =
                |binding: &Option<String>| binding.as_deref().map_or_else(|| "none".to_owned(), clean);
            let (left, right) = (named(&step.left_binding), named(&step.right_binding));
            let _ = writeln!(out, "  Binding: left {left}; right {right}.");
        }
        changed(&mut out, "Input", &step.inputs);
        changed(&mut out, "Result", &step.result);
    }
    changed(&mut out, "Output", &comparison.outputs);
    out
}

fn render(comparison: &RunComparison, look: TerminalCaps) -> String {
    let mut out = String::new();
    let strong = |text: &str| TextStyle::Strong.paint(text, look.color);
    for (name, side) in [("left ", &comparison.left), ("right", &comparison.right)] {
        let text = format!(
            "{}  {} {}  {}{}",
            side.run,
            safe_text::name(&side.skill_id),
            safe_text::line(&side.contract_version),
            side.state.label(),
            side.took_ms.map(|took| format!(" after {}", clock::took(took))).unwrap_or_default()
        );
        let head = format!("{} ", TextStyle::Muted.paint(name, look.color));
        for row in look.rows(&head, HANGING, &text) {
            let _ = writeln!(out, "{row}");
        }
    }
    if !comparison.same_contract {
        let _ = writeln!(out, "{}", TextStyle::Warn.paint("the runs have different contracts", look.color));
    }
    match &comparison.first {
        Some(first) => {
            let first_difference = format!("first difference at {}", safe_text::line(first));
            let _ = writeln!(out, "{}", TextStyle::Warn.paint(&first_difference, look.color));
        }
        None => {
            let _ = writeln!(out, "{}", TextStyle::Good.paint("no differences except timing", look.color));
        }
    }
    for (title, changes) in [("inputs", &comparison.inputs), ("attached to", &comparison.target)] {
        if !changes.is_empty() {
            let _ = write!(out, "\n{}\n{}", strong(title), changes_text(changes, look));
        }
    }
    let longest = comparison.steps.iter().map(|step| cells(&safe_text::line(&step.step))).max().unwrap_or(8);
    let width = longest.clamp(8, 28);
    let _ = writeln!(out, "\n{}", strong("steps"));
    for step in &comparison.steps {
        let side = |state: Option<StepState>, ms: Option<i64>| {
            let sign = state.map_or_else(|| " ".to_owned(), |state| status::step_sign(state, look));
            format!("{sign} {:>10}", ms.map_or_else(|| "-".to_owned(), clock::took))
        };
        let differs = match step.differences() {
            none if none.is_empty() => "same".to_owned(),
            some => some.join(", "),
        };
        let style = if step.is_same() { TextStyle::Muted } else { TextStyle::Warn };
        let _ = writeln!(
            out,
            "  {}  {}  {}  {}",
            look.name(&safe_text::line(&step.step), width),
            side(step.left, step.left_ms),
            side(step.right, step.right_ms),
            style.paint(&differs, look.color)
        );
        if step.other_binding() {
            let named = |binding: &Option<String>| {
                binding.as_deref().map_or_else(|| "none".to_owned(), |id| safe_text::line(id).into_owned())
            };
            let arrow = if look.unicode { "→" } else { "->" };
            let (left, right) = (named(&step.left_binding), named(&step.right_binding));
            let _ = writeln!(
                out,
                "      {} {left} {arrow} {right}",
                TextStyle::Muted.paint("binding", look.color)
            );
        }
        for (what, changes) in [("inputs", &step.inputs), ("result", &step.result)] {
            for line in changes_text(changes, look).lines() {
                let _ =
                    writeln!(out, "      {} {}", TextStyle::Muted.paint(what, look.color), line.trim_start());
            }
        }
    }
    if !comparison.outputs.is_empty() {
        let _ = write!(out, "\n{}\n{}", strong("outputs"), changes_text(&comparison.outputs, look));
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::runs::samples::detail;
    use skills_model::RunState;

    #[test]
    fn values_that_differ_in_white_space_look_different() {
        let changes =
            [Change { path: "/a".to_owned(), left: Some(json!("b c")), right: Some(json!("b\n  c ")) }];
        let look = TerminalCaps { color: false, unicode: true, width: 80, terminal: true };
        assert_eq!(changes_text(&changes, look).trim(), "/a    b c → b␊  c⟨U+0020⟩");
    }

    #[test]
    fn differences_are_next_to_their_step() {
        let left = detail(RunState::Completed);
        let mut right = detail(RunState::Completed);
        right.steps[2].result = Some(json!({ "total": 99.0 }));
        right.run.outputs = Some(json!({ "total": 99.0, "booking": "B-1009" }));
        right.steps.pop();
        let look = TerminalCaps { color: false, unicode: true, width: 80, terminal: true };
        let text = labeled(&compare_runs(&left, &right));
        assert!(text.is_ascii() && text.contains("Differs: different result. Left: completed"), "{text}");
        insta::assert_snapshot!(render(&compare_runs(&left, &right), look));
    }
}
