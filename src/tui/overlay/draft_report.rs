//! The metrics of a draft as rows: the golden set, queries that changed their first result, the value of clauses, what
//! clients show.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::theme::Role;
use crate::widgets::{
    Painter, RichLine, Seg, cells, count, counted, cut_end, plain_score, shown, signed, signed_count, wrap,
    wrap_to,
};
use ratatui::style::Modifier;
use skills_api::{DraftPlace, DraftReport, DraftShown};
use skills_discovery::{ChangedQuery, GoldenChange, Split, SplitMetrics};
use skills_skill::{Severity, SkillId};

/// Maximum number of listed queries of each kind.
const MAX_QUERIES: usize = 8;
/// Width of a bar, in cells.
const BAR_WIDTH: u16 = 12;

/// A row of a column.
pub enum Item {
    /// A title on a rule, with a note.
    Title(&'static str, String),
    Line(RichLine),
    /// A blank row.
    Gap,
}

fn line(segs: Vec<Seg>) -> Item {
    Item::Line(RichLine::from_segs(segs))
}

fn bar(length: u16, painter: &Painter<'_>) -> String {
    let sign = if painter.glyphs.ascii { "#" } else { "▆" };
    sign.repeat(usize::from(length))
}

/// Truncates or pads a text to a width.
fn fixed(text: &str, width: u16, painter: &Painter<'_>) -> String {
    let text = cut_end(text, width, painter.glyphs.ellipsis).into_owned();
    let pad = usize::from(width.saturating_sub(cells(&text)));
    text + &" ".repeat(pad)
}

/// Mutes the rows from `start` on: they belong to an earlier text.
fn mute(items: &mut [Item], start: usize) {
    for item in items.iter_mut().skip(start) {
        if let Item::Line(line) = item {
            line.segs.iter_mut().for_each(|seg| (seg.role, seg.plus) = (Role::Muted, Modifier::empty()));
        }
    }
}

/// Which figures are those of an earlier text.
#[derive(Debug, Clone, Copy)]
pub struct Pending {
    pub golden: bool,
    /// Those of clauses and words, and the advice.
    pub clauses: bool,
}

/// Returns the left column: clauses with their value, words that attract other queries, clients, findings.
pub fn left_items(report: &DraftReport, pending: Pending, width: u16, painter: &Painter<'_>) -> Vec<Item> {
    let mut out = Vec::new();
    if !report.clauses.is_empty() {
        let note = if pending.clauses { "updating" } else { "queries gained by each clause" };
        out.push(Item::Title("Clauses", note.to_owned()));
        let most = report.clauses.iter().map(|clause| clause.queries.abs()).max().unwrap_or(0).max(1);
        let name = width.saturating_sub(6 + BAR_WIDTH);
        for clause in &report.clauses {
            let role = if clause.queries < 0 { Role::Danger } else { Role::Level1 };
            let length = (clause.queries.unsigned_abs() as u16 * BAR_WIDTH) / most as u16;
            let is_idle = clause.queries == 0 && clause.mrr.abs() < 1e-9 && clause.false_triggers == 0;
            let value = if is_idle {
                painter.glyphs.dot.to_owned()
            } else {
                signed_count(clause.queries, painter.glyphs)
            };
            let text = if is_idle { Role::Muted } else { Role::Text };
            out.push(line(vec![
                Seg::new(fixed(&shown(&clause.clause), name, painter), text),
                Seg::new(
                    format!("{value:>5} "),
                    if clause.queries < 0 { Role::Danger } else { Role::Strong },
                ),
                Seg::new(bar(length, painter), role),
            ]));
        }
    }
    for attraction in &report.attractions {
        let skills: Vec<String> = attraction.skills.iter().map(|id| shown(id.as_str())).collect();
        let of = if skills.is_empty() {
            let one = attraction.queries.len() == 1;
            format!("that {} another skill", if one { "expects" } else { "expect" })
        } else {
            format!("of {}", skills.join(", "))
        };
        let queries = counted(attraction.queries.len(), "query");
        let text = format!("“{}” attracts {queries} {of}", shown(&attraction.word));
        let segs = [Seg::new(format!("{} ", painter.glyphs.warn), Role::Warning), Seg::new(text, Role::Text)];
        out.extend(wrap_to(&segs, width, 2, painter.glyphs.ellipsis).into_iter().map(Item::Line));
    }
    if pending.clauses {
        mute(&mut out, 0);
    }
    if report.shown.is_empty() && !pending.golden {
        out.extend([Item::Gap, Item::Title("Clients", String::new())]);
        let none = [Seg::new(DraftShown::NONE, Role::Muted)];
        out.extend(wrap(&none, width).into_iter().map(line));
    } else if !report.shown.is_empty() {
        out.extend([Item::Gap, Item::Title("Clients", "how much of the description they show".to_owned())]);
        let name = report.shown.iter().map(|shown| cells(&shown.label())).max().unwrap_or(0);
        for shown in &report.shown {
            let length = (shown.characters * usize::from(BAR_WIDTH)).div_ceil(shown.of.max(1)) as u16;
            let text = match (&shown.dropped, shown.characters) {
                (Some(why), _) => crate::widgets::text_width::shown(why),
                (None, 0) => "name only".to_owned(),
                (None, all) if all == shown.of => "full".to_owned(),
                (None, some) => format!("{some} of {} characters", shown.of),
            };
            let role = if shown.characters < shown.of { Role::Warning } else { Role::Muted };
            let mut before = vec![Seg::new(fixed(&shown.label(), name + 2, painter), Role::Text)];
            // A reason takes the place of the bar, which is empty then.
            let labels = if shown.dropped.is_some() {
                name + 2
            } else {
                before.push(Seg::new(fixed(&bar(length, painter), BAR_WIDTH + 2, painter), Role::Level1));
                name + 2 + BAR_WIDTH + 2
            };
            let reason =
                wrap_to(&[Seg::new(text, role)], width.saturating_sub(labels), 3, painter.glyphs.ellipsis);
            for mut row in reason {
                let blank = vec![Seg::new(" ".repeat(usize::from(labels)), Role::Text)];
                row.segs.splice(0..0, std::mem::replace(&mut before, blank));
                out.push(Item::Line(row));
            }
        }
    }
    if !report.findings.is_empty() {
        out.extend([Item::Gap, Item::Title("Findings", count(report.findings.len()))]);
    }
    for finding in &report.findings {
        let (sign, role) = match finding.severity {
            Severity::Error => (painter.glyphs.bad, Role::Danger),
            Severity::Warning => (painter.glyphs.warn, Role::Warning),
            Severity::Info => (painter.glyphs.dot, Role::Muted),
        };
        let text = format!("{} ({})", shown(&finding.message), finding.code);
        let segs = [Seg::new(format!("{sign} "), role), Seg::new(text, Role::Text)];
        out.extend(wrap_to(&segs, width, 2, painter.glyphs.ellipsis).into_iter().map(Item::Line));
    }
    out
}

/// Returns the right column: the request, the golden set, its two halves, queries that changed their first result, and
/// advice.
pub fn right_items(
    report: &DraftReport,
    intent: Option<&str>,
    pending: Pending,
    width: u16,
    painter: &Painter<'_>,
) -> Vec<Item> {
    let mut out = Vec::new();
    if let (Some(intent), Some(before), Some(after)) = (intent, &report.before, &report.after) {
        out.push(Item::Title("This request", String::new()));
        out.push(line(vec![Seg::new(cut_end(&shown(intent), width, painter.glyphs.ellipsis), Role::Text)]));
        let segs = vec![
            Seg::new(place(before, painter), Role::Muted),
            Seg::new(if painter.glyphs.ascii { " -> " } else { " → " }, Role::Muted),
            Seg::new(place(after, painter), place_role(before, after)).with(Modifier::BOLD),
        ];
        out.push(line(segs));
        if let Some(first) = after.first.as_ref().filter(|_| after.rank != Some(1)) {
            out.push(line(vec![Seg::new(format!("first: {}", shown(first.as_str())), Role::Muted)]));
        }
        out.push(Item::Gap);
    }
    let measured =
        report.golden.as_ref().filter(|golden| golden.after.queries + golden.after.out_of_scope > 0);
    let Some(golden) = measured else {
        out.push(Item::Title(
            "Golden set",
            if pending.golden { "measuring".to_owned() } else { String::new() },
        ));
        if !pending.golden {
            let text = "no golden queries: m in Discover adds one";
            out.push(line(vec![Seg::new(text, Role::Muted)]));
        }
        return out;
    };
    golden_items(golden, &report.skill_id, pending.golden, width, painter, &mut out);
    let start = out.len();
    for advice in &report.advice {
        let rank = advice.new_rank();
        let main = format!("add “{}”: {}, {rank}", shown(&advice.word), signed(advice.gain, painter.glyphs));
        let more = format!("; {} won, {} lost, for “{}”", advice.won, advice.lost, shown(&advice.query));
        let main = Seg::new(main, Role::Strong).with(Modifier::BOLD);
        out.push(Item::Gap);
        out.extend(
            wrap_to(&[main, Seg::new(more, Role::Muted)], width, 2, painter.glyphs.ellipsis)
                .into_iter()
                .map(Item::Line),
        );
    }
    if pending.clauses {
        mute(&mut out, start);
    }
    out
}

fn place(place: &DraftPlace, painter: &Painter<'_>) -> String {
    match (place.rank, place.score) {
        (Some(1), Some(score)) if !place.fits => {
            format!("rank 1 ({}), but does not fit", plain_score(score, painter.glyphs))
        }
        (Some(rank), Some(score)) => format!("rank {rank} ({})", plain_score(score, painter.glyphs)),
        _ => "not ranked".to_owned(),
    }
}

fn place_role(before: &DraftPlace, after: &DraftPlace) -> Role {
    let rank = |place: &DraftPlace| (!place.fits, place.rank.unwrap_or(usize::MAX));
    match rank(after).cmp(&rank(before)) {
        Ordering::Less => Role::Success,
        Ordering::Equal => Role::Text,
        Ordering::Greater => Role::Danger,
    }
}

fn golden_items(
    golden: &GoldenChange,
    drafted: &SkillId,
    is_pending: bool,
    width: u16,
    painter: &Painter<'_>,
    out: &mut Vec<Item>,
) {
    let (before, after) = (&golden.before, &golden.after);
    let queries = after.queries + after.out_of_scope;
    let updating = if is_pending { format!(" {} updating", painter.glyphs.dot) } else { String::new() };
    out.push(Item::Title("Golden set", format!("{}{updating}", counted(queries, "query"))));
    let label = width.saturating_sub(30).clamp(8, 22);
    out.push(line(vec![Seg::new(
        format!("{:label$}{:>7}  {:>7}", "", "saved", "draft", label = usize::from(label)),
        Role::Muted,
    )]));
    if after.queries > 0 {
        out.push(row("P@1", before.p_at_1, after.p_at_1, (3, true), label, painter));
        out.push(row("MRR@10", before.mrr_at_10, after.mrr_at_10, (3, true), label, painter));
    }
    let triggers = (before.false_triggers as f64, after.false_triggers as f64);
    out.push(row("false triggers", triggers.0, triggers.1, (0, false), label, painter));
    if let (Some(before), Some(after)) = (before.out_of_scope_rejected, after.out_of_scope_rejected) {
        out.push(row("out of scope rejected", before, after, (2, true), label, painter));
    }
    let split = &golden.split;
    if split.prompt.queries > 0 && split.held_out.queries > 0 {
        out.extend([Item::Gap, Item::Title("Held-out check", "60/40 split".to_owned())]);
        for (name, half) in [("training", split.prompt), ("held-out", split.held_out)] {
            out.push(row(
                &format!("{name} {}", half.queries),
                half.before,
                half.after,
                (3, true),
                label,
                painter,
            ));
        }
        if !split.is_significant() {
            out.push(line(vec![Seg::new("too few queries to compare the two sets", Role::Muted)]));
        } else if let Some((text, role)) = held_out_result(split) {
            let gap = format!("{:+.3}", split.gap()).replace('-', painter.glyphs.minus);
            let segs = [Seg::new(format!("gap {gap}: "), Role::Text), Seg::new(text, role)];
            out.extend(wrap_to(&segs, width, 2, painter.glyphs.ellipsis).into_iter().map(Item::Line));
        }
    }
    changed_items(golden, drafted, width, painter, out);
}

/// Returns whether a gain on the queries of the prompt holds for the held-out ones; `None` if neither half changed.
fn held_out_result(split: &Split) -> Option<(&'static str, Role)> {
    let change = |half: &SplitMetrics| {
        let change = half.after - half.before;
        if change.abs() < 1e-9 { Ordering::Equal } else { change.total_cmp(&0.0) }
    };
    Some(match (change(&split.prompt), change(&split.held_out)) {
        (Ordering::Equal, Ordering::Equal) => return None,
        (Ordering::Greater, _) if split.gap() >= Split::WIDE_GAP => {
            ("overlapping scope: the gain does not hold for held-out queries", Role::Warning)
        }
        (Ordering::Greater, Ordering::Greater) => {
            ("the gain holds for held-out queries, unless their words were used", Role::Muted)
        }
        (Ordering::Greater, Ordering::Equal) => ("held-out queries gain nothing", Role::Muted),
        (Ordering::Greater, Ordering::Less) => ("gain only for queries in the rewrite prompt", Role::Warning),
        (_, Ordering::Greater) => ("gain only for held-out queries", Role::Muted),
        (Ordering::Equal, Ordering::Less) => ("loss for held-out queries", Role::Warning),
        (Ordering::Less, Ordering::Equal) => ("loss for queries in the rewrite prompt", Role::Warning),
        (Ordering::Less, Ordering::Less) => ("loss in both sets", Role::Warning),
    })
}

/// Formats a metric: label, value before, value after, and the change.
fn row(
    name: &str,
    before: f64,
    after: f64,
    (decimals, is_higher_better): (usize, bool),
    label: u16,
    painter: &Painter<'_>,
) -> Item {
    let text = |value: f64| format!("{value:.decimals$}");
    // Of the values as shown: a change is neither hidden nor invented by rounding.
    let scale = 10_f64.powi(decimals as i32);
    let difference = ((after * scale).round() - (before * scale).round()) / scale;
    let (change, role) = if difference.abs() < 1e-9 {
        ("=".to_owned(), Role::Muted)
    } else {
        let is_better = (difference > 0.0) == is_higher_better;
        let way = if difference > 0.0 { painter.glyphs.up } else { painter.glyphs.down };
        let sign = if difference > 0.0 { "+" } else { painter.glyphs.minus };
        (
            format!("{way} {sign}{}", text(difference.abs())),
            if is_better { Role::Success } else { Role::Danger },
        )
    };
    line(vec![
        Seg::new(fixed(name, label, painter), Role::Text),
        Seg::new(format!("{:>7}  ", text(before)), Role::Muted),
        Seg::new(format!("{:>7}", text(after)), Role::Strong),
        Seg::new(format!("  {change}"), role),
    ])
}

fn changed_items(
    golden: &GoldenChange,
    drafted: &SkillId,
    width: u16,
    painter: &Painter<'_>,
    out: &mut Vec<Item>,
) {
    let gains: Vec<&ChangedQuery> = golden.won.iter().chain(&golden.rejected).collect();
    let losses: Vec<&ChangedQuery> = golden.lost.iter().chain(&golden.triggered).collect();
    let note = format!("{} won {} {} lost", gains.len(), painter.glyphs.dot, losses.len());
    out.extend([Item::Gap, Item::Title("Changed winners", note)]);
    if gains.is_empty() && losses.is_empty() {
        out.push(line(vec![Seg::new("no changes", Role::Muted)]));
        return;
    }
    let name = |id: &Option<SkillId>| id.as_ref().map_or_else(|| "none".to_owned(), |id| shown(id.as_str()));
    // The draft can take a query from the skill that is expected to win it.
    let taken_from = |one: &ChangedQuery| one.from.clone().filter(|_| one.to.as_ref() == Some(drafted));
    let other = (width / 3).min(22);
    let parts = [
        (&losses, painter.glyphs.bad, Role::Danger, true),
        (&gains, painter.glyphs.ok, Role::Success, false),
    ];
    for (queries, sign, role, is_loss) in parts {
        for one in queries.iter().take(MAX_QUERIES) {
            let query = fixed(&shown(&one.query), width.saturating_sub(other + 4), painter);
            let skill = match taken_from(one) {
                Some(owner) if is_loss => format!("from {}", name(&Some(owner))),
                _ if is_loss => format!("to {}", name(&one.to)),
                _ => format!("from {}", name(&one.from)),
            };
            out.push(line(vec![
                Seg::new(format!("{sign} "), role),
                Seg::new(query, if is_loss { Role::Strong } else { Role::Text }),
                Seg::new(format!("  {}", fixed(&skill, other, painter)), Role::Muted),
            ]));
        }
        if queries.len() > MAX_QUERIES {
            out.push(line(vec![Seg::new(
                format!("  and {} more", queries.len() - MAX_QUERIES),
                Role::Muted,
            )]));
        }
    }
    let mut neighbors: BTreeMap<String, (u16, u16)> = BTreeMap::new();
    for one in &gains {
        neighbors.entry(name(&one.from)).or_default().0 += 1;
    }
    for one in &losses {
        let neighbor = taken_from(one).map_or_else(|| name(&one.to), |owner| name(&Some(owner)));
        neighbors.entry(neighbor).or_default().1 += 1;
    }
    out.extend([Item::Gap, Item::Title("Neighbors", "queries won, lost".to_owned())]);
    for (neighbor, (won, lost)) in neighbors {
        out.push(line(vec![
            Seg::new(fixed(&neighbor, width.saturating_sub(2 * BAR_WIDTH + 4), painter), Role::Text),
            Seg::new(
                format!("{:>width$}", bar(won.min(BAR_WIDTH), painter), width = usize::from(BAR_WIDTH)),
                Role::Level2,
            ),
            Seg::new(format!(" {} ", painter.glyphs.bar), Role::Rule),
            Seg::new(bar(lost.min(BAR_WIDTH), painter), Role::Danger),
        ]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(prompt: f64, held_out: f64) -> Option<&'static str> {
        let half = |change: f64| SplitMetrics { queries: 100, before: 0.5, after: 0.5 + change };
        let split = Split { prompt: half(prompt), held_out: half(held_out) };
        held_out_result(&split).map(|(text, _)| text)
    }

    #[test]
    fn a_loss_is_never_called_a_gain() {
        assert_eq!(result(0.0, 0.0), None);
        assert_eq!(result(-0.010, -0.011), Some("loss in both sets"));
        assert_eq!(result(-0.007, 0.0), Some("loss for queries in the rewrite prompt"));
        assert_eq!(result(0.0, -0.01), Some("loss for held-out queries"));
        assert_eq!(result(0.01, -0.01), Some("gain only for queries in the rewrite prompt"));
        assert_eq!(result(0.02, 0.0), Some("held-out queries gain nothing"));
        assert!(result(0.03, 0.02).unwrap().starts_with("the gain holds"));
        assert!(result(0.2, -0.01).unwrap().starts_with("overlapping scope"));
    }
}
