//! Draws the fill level of the client's catalog in the client's own unit, and how many skills it does not list and why.

use ratatui::layout::Rect;

use crate::command_lines::CommandLines;
use crate::theme::Role;
use crate::widgets::{Painter, cells, count, counted, shown};
use skills_api::{ComposedView, HiddenSkills};
use skills_session::{BudgetResult, Fill, Unit};

/// Minimum number of rows of the box below.
const SINCE: usize = 5;
/// Number of rows of counts that have precedence over that box.
const MIN_WINDOW_SIZE: usize = 4;

/// Draws it below the sizes by level; returns the row below.
pub(super) fn draw(composed: &ComposedView, area: Rect, painter: &mut Painter<'_>) -> u16 {
    let mut y = area.y;
    let available = area.width.saturating_sub(5);
    if let Some(fill) = &composed.allowance
        && y < area.bottom()
    {
        let over = fill.limit.is_some_and(|limit| fill.used > limit);
        let forms = filled(fill, painter.glyphs.warn);
        if let Some(forms) = forms.iter().find(|forms| cells(forms) <= available).or(forms.last()) {
            let role = if over { Role::Warning } else { Role::Text };
            painter.put_cut(area.x + 4, y, forms, role, available);
        }
        y += 1;
    }
    let made = composed.allowance.as_ref().map(|fill| fill.made).unwrap_or_default();
    let rows = counts(made, &composed.not_listed);
    // The box of changes since the last call keeps a few rows if there are enough for both.
    let free = usize::from(area.bottom().saturating_sub(y));
    let visible_rows = if free >= rows.len() + SINCE {
        rows.len()
    } else {
        free.saturating_sub(SINCE).max(free.min(MIN_WINDOW_SIZE))
    };
    for (head, why) in fitting(&rows, visible_rows, painter.commands) {
        let at = painter.put_cut(area.x + 4, y, &head, Role::Warning, available);
        let left = area.right().saturating_sub(at + 1);
        let why = shown(&why);
        painter.put_cut(at, y, fitting_reason(&why, left), Role::Muted, left);
        y += 1;
    }
    y
}

/// Returns a reason, without the setting or the folder if that would be cut.
fn fitting_reason(why: &str, available: u16) -> &str {
    let is_cut = |text: &str| cells(text) > available;
    let is_outside_code = |before: &&str| before.matches('`').count().is_multiple_of(2);
    let heads = why.match_indices(": ").filter_map(|(at, _)| why.get(..at));
    let short = heads.filter(|_| is_cut(why)).find(is_outside_code).unwrap_or(why);
    short.strip_prefix("nested ").filter(|_| is_cut(short)).unwrap_or(short)
}

/// Counts what the client does not show in full: the effects of its budget on the catalog, then the skills it does not
/// list, by reason.
fn counts(made: BudgetResult, not_listed: &[HiddenSkills]) -> Vec<(usize, String, String)> {
    let bound = [
        (made.omitted, "omitted", "budget exhausted"),
        (made.name_only, "name only", "budget or settings"),
        (made.shortened, "truncated", "over budget"),
        (made.beyond, "over budget", "truncation not published"),
        (made.other_text, "with other text", "no description found"),
        (made.unknown, "unknown", "may not be listed"),
    ];
    let bound = bound.into_iter().map(|(many, what, why)| (many, what, why.to_owned()));
    let unseen = not_listed.iter().map(|group| (group.skills, "not listed", group.why.clone()));
    let all = bound.chain(unseen).filter(|(many, ..)| *many > 0);
    all.map(|(many, what, why)| (many, format!("{} {what}: ", count(many)), why)).collect()
}

/// Returns as many counts as fit; the last row says how many more there are, and of how many skills.
fn fitting(rows: &[(usize, String, String)], most: usize, commands: &CommandLines) -> Vec<(String, String)> {
    let row = |(_, head, why): &(usize, String, String)| (head.clone(), why.clone());
    if rows.len() <= most || most == 0 {
        return rows.iter().take(most).map(row).collect();
    }
    let (first, rest) = rows.split_at(most - 1);
    let skills: usize = rest.iter().map(|(many, ..)| many).sum();
    let command = commands.completed("skills budget").unwrap_or_default();
    let more = (format!("+{} more, ", rest.len()), format!("{}: {command}", counted(skills, "skill")));
    first.iter().map(row).chain([more]).collect()
}

/// Returns a unit for display in little space.
pub(super) fn unit_label(unit: Unit) -> &'static str {
    match unit {
        Unit::Tokens => "tok",
        Unit::Characters => "chars",
    }
}

/// Formats the fill level, from the longest form to the shortest.
fn filled(fill: &Fill, warn: &str) -> Vec<String> {
    let Some(limit) = fill.limit else {
        if fill.unbounded {
            return vec!["budget: none".to_owned(), "no limit".to_owned()];
        }
        return vec!["budget: unknown".to_owned(), "no limit".to_owned()];
    };
    let unit = unit_label(fill.unit);
    let (used, of) = (count(fill.used), count(limit));
    let share = if limit == 0 { 0.0 } else { fill.used as f64 / limit as f64 * 100.0 };
    let mark = if fill.used > limit { format!("{warn} ") } else { String::new() };
    vec![
        format!("{mark}budget: {used} of {of} {unit}, {share:.0} %"),
        format!("{mark}{used} of {of} {unit}, {share:.0} %"),
        format!("{mark}{used} of {of} {unit}"),
        format!("{mark}{share:.0} % of {of}"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_in_the_clients_unit() {
        let codex = Fill { limit: Some(4_000), used: 3_998, unit: Unit::Tokens, ..Fill::default() };
        let forms = filled(&codex, "!");
        assert!(forms[0].ends_with(" tok, 100 %") && forms[0].starts_with("budget: 3"), "{forms:?}");
        let over = Fill { limit: Some(8_000), used: 90_000, ..Fill::default() };
        assert!(filled(&over, "!").iter().all(|forms| forms.starts_with("! ")));
        assert!(filled(&Fill::default(), "!")[0].contains("unknown"));
    }

    #[test]
    fn long_reasons_lose_their_details_first() {
        let why = "nested too deep: Claude Code loads only folders directly in ~/.claude/skills";
        assert_eq!(
            [80, 15, 14].map(|available| fitting_reason(why, available)),
            [why, "nested too deep", "too deep"]
        );
        let quoted = "an unquoted `: ` in a value";
        assert_eq!(fitting_reason(quoted, 20), quoted, "a quotation is not split");
    }

    #[test]
    fn counts_are_next_to_weights_and_hidden_rows_summed() {
        let made = BudgetResult { complete: 39, name_only: 116, omitted: 491, ..BudgetResult::default() };
        let group =
            |why: &str, skills| HiddenSkills { why: why.into(), cause: None, skills, names: Vec::new() };
        let rows = counts(made, &[group("too deep", 200), group("no description", 37), group("hidden", 8)]);
        let commands = CommandLines::default();
        let heads =
            |most| fitting(&rows, most, &commands).into_iter().map(|(head, _)| head).collect::<Vec<_>>();
        assert_eq!(
            heads(5),
            ["491 omitted: ", "116 name only: ", "200 not listed: ", "37 not listed: ", "8 not listed: "]
        );
        assert_eq!(heads(3), ["491 omitted: ", "116 name only: ", "+3 more, "]);
        assert_eq!(fitting(&rows, 3, &commands)[2].1, "245 skills: skills budget");
        assert!(heads(0).is_empty() && heads(1) == ["+5 more, "]);
    }
}
