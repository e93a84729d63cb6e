//! `skills describe`: one skill in full.

use std::fmt::Write as _;

use serde::Serialize;

use super::Context;
use super::args::DescribeArgs;
use super::failure::{Exit, Failure};
use super::finding;
use super::output::{HANGING, TerminalCaps, TextStyle, byte_size, cells, counted, fit, tokens, wrap};
use skills_api::{CoreParts, LevelTokens, SkillDetail};
use skills_skill::safe_text;

/// `skills describe --json`.
#[derive(Serialize)]
struct DescribeOutput<'a> {
    #[serde(flatten)]
    detail: &'a SkillDetail,
    levels: Option<&'a LevelTokens>,
}

pub async fn run(cx: &mut Context, args: &DescribeArgs) -> Result<Exit, Failure> {
    let client = cx.reach(CoreParts::Catalog).await?;
    let detail = client.describe(&args.skill).await?;
    if args.source {
        source(cx, &detail.source)?;
        return Ok(Exit::Success);
    }
    let levels = client.levels(vec![detail.summary.skill_id.clone()]).await?;
    if cx.out.json {
        cx.out.value(&DescribeOutput { detail: &detail, levels: levels.first() })?;
    } else {
        let location = &detail.summary.location;
        let shown = safe_text::line(&location.display().to_string()).into_owned();
        let text = cx.out.links.file(render(&detail, levels.first(), cx.out.look), &shown, location);
        cx.out.text(&text)?;
    }
    Ok(Exit::Success)
}

/// Prints the file unchanged into a pipe; for a terminal, control sequences are escaped.
fn source(cx: &mut Context, text: &str) -> Result<(), Failure> {
    if cx.out.json {
        cx.out.value(&text)?;
    } else if cx.out.look.terminal {
        cx.out.raw(safe_text::block(text).as_bytes())?;
    } else {
        cx.out.raw(text.as_bytes())?;
    }
    Ok(())
}

pub fn render(detail: &SkillDetail, levels: Option<&LevelTokens>, look: TerminalCaps) -> String {
    let mut out = String::new();
    let summary = &detail.summary;
    let width = look.text_width(100);
    for row in look.rows("", HANGING, &safe_text::name(summary.skill_id.as_str())) {
        let _ = writeln!(out, "{}", TextStyle::Strong.paint(&row, look.color));
    }
    for line in wrap(&safe_text::line(&summary.description), width - 2) {
        let _ = writeln!(out, "  {line}");
    }
    out.push('\n');
    for (key, value) in facts(detail, levels, look.unicode) {
        if value.is_empty() {
            continue;
        }
        let key = TextStyle::Muted.paint(&fit(key, 14, look.unicode), look.color);
        for (i, line) in wrap(&safe_text::line(&value), width - 16).iter().enumerate() {
            let key = if i == 0 { key.clone() } else { " ".repeat(14) };
            let _ = writeln!(out, "  {key}{line}");
        }
    }
    if !detail.findings.is_empty() {
        let title = counted(detail.findings.len(), "finding");
        let _ = writeln!(out, "\n{}", TextStyle::Strong.paint(&title, look.color));
        for one in &detail.findings {
            out += &finding::render(one, look);
        }
    }
    if !detail.files.is_empty() {
        let title = counted(detail.files.len(), "file");
        let _ = writeln!(out, "\n{}", TextStyle::Strong.paint(&title, look.color));
        let names = detail.files.iter().map(|file| safe_text::line(&file.path).into_owned());
        let longest = names.clone().map(|name| cells(&name)).max().unwrap_or(0).min(width - 24);
        for (name, file) in names.zip(&detail.files) {
            let run = if file.executable { "  executable" } else { "" };
            let _ = writeln!(out, "  {}  {:>8}{run}", look.name(&name, longest), byte_size(file.bytes));
        }
    }
    out
}

fn facts(detail: &SkillDetail, levels: Option<&LevelTokens>, unicode: bool) -> Vec<(&'static str, String)> {
    let summary = &detail.summary;
    let with_origin = |field: &str, value: String| {
        if summary.inferred.iter().any(|name| name == field) { format!("{value} (inferred)") } else { value }
    };
    let targets: Vec<String> = summary.attach_targets.iter().map(ToString::to_string).collect();
    let properties = &detail.skill.properties;
    let sizes = levels.map_or_else(String::new, |levels| {
        let files = counted(levels.l3_files as usize, "file");
        format!(
            "L1 {}, L2 {}, L3 {} in {files} of {} (o200k vocabulary)",
            tokens(levels.entry_count(), unicode),
            tokens(levels.body_count(), unicode),
            tokens(levels.files_count(), unicode),
            byte_size(levels.l3_bytes)
        )
    });
    vec![
        (
            "name",
            if summary.name == summary.skill_id.as_str() { String::new() } else { summary.name.clone() },
        ),
        ("location", summary.location.display().to_string()),
        ("root", summary.root.clone()),
        ("shadowed by", summary.shadowed_by.as_ref().map_or_else(String::new, |by| by.display().to_string())),
        ("role", with_origin("role", summary.role.to_string())),
        ("invocation", with_origin("invocation", summary.invocation.to_string())),
        ("attach to", targets.join(", ")),
        ("effect", with_origin("effect_mode", summary.effect_mode.to_string())),
        ("status", with_origin("status", summary.status.as_str().to_owned())),
        ("kind", with_origin("kind", summary.kind.to_string())),
        ("domain", summary.domain.clone().map_or_else(String::new, |domain| with_origin("domain", domain))),
        ("tags", summary.tags.join(", ")),
        ("requires", detail.skill.requires.join(", ")),
        ("license", properties.license.clone().unwrap_or_default()),
        ("compatibility", properties.compatibility.clone().unwrap_or_default()),
        ("allowed tools", properties.allowed_tools.join(", ")),
        ("body", counted(detail.skill.body_lines as usize, "line")),
        ("tokens", sizes),
        ("sha256", summary.digest.to_string()),
    ]
}
