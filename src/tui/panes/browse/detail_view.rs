//! Draws the right part: sub-tabs, and below them instructions, frontmatter or findings of a skill.

use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::budget::SelectedClient;
use super::detail::{Detail, TABS, Tab, raw};
use super::skill_list::{ShownBundle, SkillList};
use super::{contract_view, disclosure_view, files_view, items, rivals_view};
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::{
    Painter, RichLine, Scroll, Seg, Title, cells, cut_line, cut_middle, shown, wrap, wrap_to,
};
use skills_api::{ClientViewState, ForeignBundle, finding_text};
use skills_config::quoted;
use skills_skill::{Finding, RefusalReason, Severity};

/// Draws the right part; returns the row of the disclosure's rule, if there is one.
pub(super) fn draw(
    detail: &mut Detail,
    list: &SkillList,
    focused: bool,
    area: Rect,
    buf: &mut Buffer,
    cx: &Draw<'_>,
) -> Option<u16> {
    detail.drawn.area = area;
    let Some(shown) = list.shown() else {
        Title::of("", focused).draw(&mut Painter::new(buf, cx), area.x, area.y, area.width);
        return None;
    };
    let id = &shown.entry.id;
    draw_tabs(detail, shown, Rect { y: area.y + 1, height: 1, ..area }, buf, cx);
    let foot = disclosure_view::height(area.height);
    let body =
        Rect { y: area.y + 3, height: area.height.saturating_sub(3 + foot + u16::from(foot > 0)), ..area };
    detail.ascii = cx.glyphs.ascii;
    let y_reason = draw_reason(&list.client, shown, body, buf, cx);
    let body = Rect { y: body.y + y_reason, height: body.height.saturating_sub(y_reason), ..body };
    let note = match detail.tab {
        _ if shown.refusal.is_some() => draw_refusal(detail, shown, focused, body, buf, cx),
        _ if let Some(foreign) = shown.foreign => draw_foreign(foreign, body, buf, cx),
        Tab::Instructions => draw_instructions(detail, list, body, buf, cx),
        Tab::Frontmatter => draw_frontmatter(detail, body, buf, cx),
        Tab::Files => files_view::draw(detail, focused, body, buf, cx),
        Tab::Contract => contract_view::draw(detail, id, body, buf, cx),
        Tab::Findings => draw_findings(detail, shown, focused, body, buf, cx),
        Tab::Rivals => rivals_view::draw(detail, id, focused, body, buf, cx),
    };
    let mut title = Title::of(shown.entry.label.clone(), focused).note(note);
    title.name.segs[0].plus = Modifier::BOLD;
    if let Some(name) = &shown.entry.name {
        title.name.segs.push(Seg::new(format!("  {name}"), Role::Muted));
    }
    title.draw(&mut Painter::new(buf, cx), area.x, area.y, area.width);
    if foot == 0 {
        return None;
    }
    let strip = Rect { y: area.bottom() - foot, height: foot, ..area };
    disclosure_view::draw(shown, detail.skill.as_deref(), list.tokens.of(id), strip, buf, cx);
    Some(strip.y)
}

/// Draws the full reason for how the selected client treats this bundle; returns the number of rows.
fn draw_reason(
    selected: &SelectedClient,
    bundle: ShownBundle<'_>,
    area: Rect,
    buf: &mut Buffer,
    cx: &Draw<'_>,
) -> u16 {
    let (Some(client), id) = (&selected.view, &bundle.entry.id) else { return 0 };
    let (state, assumed) = if let Some(foreign) = bundle.foreign {
        (Some(&foreign.state), foreign.assumed)
    } else {
        let entry = client.entries.iter().find(|e| e.skill_id == *id);
        (entry.map(|e| &e.state), entry.is_some_and(|e| e.assumed))
    };
    let assumed = assumed.then(|| "assumed: not in a folder of this client, shown as if it were".to_owned());
    let note = selected.budget().and_then(|budget| budget.reason(id));
    let is_listed = bundle.refusal.is_some() && state == Some(&ClientViewState::Found);
    let reasons = is_listed.then(|| "lists it".to_owned()).or_else(|| state.and_then(items::reason));
    let reasons: Vec<String> = assumed.into_iter().chain(reasons).chain(note).collect();
    if reasons.is_empty() {
        return 0;
    }
    let reason = reasons.join("; ");
    let mut painter = Painter::new(buf, cx);
    let width = area.width.saturating_sub(5);
    let text = [Seg::new(format!("{}: ", shown(&client.name)), Role::Muted), Seg::new(reason, Role::Text)];
    let lines = wrap_to(&text, width, usize::from(area.height / 3).clamp(1, 4), painter.glyphs.ellipsis);
    painter.put(area.x + 2, area.y, painter.glyphs.warn, Role::Warning, 1);
    for (line, y) in lines.iter().zip(area.y..) {
        painter.line(area.x + 4, y, line, width);
    }
    lines.len() as u16 + 1
}

fn draw_tabs(detail: &mut Detail, shown: ShownBundle<'_>, row: Rect, buf: &mut Buffer, cx: &Draw<'_>) {
    let files = detail.skill.as_ref().map_or(0, |d| d.files.len());
    let findings = detail.findings(shown).len();
    let mut painter = Painter::new(buf, cx);
    let mut x = row.x + 2;
    let short = row.width < 64;
    let tight = row.width < 50;
    let gap = if tight {
        1
    } else if short {
        2
    } else {
        3
    };
    let counted =
        |name: &str, n: usize| if n > 0 && !tight { format!("{name} {n}") } else { name.to_owned() };
    for tab in TABS {
        let label = match tab {
            Tab::Instructions if short => "Text".to_owned(),
            Tab::Instructions => "Instructions".to_owned(),
            Tab::Frontmatter if short => "YAML".to_owned(),
            Tab::Frontmatter => "Frontmatter".to_owned(),
            Tab::Files => counted("Files", files),
            Tab::Contract => "Contract".to_owned(),
            Tab::Findings => counted("Findings", findings),
            Tab::Rivals => "Rivals".to_owned(),
        };
        let available = row.right().saturating_sub(x);
        let end = if tab == detail.tab {
            painter.put_plus(x, row.y, &label, Role::Strong, Modifier::UNDERLINED, available)
        } else {
            painter.put(x, row.y, &label, Role::Muted, available)
        };
        detail.drawn.tabs.push((Rect { x, width: end.saturating_sub(x), ..row }, tab));
        x = end + gap;
    }
}

fn draw_instructions(
    detail: &mut Detail,
    list: &SkillList,
    area: Rect,
    buf: &mut Buffer,
    cx: &Draw<'_>,
) -> String {
    let width = area.width.saturating_sub(6);
    let window = Rect { x: area.x + 4, width: area.width.saturating_sub(5), ..area };
    let Some(skill) = detail.skill.clone() else {
        let Some(lines) = detail.last_text.clone().filter(|_| detail.error.is_none()) else {
            return draw_waiting(detail, area, buf, cx);
        };
        let mut painter = Painter::new(buf, cx);
        let drawn = scrolled(&mut detail.text, &lines, window, &mut painter);
        painter.rail(area.x + 2, area.y, drawn, 2);
        return position(&detail.text, lines.len());
    };
    if skill.body.trim().is_empty() {
        let mut painter = Painter::new(buf, cx);
        painter.put(area.x + 2, area.y, "no instructions: the file has only frontmatter", Role::Muted, width);
        return String::new();
    }
    let rendered = detail.rendered(&skill.body, "markdown", width);
    if rendered.is_some() {
        detail.prefetch(list.neighbors(), width);
    }
    let lines = rendered.unwrap_or_else(|| raw(&skill.body, width));
    detail.last_text = Some(Arc::clone(&lines));
    let mut painter = Painter::new(buf, cx);
    let drawn = scrolled(&mut detail.text, &lines, window, &mut painter);
    painter.rail(area.x + 2, area.y, drawn, 2);
    detail.note_line(&lines);
    position(&detail.text, lines.len())
}

fn position(scroll: &Scroll, lines: usize) -> String {
    let last = (scroll.offset + scroll.height).min(lines);
    format!("{}–{last} of {}", scroll.offset + 1, crate::widgets::counted(lines, "line"))
}

/// Draws the frontmatter verbatim, with findings below their lines.
fn draw_frontmatter(detail: &mut Detail, area: Rect, buf: &mut Buffer, cx: &Draw<'_>) -> String {
    let Some(skill) = detail.skill.clone() else {
        return draw_waiting(detail, area, buf, cx);
    };
    let head = skill.skill.body_line.saturating_sub(1) as usize;
    let text: String = skill.source.split_inclusive('\n').take(head).collect();
    let width = area.width.saturating_sub(8);
    let yaml = detail.rendered(&text, "yaml", width);
    let yaml = yaml.unwrap_or_else(|| raw(&text, width));
    let file = skill.skill.location.file_name().unwrap_or_default();
    let here: Vec<&Finding> =
        skill.findings.iter().filter(|f| f.file.as_os_str() == file && f.span.is_some()).collect();
    let mut lines: Vec<RichLine> = Vec::new();
    for (index, line) in yaml.iter().enumerate() {
        let number = if line.source > 0 { format!("{:>3}  ", line.source) } else { "     ".to_owned() };
        let mut segs = vec![Seg::new(number, Role::Muted)];
        segs.extend(line.segs.iter().cloned());
        lines.push(RichLine { segs, band: None, source: line.source });
        let last_of_line = yaml.get(index + 1).is_none_or(|next| next.source > 0);
        if !last_of_line {
            continue;
        }
        let number = yaml[..=index].iter().rev().map(|l| l.source).find(|s| *s > 0).unwrap_or(0);
        for finding in here.iter().filter(|f| f.span.is_some_and(|s| s.line == number)) {
            lines.extend(finding_note(finding, width, cx));
        }
    }
    let window = Rect { x: area.x + 2, width: area.width.saturating_sub(3), ..area };
    scrolled(&mut detail.text, &lines, window, &mut Painter::new(buf, cx));
    detail.note_line(&lines);
    position(&detail.text, lines.len())
}

fn draw_findings(
    detail: &mut Detail,
    shown: ShownBundle<'_>,
    focused: bool,
    area: Rect,
    buf: &mut Buffer,
    cx: &Draw<'_>,
) -> String {
    let findings = detail.findings(shown).to_vec();
    let mut painter = Painter::new(buf, cx);
    if findings.is_empty() {
        painter.put(area.x + 2, area.y, painter.glyphs.ok, Role::Success, 1);
        painter.put(area.x + 4, area.y, "no findings", Role::Text, area.width.saturating_sub(4));
        return String::new();
    }
    detail.finding = detail.finding.min(findings.len() - 1);
    let width = area.width.saturating_sub(5);
    let mut lines: Vec<(usize, RichLine)> = Vec::new();
    for (index, finding) in findings.iter().enumerate() {
        lines.extend(finding_lines(finding, width, cx).into_iter().map(|line| (index, line)));
        lines.push((usize::MAX, RichLine::default()));
    }
    let height = usize::from(area.height);
    let of = |line: &(usize, RichLine)| line.0 == detail.finding;
    let first = lines.iter().position(of).unwrap_or(0);
    let last = lines.iter().rposition(of).unwrap_or(0);
    let mut offset = detail.text.offset;
    if last >= offset + height {
        offset = last + 1 - height;
    }
    offset = offset.min(first).min(lines.len().saturating_sub(height).max(first));
    detail.text.offset = offset;
    detail.text.height = height;
    for (place, (index, line)) in lines.iter().skip(offset).take(height).enumerate() {
        let row = Rect { y: area.y + place as u16, height: 1, ..area };
        if *index == detail.finding && focused {
            painter.select(row, true);
        }
        painter.line(row.x + 2, row.y, line, width + 2);
        if *index != usize::MAX {
            detail.drawn.findings.push((row, *index));
        }
    }
    format!("{} of {}", detail.finding + 1, findings.len())
}

/// Draws why a bundle cannot be used, on any sub-tab.
fn draw_refusal(
    detail: &mut Detail,
    bundle: ShownBundle<'_>,
    focused: bool,
    area: Rect,
    buf: &mut Buffer,
    cx: &Draw<'_>,
) -> String {
    let Some(refusal) = bundle.refusal else { return String::new() };
    let place = shown(&refusal.location.display().to_string());
    let mut painter = Painter::new(buf, cx);
    let width = area.width.saturating_sub(4);
    // Clients that follow links read the file, whatever this catalog does.
    let what = if refusal.reason == RefusalReason::LeavesRoot {
        "not followed here; clients that follow links list the skill it points to"
    } else {
        "rejected: fix this to use the skill"
    };
    let mut y = area.y;
    for line in wrap_to(&[Seg::new(what, Role::Strong)], width, 2, painter.glyphs.ellipsis) {
        painter.line(area.x + 2, y, &line, width);
        y += 1;
    }
    let place = cut_middle(&place, width, painter.glyphs.ellipsis).into_owned();
    painter.put(area.x + 2, y, &place, Role::Muted, width);
    let below = Rect { y: y + 2, height: area.bottom().saturating_sub(y + 2), ..area };
    draw_findings(detail, bundle, focused, below, buf, cx)
}

/// Draws what is known of a bundle that only the selected client finds, on any sub-tab.
fn draw_foreign(foreign: &ForeignBundle, area: Rect, buf: &mut Buffer, cx: &Draw<'_>) -> String {
    let mut painter = Painter::new(buf, cx);
    let width = area.width.saturating_sub(4);
    let place = shown(&foreign.location.display().to_string());
    let place = cut_middle(&place, width, painter.glyphs.ellipsis).into_owned();
    painter.put(area.x + 2, area.y, "outside the roots: only its frontmatter is read", Role::Strong, width);
    painter.put(area.x + 2, area.y + 1, &place, Role::Muted, width);
    let root = foreign.location.parent().and_then(std::path::Path::parent);
    let root = root.map(|root| quoted(&root.to_string_lossy())).unwrap_or_default();
    let (error, help) = match foreign.error.as_ref().filter(|_| foreign.rejected) {
        // With its folder as a root, it would be rejected.
        Some(error) => (shown(&finding_text(error)), shown(&error.help)),
        None => (String::new(), format!("To open, rank and lint it, start with --root {root}")),
    };
    let texts = [(shown(&foreign.description), Role::Text), (error, Role::Danger), (help, Role::Muted)];
    let mut y = area.y + 3;
    for (text, role) in texts.into_iter().filter(|(text, _)| !text.trim().is_empty()) {
        for segs in wrap(&[Seg::new(text, role)], width) {
            if y < area.bottom() {
                painter.line(area.x + 2, y, &RichLine::from_segs(segs), width);
            }
            y += 1;
        }
        y += 1;
    }
    String::new()
}

fn draw_waiting(detail: &Detail, area: Rect, buf: &mut Buffer, cx: &Draw<'_>) -> String {
    let mut painter = Painter::new(buf, cx);
    if let Some(error) = &detail.error {
        painter.put(area.x + 2, area.y, painter.glyphs.bad, Role::Danger, 1);
        let width = area.width.saturating_sub(5);
        let segs = [Seg::new(shown(&error.message), Role::Text)];
        for (row, line) in wrap_to(&segs, width, 4, painter.glyphs.ellipsis).iter().enumerate() {
            painter.line(area.x + 4, area.y + row as u16, line, width);
        }
    }
    String::new()
}

/// Draws the visible part of a text; returns the number of rows. Clamps the offset.
pub(super) fn scrolled(
    scroll: &mut Scroll,
    lines: &[RichLine],
    area: Rect,
    painter: &mut Painter<'_>,
) -> u16 {
    scroll.height = usize::from(area.height);
    scroll.offset = scroll.offset.min(lines.len().saturating_sub(scroll.height));
    let mut drawn = 0;
    for line in lines.iter().skip(scroll.offset).take(scroll.height) {
        painter.line(area.x, area.y + drawn, line, area.width);
        drawn += 1;
    }
    drawn
}

fn sign(severity: Severity, cx: &Draw<'_>) -> (&'static str, Role) {
    match severity {
        Severity::Error => (cx.glyphs.bad, Role::Danger),
        Severity::Warning => (cx.glyphs.warn, Role::Warning),
        Severity::Info => (cx.glyphs.bullet, Role::Info),
    }
}

/// Formats a finding below its line in the frontmatter.
fn finding_note(finding: &Finding, width: u16, cx: &Draw<'_>) -> Vec<RichLine> {
    let (sign, role) = sign(finding.severity, cx);
    let column = finding.span.map_or(0, |s| s.column.saturating_sub(1)).min(u32::from(width / 2));
    let indent = " ".repeat(5 + column as usize);
    let available = width.saturating_sub(column as u16 + 2).max(20);
    let text = [Seg::new(shown(&finding.message), role)];
    let lead = |first: bool| if first { format!("{indent}{sign} ") } else { format!("{indent}  ") };
    wrap(&text, available)
        .into_iter()
        .enumerate()
        .map(|(index, mut segs)| {
            segs.insert(0, Seg::new(lead(index == 0), role));
            RichLine::from_segs(segs)
        })
        .collect()
}

/// Formats a finding in full: severity, rule, field and location, message, help.
pub(super) fn finding_lines(finding: &Finding, width: u16, cx: &Draw<'_>) -> Vec<RichLine> {
    let (sign, role) = sign(finding.severity, cx);
    let mut head = vec![
        Seg::new(format!("{sign} "), role),
        Seg::new(finding.severity.to_string(), role),
        Seg::new(format!("  {}", finding.code), Role::Muted),
    ];
    let mut used: u16 = head.iter().map(|s| cells(&s.text)).sum();
    let field = finding.field.as_ref().map(|field| format!("  {}", shown(field)));
    if let Some(field) = field.filter(|field| used + cells(field) <= width) {
        used += cells(&field);
        head.push(Seg::new(field, Role::Text));
    }
    let place = shown(&finding.file.display().to_string());
    let place = finding.span.map_or(place.clone(), |s| format!("{place}:{}:{}", s.line, s.column));
    if used + cells(&place) + 2 <= width {
        let gap = usize::from(width - used - cells(&place));
        head.push(Seg::new(" ".repeat(gap), Role::Text));
        head.push(Seg::new(place, Role::Muted));
    }
    let mut out = vec![cut_line(&RichLine::from_segs(head), width, cx.glyphs.ellipsis)];
    for (text, role) in [(&finding.message, Role::Text), (&finding.help, Role::Muted)] {
        for mut segs in wrap(&[Seg::new(shown(text), role)], width.saturating_sub(2)) {
            segs.insert(0, Seg::new("  ", Role::Text));
            out.push(RichLine::from_segs(segs));
        }
    }
    out
}
