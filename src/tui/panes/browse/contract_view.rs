//! Draws the contract of a skill: its inputs and outputs, and its steps as a graph, each with what executes it, which
//! approval it requires, and whether it can be repeated.

use std::collections::BTreeMap;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::detail::Detail;
use super::detail_view::{finding_lines, scrolled};
use crate::action::{Action, Context};
use crate::glyphs::Glyphs;
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::dag;
use crate::widgets::json_lines::on_one_line;
use crate::widgets::{Painter, RichLine, Seg, cells, counted, cut_end, shown, wrap_to};
use skills_api::{ContractStep, ContractView};
use skills_base::json_value::value_text;
use skills_skill::contract::Field;
use skills_skill::{SkillId, errors_and_warnings};

/// Divisor of the width: the lanes of a graph may take at most this part of it.
const LANES_SHARE: usize = 4;
/// Width of a step's name before its capability, if there is enough space, in cells.
const NAME: u16 = 20;
/// Deepest level of steps that is indented further, if they are shown as a list.
const MAX_INDENT: usize = 6;

/// Draws the tab; returns the text at the title's right.
pub(super) fn draw(detail: &mut Detail, id: &SkillId, area: Rect, buf: &mut Buffer, cx: &Draw<'_>) -> String {
    let width = area.width.saturating_sub(4);
    let view = match detail.contract(id) {
        None => {
            let mut painter = Painter::new(buf, cx);
            painter.put(area.x + 2, area.y, "loading contract", Role::Muted, width);
            return String::new();
        }
        Some(Err(error)) => {
            let mut painter = Painter::new(buf, cx);
            // A skill without a contract is the usual case, not a failure.
            let is_failure = !error.has_no_contract();
            let mut segs = Vec::new();
            if is_failure {
                segs.push(Seg::new(format!("{} ", painter.glyphs.bad), Role::Danger));
            }
            segs.push(Seg::new(shown(&error.message), if is_failure { Role::Text } else { Role::Muted }));
            for (line, y) in
                wrap_to(&segs, width, 6, painter.glyphs.ellipsis).iter().zip(area.y..area.bottom())
            {
                painter.line(area.x + 2, y, line, width);
            }
            return String::new();
        }
        Some(Ok(view)) => view,
    };
    let lines = lines(&view, width, cx);
    let window = Rect { x: area.x + 2, width: area.width.saturating_sub(3), ..area };
    scrolled(&mut detail.text, &lines, window, &mut Painter::new(buf, cx));
    let (errors, _) = errors_and_warnings(&view.contract.findings);
    if errors > 0 {
        return format!("invalid {} {}", cx.glyphs.dot, counted(errors, "error"));
    }
    let steps = counted(view.steps.len(), "step");
    let version = shown(&view.contract.version);
    format!("{version} {} {steps}", cx.glyphs.dot)
}

fn lines(view: &ContractView, width: u16, cx: &Draw<'_>) -> Vec<RichLine> {
    let glyphs = cx.glyphs;
    let mut out = status_rows(view, width, cx);
    out.push(RichLine::default());
    out.extend(graph(view, width, glyphs));
    if !view.findings.is_empty() {
        out.push(RichLine::default());
        let title = counted(view.findings.len(), "finding");
        out.push(RichLine::from_segs(vec![Seg::new(title, Role::Strong).with(Modifier::BOLD)]));
        for finding in &view.findings {
            out.extend(finding_lines(finding, width, cx));
        }
    }
    out
}

/// Returns whether it can run here, and the sandbox of its scripts.
fn status_rows(view: &ContractView, width: u16, cx: &Draw<'_>) -> Vec<RichLine> {
    let glyphs = cx.glyphs;
    let mut out = match &view.blocked {
        None => vec![RichLine::from_segs(vec![
            Seg::new(format!("{} ", glyphs.ok), Role::Success),
            Seg::new("can run  ", Role::Text),
            Seg::new(cx.keymap.key_word(Action::Launch, &[Context::Browse], glyphs), Role::Key),
            Seg::new(" launches it", Role::Muted),
        ])],
        Some(why) => {
            let segs = [
                Seg::new(format!("{} ", glyphs.warn), Role::Warning),
                Seg::new("cannot run: ", Role::Strong),
                Seg::new(shown(why), Role::Text),
            ];
            hanging(&segs, width, glyphs)
        }
    };
    let isolation = [Seg::new("  isolation ", Role::Muted), Seg::new(shown(&view.isolation), Role::Muted)];
    out.extend(wrap_to(&isolation, width, 2, glyphs.ellipsis));
    out
}

/// Wraps text with a hanging indent of two cells.
fn hanging(segs: &[Seg], width: u16, glyphs: &Glyphs) -> Vec<RichLine> {
    let mut lines = wrap_to(segs, width.saturating_sub(2), 6, glyphs.ellipsis);
    for line in lines.iter_mut().skip(1) {
        line.segs.insert(0, Seg::new("  ", Role::Text));
    }
    lines
}

/// A node of the graph: its glyph, and the lines next to it.
#[derive(Clone)]
struct Node {
    sign: Seg,
    lines: Vec<RichLine>,
}

fn graph(view: &ContractView, width: u16, glyphs: &Glyphs) -> Vec<RichLine> {
    let steps = &view.steps;
    let place = |id: &str| steps.iter().position(|step| step.id == id).map(|at| at + 1);
    // Node 0 is the input, the last one the output.
    let mut before: Vec<Vec<usize>> = vec![Vec::new()];
    for step in steps {
        let after: Vec<usize> = step.after.iter().filter_map(|id| place(id)).collect();
        before.push(if after.is_empty() { vec![0] } else { after });
    }
    let followed = |node: usize| before.iter().any(|after| after.contains(&node));
    let leaves: Vec<usize> = (0..=steps.len()).filter(|node| !followed(*node)).collect();
    before.push(leaves);

    let lanes = (usize::from(width) / LANES_SHARE / 2).max(1);
    let ends = vec![1; before.len()];
    let Some(drawn) = dag::rows(&before, &ends, lanes, glyphs.ascii) else {
        return listed(view, &before, width, glyphs);
    };
    let lead = drawn.first().map_or(0, |row| row.lines.chars().count()) as u16 + 1;
    let nodes = nodes(view, width.saturating_sub(lead), glyphs);
    let heights: Vec<usize> = nodes.iter().map(|node| node.lines.len().max(1)).collect();
    let Some(drawn) = dag::rows(&before, &heights, lanes, glyphs.ascii) else { return Vec::new() };
    drawn.iter().map(|row| graph_row(row, &nodes)).collect()
}

fn graph_row(row: &dag::DagRow, nodes: &[Node]) -> RichLine {
    let mut segs = Vec::new();
    match row.node {
        Some((node, column)) => {
            let left: String = row.lines.chars().take(column).collect();
            let right: String = row.lines.chars().skip(column + 1).collect();
            segs.push(Seg::new(left, Role::Rule));
            segs.push(nodes[node].sign.clone());
            segs.push(Seg::new(right, Role::Rule));
        }
        None => segs.push(Seg::new(row.lines.clone(), Role::Rule)),
    }
    segs.push(Seg::new(" ", Role::Text));
    if let Some(line) = row.of.and_then(|(node, at)| nodes.get(node)?.lines.get(at)) {
        segs.extend(line.segs.iter().cloned());
    }
    RichLine::from_segs(segs)
}

/// Formats the steps as a list if the lanes do not fit or form a cycle: indented by depth, with the dependencies as
/// text.
fn listed(view: &ContractView, before: &[Vec<usize>], width: u16, glyphs: &Glyphs) -> Vec<RichLine> {
    let mut depths = vec![0_usize; before.len()];
    // Each pass adds a level to every chain, up to the deepest that is shown.
    for _ in 0..MAX_INDENT {
        for node in 1..before.len().saturating_sub(1) {
            let deepest = before[node].iter().map(|one| depths[*one] + usize::from(*one > 0)).max();
            depths[node] = deepest.unwrap_or(0).min(MAX_INDENT);
        }
    }
    let mut out = Vec::new();
    let available = |depth: usize| width.saturating_sub(depth as u16 * 2 + 2);
    // The lines of all nodes depend on the width only, so they are laid out once for each depth.
    let laid_out: Vec<Vec<Node>> = (0..=MAX_INDENT)
        .map(|depth| if depths.contains(&depth) { nodes(view, available(depth), glyphs) } else { Vec::new() })
        .collect();
    for (node, &depth) in depths.iter().enumerate() {
        let indent = depth * 2;
        let available = available(depth);
        let Some(mut lines) = laid_out[depth].get(node).cloned() else { continue };
        if let Some(step) = node.checked_sub(1).and_then(|at| view.steps.get(at))
            && !step.after.is_empty()
        {
            let after: Vec<String> = step.after.iter().map(|id| shown(id)).collect();
            let message = format!("after {}", after.join(", "));
            lines.lines.extend(wrap_to(&[Seg::new(message, Role::Muted)], available, 2, glyphs.ellipsis));
        }
        for (at, line) in lines.lines.into_iter().enumerate() {
            let pad = Seg::new(" ".repeat(indent), Role::Text);
            let sign = if at == 0 { lines.sign.clone() } else { Seg::new(" ", Role::Text) };
            let mut segs = vec![pad, sign, Seg::new(" ", Role::Text)];
            segs.extend(line.segs);
            out.push(RichLine::from_segs(segs));
        }
    }
    out
}

fn nodes(view: &ContractView, width: u16, glyphs: &Glyphs) -> Vec<Node> {
    // A contract with errors may have fields that could not be parsed.
    let (errors, _) = errors_and_warnings(&view.contract.findings);
    let no_fields = if errors > 0 { "unknown" } else { "none" };
    let ends = |title: &str, fields: &BTreeMap<String, Field>| Node {
        sign: Seg::new(glyphs.pending, Role::Muted),
        lines: fields_lines(title, fields, no_fields, width, glyphs),
    };
    let names = view.steps.iter().map(|step| cells(&shown(&step.id))).max().unwrap_or(0);
    let column = names.min(NAME).min(width / 3) + 2;
    let mut out = vec![ends("inputs", &view.contract.inputs)];
    out.extend(view.steps.iter().map(|step| step_node(step, column, width, glyphs)));
    out.push(ends("outputs", &view.contract.outputs));
    out
}

fn fields_lines(
    title: &str,
    fields: &BTreeMap<String, Field>,
    no_fields: &str,
    width: u16,
    glyphs: &Glyphs,
) -> Vec<RichLine> {
    if fields.is_empty() {
        return vec![RichLine::from_segs(vec![
            Seg::new(format!("{title} "), Role::Strong).with(Modifier::BOLD),
            Seg::new(no_fields, Role::Muted),
        ])];
    }
    let mut out = vec![RichLine::from_segs(vec![Seg::new(title, Role::Strong).with(Modifier::BOLD)])];
    let column = fields.keys().map(|name| cells(&shown(name))).max().unwrap_or(0).min(NAME).min(width / 2);
    for (name, field) in fields {
        let name = cut_end(&shown(name), column, glyphs.ellipsis).into_owned();
        let mark = if field.required { "*" } else { " " };
        let pad = " ".repeat(usize::from(column.saturating_sub(cells(&name))));
        let mut segs = vec![
            Seg::new(name, Role::Text),
            Seg::new(format!("{mark}{pad}  "), Role::Muted),
            Seg::new(field.kind.to_string(), Role::Info),
        ];
        let used = |segs: &[Seg]| segs.iter().map(|seg| cells(&seg.text)).sum::<u16>();
        if !field.allowed.is_empty() {
            let allowed: Vec<String> = field.allowed.iter().map(|one| shown(&value_text(one))).collect();
            segs.push(Seg::new(format!("  {}", allowed.join(" | ")), Role::Muted));
        }
        if let Some(default) = &field.default {
            segs.push(Seg::new("  = ", Role::Muted));
            let available = width.saturating_sub(used(&segs)).min(24);
            segs.extend(on_one_line(default, available.max(8), glyphs.ellipsis));
        }
        if let Some(description) = &field.description
            && used(&segs) + 12 <= width
        {
            let available = width - used(&segs) - 2;
            let message = cut_end(&shown(description), available, glyphs.ellipsis).into_owned();
            segs.push(Seg::new(format!("  {message}"), Role::Muted));
        }
        out.push(crate::widgets::wrap::cut_line(&RichLine::from_segs(segs), width, glyphs.ellipsis));
    }
    // The graph continues with a blank row.
    if title == "inputs" {
        out.push(RichLine::default());
    }
    out
}

fn step_node(step: &ContractStep, column: u16, width: u16, glyphs: &Glyphs) -> Node {
    let (kind, what) = step.uses.split_once(' ').unwrap_or(("capability", step.uses.as_str()));
    let sign = match kind {
        _ if !step.gates.is_empty() => Seg::new(glyphs.waiting, Role::Waiting),
        "signal" => Seg::new(glyphs.signal, Role::Info),
        "skill" => Seg::new(glyphs.closed, Role::Text),
        _ => Seg::new(glyphs.set, Role::Text),
    };
    let name = cut_end(&shown(&step.id), column.saturating_sub(2), glyphs.ellipsis).into_owned();
    let pad = " ".repeat(usize::from(column.saturating_sub(cells(&name))));
    let mut head = vec![Seg::new(name, Role::Strong).with(Modifier::BOLD), Seg::new(pad, Role::Text)];
    match kind {
        "signal" => head.push(Seg::new("waits for the signal ", Role::Muted)),
        "skill" => head.push(Seg::new("runs the skill ", Role::Muted)),
        _ => {}
    }
    head.push(Seg::new(shown(what), Role::Text));
    let mut lines = vec![crate::widgets::wrap::cut_line(&RichLine::from_segs(head), width, glyphs.ellipsis)];
    let mut add = |segs: &[Seg]| lines.extend(wrap_to(segs, width, 3, glyphs.ellipsis));
    if let Some(binding) = &step.binding {
        let mut segs = Vec::new();
        if step.unbound {
            segs.push(Seg::new(format!("{} ", glyphs.warn), Role::Warning));
        }
        segs.push(Seg::new(shown(binding), if step.unbound { Role::Text } else { Role::Muted }));
        add(&segs);
    }
    for gate in &step.gates {
        add(&[Seg::new(format!("{} {}", glyphs.waiting, shown(gate)), Role::Waiting)]);
    }
    if !step.flow.is_empty() {
        let flow: Vec<String> = step.flow.iter().map(|one| shown(one)).collect();
        add(&[Seg::new(flow.join(&format!(" {} ", glyphs.dot)), Role::Info)]);
    }
    if !step.effect.is_empty() && (kind == "capability" || step.acts) {
        let safe = step.effect.starts_with("no side effects");
        add(&[Seg::new(shown(&step.effect), if safe { Role::Muted } else { Role::Text })]);
    }
    Node { sign, lines }
}
