//! `skills explain-capability` and `skills activate`: which binding executes a capability, and why.

use std::fmt::Write as _;

use serde::Serialize;

use super::invocation;
use crate::Context;
use crate::args::{ActivateArgs, ExplainCapabilityArgs};
use crate::failure::{Exit, Failure};
use crate::output::{TerminalCaps, TextStyle, cells, wrap};
use skills_api::{CapabilityExplanation, CoreParts, InputFields};
use skills_skill::safe_text;

/// `skills explain-capability --json` without a capability.
#[derive(Serialize)]
struct All {
    capabilities: Vec<String>,
}

/// Runs `skills explain-capability`.
pub async fn explain(cx: &mut Context, args: &ExplainCapabilityArgs) -> Result<Exit, Failure> {
    let client = cx.reach(CoreParts::Catalog).await?;
    let Some(capability) = &args.capability else {
        let capabilities = client.capabilities().await?;
        if cx.out.json {
            cx.out.value(&All { capabilities })?;
        } else {
            for id in capabilities {
                cx.out.line(safe_text::line(&id))?;
            }
        }
        return Ok(Exit::Success);
    };
    let explanation = client.explain_capability(capability).await?;
    let is_bound = explanation.explanation.chosen.is_some();
    answer(cx, explanation)?;
    // A capability without a binding exits with 1, for scripts.
    Ok(if is_bound { Exit::Success } else { Exit::ChecksFailed })
}

/// Runs `skills activate`.
pub async fn activate(cx: &mut Context, args: &ActivateArgs) -> Result<Exit, Failure> {
    let client = cx.reach(CoreParts::Catalog).await?;
    let explanation = client.activate(&args.capability, args.binding.as_deref(), None).await?;
    answer(cx, explanation)?;
    Ok(Exit::Success)
}

fn answer(cx: &mut Context, mut explained: CapabilityExplanation) -> Result<(), Failure> {
    if !cx.out.json {
        let called = invocation(&cx.global, None);
        let decision = &mut explained.explanation;
        let obstacles = decision.bindings.iter_mut().filter_map(|binding| binding.obstacle.as_mut());
        for text in obstacles.chain([&mut decision.summary]) {
            *text = called.completed_in(text);
        }
    }
    cx.out.show(&explained, |look| render(&explained, look))?;
    Ok(())
}

/// Renders the decision.
fn render(explained: &CapabilityExplanation, look: TerminalCaps) -> String {
    let mut out = String::new();
    let decision = &explained.explanation;
    let available = look.text_width(100);
    let strong = |text: &str| TextStyle::Strong.paint(text, look.color);
    let muted = |text: &str| TextStyle::Muted.paint(text, look.color);
    let paragraph = |out: &mut String, text: &str, indent: usize| {
        for line in wrap(&safe_text::line(text), available.saturating_sub(indent)) {
            let _ = writeln!(out, "{}{line}", " ".repeat(indent));
        }
    };
    let _ = writeln!(out, "{}", strong(&safe_text::line(&decision.capability)));
    paragraph(&mut out, &explained.description, 2);
    out.push('\n');
    paragraph(&mut out, &decision.summary, 0);
    if !decision.bindings.is_empty() {
        let title = format!("bindings, minimum level {}", decision.conformance);
        let _ = writeln!(out, "\n{}", strong(&title));
    }
    for binding in &decision.bindings {
        let chosen = decision.chosen.as_ref() == Some(&binding.binding);
        let (sign, ascii, style) = match (chosen, &binding.obstacle) {
            (true, _) => ("✓", "+", TextStyle::Good),
            (false, Some(_)) => ("✗", "x", TextStyle::Bad),
            (false, None) => ("·", ".", TextStyle::Muted),
        };
        let sign = style.paint(if look.unicode { sign } else { ascii }, look.color);
        let _ = writeln!(out, "  {sign} {}  {}", safe_text::line(&binding.binding), muted(&binding.place));
        let facts = format!(
            "{} {}, {}, breaker {}",
            safe_text::line(&binding.protocol),
            safe_text::line(&binding.target),
            binding.conformance,
            safe_text::line(&binding.breaker)
        );
        paragraph(&mut out, &facts, 6);
        paragraph(&mut out, &binding.isolation, 6);
        if let Some(obstacle) = &binding.obstacle {
            for line in wrap(&safe_text::line(obstacle), available.saturating_sub(6)) {
                let _ = writeln!(out, "      {}", TextStyle::Bad.paint(&line, look.color));
            }
        }
    }
    for (title, fields) in [("inputs", &explained.inputs), ("outputs", &explained.outputs)] {
        if !fields.is_empty() {
            let _ = write!(out, "\n{}\n{}", strong(title), fields_text(fields, look));
        }
    }
    for (title, sentences) in [("gates", &explained.gates), ("used by", &explained.used_by)] {
        if !sentences.is_empty() {
            let _ = writeln!(out, "\n{}", strong(title));
        }
        for sentence in sentences {
            paragraph(&mut out, sentence, 2);
        }
    }
    out
}

/// Renders declared fields as rows.
fn fields_text(fields: &InputFields, look: TerminalCaps) -> String {
    let mut out = String::new();
    let width = fields.keys().map(|name| cells(&safe_text::line(name))).max().unwrap_or(4).clamp(4, 28);
    for (name, field) in fields {
        let required = if field.required { ", required" } else { "" };
        let about = field.description.as_deref().map(safe_text::line).unwrap_or_default();
        let text = format!("{}{required}{}{about}", field.kind, if about.is_empty() { "" } else { ": " });
        let mut head = look.name(&safe_text::line(name), width);
        for line in wrap(&text, look.text_width(100).saturating_sub(width + 4)) {
            let _ = writeln!(out, "  {head}  {line}");
            head = " ".repeat(width);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use skills_runs::{BindingChoice, Explanation};
    use skills_skill::contract::{Conformance, Field, FieldType};

    #[test]
    fn the_complete_decision_is_printed() {
        let choice = |binding: &str, place: &str, obstacle: Option<&str>| BindingChoice {
            binding: binding.to_owned(),
            protocol: "script".to_owned(),
            service: "local".to_owned(),
            target: "scripts/extract.py".to_owned(),
            conformance: Conformance::Standard,
            place: place.to_owned(),
            obstacle: obstacle.map(str::to_owned),
            breaker: "closed".to_owned(),
            isolation: "Landlock, no network".to_owned(),
        };
        let field = Field {
            required: true,
            description: Some("Path of the file".to_owned()),
            ..Field::of(FieldType::String)
        };
        let explained = CapabilityExplanation {
            description: "Takes the tables out of a document".to_owned(),
            inputs: [("path".to_owned(), field)].into(),
            outputs: InputFields::default(),
            gates: vec!["requires approval each time".to_owned()],
            explanation: Explanation {
                capability: "document.table.extract".to_owned(),
                conformance: Conformance::Standard,
                chosen: Some("extract_script".to_owned()),
                bindings: vec![
                    choice("extract_script", "default", None),
                    choice(
                        "extract_http",
                        "fallback of extract_script",
                        Some("service documents has no address: name one in config.yaml"),
                    ),
                ],
                summary: "extract_script, because it is the default and can be called".to_owned(),
            },
            used_by: vec!["invoice-intake/extract".to_owned()],
        };
        let look = TerminalCaps { color: false, unicode: true, width: 80, terminal: true };
        insta::assert_snapshot!(render(&explained, look));
    }
}
