//! Draws the list: groups, runs in columns, the filter, and the number of older runs. Only visible rows are built.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Focus;
use super::list::{Group, Row, short_labels, state_label, tail};
use super::run_list::RunList;
use super::table_view::{deadline_role, draw_table};
use super::view::{outdated_line, run_name, spinner};
use super::views::draw_tabs;
use crate::action::{Action, Context};
use crate::glyphs::Glyphs;
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::format::count;
use crate::widgets::painter::{Painter, fade};
use crate::widgets::relative_time::age;
use crate::widgets::rich::{RichLine, Seg};
use crate::widgets::rule::Title;
use crate::widgets::text_width::{cells, cut_end, shown};
use crate::widgets::wrap::wrap_to;
use skills_api::{Deadline, distinguishing_texts};
use skills_config::RunSettings;
use skills_model::{RunState, step_label};
use skills_store::RunRecord;

/// Maximum number of rows that explain why a part of the list is missing.
const ERROR_ROWS: u16 = 4;
/// Maximum number of rows of the problem of a filter.
const MAX_PROBLEM_ROWS: usize = 5;

/// Columns of a row: the first cell and the width of each, 0 if there is no space for it.
struct Columns {
    /// Without a text for the state it extends to the next column.
    name: (u16, u16),
    id: u16,
    progress: Option<u16>,
    step: (u16, u16),
    word: (u16, u16),
    age_end: u16,
    /// If a name that does not fit extends over the text for the state: the width of texts that can be cut.
    words: Option<u16>,
}

/// Maximum width of the text for a state; a third of the name in a wide list.
const MAX_WORD: u16 = 15;
/// Minimum width of a text for a state next to a long name, and of a name next to a text that is not truncated.
const MIN_WORD: u16 = 6;
const MIN_NAME: u16 = 24;

impl Columns {
    /// Computes the columns. Titles differ at their ends: if there are any, or space is short, they take the width of
    /// the step, and that of the text for a state, of which the longest that can be cut has `longest` cells. Progress has
    /// at most `through` cells.
    fn of(area: Rect, has_titles: bool, longest: u16, through: u16) -> Self {
        let through = through.max(4) + 1;
        let age_end = area.right().saturating_sub(1);
        let end = age_end.saturating_sub(6);
        let x = area.x + 5;
        let inner = end.saturating_sub(x);
        if has_titles || inner < 36 {
            let id = end.saturating_sub(4);
            let progress = (inner >= 48).then(|| id.saturating_sub(through));
            let end = progress.unwrap_or(id);
            let name = end.saturating_sub(x + 1);
            let words = Some(longest.min(MAX_WORD.max(name / 3)).min(name / 2));
            let (step, word) = ((end, 0), (end, 0));
            return Self { name: (x, name), id, progress, step, word, age_end, words };
        }
        // Name, id, progress, step, state; the step is truncated first, then the state.
        let fixed = 5 + through + 1;
        let word = if inner >= 46 { 13 } else { 12 };
        let step = if inner >= 42 { (inner - fixed - word) * 2 / 5 } else { 0 };
        let gap = u16::from(step > 0);
        let name = inner.saturating_sub(fixed + word + step + gap);
        let id = x + name + 1;
        let progress = id + 5;
        let step_at = progress + through;
        let word_at = step_at + step + gap;
        Self {
            name: (x, name),
            id,
            progress: Some(progress),
            step: (step_at, step),
            word: (word_at, end.saturating_sub(word_at)),
            age_end,
            words: None,
        }
    }

    /// Returns the width of a name, the first cell and width of the text for a state, and which of its forms of these
    /// widths fits. A text with one form is cut for the name.
    fn fit(&self, name: u16, forms: &[u16]) -> (u16, (u16, u16), usize) {
        let (x, available) = self.name;
        let Some(width) = self.words else { return (available, self.word, 0) };
        let end = x + available;
        let at_end = |width: u16, form: usize| {
            (available.saturating_sub(width + 1), (end.saturating_sub(width), width), form)
        };
        match forms {
            [] | [0] => (available, (x, 0), 0),
            [_] => {
                let name_end = x + name.min(available) + 1;
                if name_end + width <= end {
                    return at_end(width, 0);
                }
                let left = end.saturating_sub(name_end);
                if left < MIN_WORD { (available, (name_end, 0), 0) } else { (name, (name_end, left), 0) }
            }
            forms => {
                let fits = |name: u16| forms.iter().position(|width| name + 1 + width <= available);
                let form = fits(name).or_else(|| fits(name.min(MIN_NAME))).unwrap_or(forms.len() - 1);
                at_end(forms[form], form)
            }
        }
    }
}

/// Draws the list, or the table; runs that cannot be read now are dimmed.
pub(super) fn draw(list: &mut RunList, focus: Focus, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
    let window = draw_above(list, focus, area, buf, cx);
    draw_rows(list, focus, window, buf, cx);
    if list.runs.are_stale() {
        fade(window, buf);
    }
}

/// Draws what is above the rows; returns the area below.
fn draw_above(list: &mut RunList, focus: Focus, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) -> Rect {
    let focused = cx.focused && focus != Focus::Detail;
    list_title(list, focused, area.width, cx).draw(&mut Painter::new(buf, cx), area.x, area.y, area.width);
    let mut y = area.y + 1;
    if area.height >= 12 {
        draw_tabs(list, (focus, false), Rect { y, height: 1, ..area }, buf, cx);
        y += 1;
    }
    if focus == Focus::Filter || !list.filter.field.is_empty() {
        draw_filter(list, focus, Rect { y, height: 1, ..area }, buf, cx);
        y += 1;
        if focus == Focus::Filter || list.filter.is_invalid() {
            let (hint, wrong) = list.filter.hint(&list.runs.known, focus == Focus::Filter);
            let mut painter = Painter::new(buf, cx);
            let role = if wrong { Role::Danger } else { Role::Muted };
            let available = area.width.saturating_sub(4);
            let ellipsis = painter.glyphs.ellipsis;
            if wrong && area.height >= 12 {
                for line in wrap_to(&[Seg::new(hint, role)], available, MAX_PROBLEM_ROWS, ellipsis) {
                    painter.line(area.x + 3, y, &line, available);
                    y += 1;
                }
            } else {
                painter.put(area.x + 3, y, &cut_end(&hint, available, ellipsis), role, available);
                y += 1;
            }
        }
    }
    if let Some(outage) = &list.runs.outage {
        if list.runs.are_stale() {
            fade(Rect { height: y - area.y, ..area }, buf);
        }
        let row = Rect { y, height: 1, ..area };
        outdated_line(&outage.texts(None, cx.clock_ms), row, &mut Painter::new(buf, cx));
        y += 1;
    }
    let mut window = Rect { y, height: area.bottom().saturating_sub(y), ..area };
    if let Some(error) = list.runs.own_error().filter(|_| window.height > 3 * ERROR_ROWS) {
        window.height -= ERROR_ROWS;
        let below = Rect { y: window.bottom(), height: ERROR_ROWS, ..area };
        trouble(&error.message, below, &mut Painter::new(buf, cx));
    }
    window
}

fn draw_rows(list: &mut RunList, focus: Focus, window: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
    let focused = cx.focused && focus != Focus::Detail;
    if list.is_table() {
        draw_table(list, focused, window, buf, cx);
        return;
    }
    list.drawn.list = window;
    let height = usize::from(window.height);
    let is_heading = |at: usize| matches!(list.rows.get(at), Some(Row::Heading(_)));
    list.scroll.fit(list.rows.len(), height, list.follow, is_heading);
    let in_sight = list.rows.iter().skip(list.scroll.offset).take(height);
    let runs: Vec<&RunRecord> = in_sight.filter_map(|row| list.runs.known.get(row.run()?)).collect();
    let has_titles = runs.iter().any(|run| run.title().is_some());
    let by_deadline =
        runs.iter().any(|run| Group::of(run) == Group::WaitingForApproval && run.expires_ms.is_some());
    let mut distinctions = distinguishing_texts(&runs, "  ").into_iter();
    let now_ms = cx.clock_ms;
    let can_be_cut = runs.iter().filter(|run| short_labels(run, now_ms).is_empty());
    let longest = can_be_cut.map(|run| cells(&word_of(run, now_ms).0)).max().unwrap_or(0);
    let through = runs.iter().map(|run| cells(&progress_of(run))).max().unwrap_or(0);
    let columns = Columns::of(window, has_titles, longest, through);
    let mut painter = Painter::new(buf, cx);
    if list.rows.is_empty() {
        let text = painter.with_keys(&list.filter.no_matches(), &[Context::Runs]);
        painter.put(window.x + 3, window.y, &text, Role::Muted, window.width - 3);
    }
    let turning = spinner(cx);
    let mut older_in_sight = false;
    for place in 0..height.min(list.rows.len().saturating_sub(list.scroll.offset)) {
        let index = list.scroll.offset + place;
        let row = Rect { y: window.y + place as u16, height: 1, ..window };
        match list.rows[index].clone() {
            Row::Blank => {}
            Row::Heading(group) => heading(group, by_deadline, row, &mut painter),
            Row::Older(older) => {
                older_in_sight = true;
                let dot = painter.glyphs.dot;
                let older = count(usize::try_from(older).unwrap_or(usize::MAX));
                let key = |action| painter.key_word(action, &[Context::Runs]);
                let (filter, launch) = (key(Action::Filter), key(Action::Launch));
                let text = format!("{older} older {dot} {filter} filters {dot} {launch} launches");
                painter.put(row.x + 3, row.y, &text, Role::Muted, row.width.saturating_sub(4));
            }
            Row::Run(id) => {
                let Some(run) = list.runs.known.get(&id).cloned() else { continue };
                let distinction = distinctions.next().unwrap_or_default();
                list.drawn.rows.push((row, index));
                list.drawn.since.push(since(&run));
                let at_cursor = index == list.scroll.cursor;
                if run.state == RunState::WaitingForHuman {
                    painter.band(row, Role::WaitingBand);
                }
                if at_cursor {
                    painter.band(row, if focused { Role::Selection } else { Role::SelectionWeak });
                    let role = if focused { Role::Gutter } else { Role::Muted };
                    painter.put(row.x + 1, row.y, painter.glyphs.gutter, role, 1);
                }
                if list.marked.contains_key(&id) {
                    painter.put(row.x + 2, row.y, painter.glyphs.set, Role::Focus, 1);
                }
                draw_run(
                    &list.settings,
                    (&run, &distinction),
                    at_cursor,
                    row.y,
                    &columns,
                    (turning, cx.clock_ms),
                    &mut painter,
                );
            }
        }
    }
    // Prefetch the next page when the last rows are visible.
    let near_end = list.scroll.offset + 2 * height >= list.rows.len();
    if older_in_sight || (near_end && list.filter.is_empty()) {
        list.wanted.extend(list.runs.feeds.older());
    }
}

fn list_title(list: &RunList, focused: bool, width: u16, cx: &Draw<'_>) -> Title {
    let number = |count: u64| crate::widgets::format::count(usize::try_from(count).unwrap_or(0));
    let waiting = list.runs.count(&[RunState::WaitingForHuman]);
    let running = list.runs.count(&[RunState::Running, RunState::Replaying]);
    let dot = cx.glyphs.dot;
    let mut title = Title::of("Runs", focused);
    let mut segs = Vec::new();
    if !list.marked.is_empty() {
        segs.push(Seg::new(format!("{} marked", number(list.marked.len() as u64)), Role::Focus));
        segs.push(Seg::new(format!(" {dot} "), Role::Muted));
    }
    if waiting > 0 {
        let text = format!("{}{} to approve", cx.glyphs.waiting, number(waiting));
        segs.push(Seg::new(text, Role::Waiting));
        segs.push(Seg::new(format!(" {dot} "), Role::Muted));
    }
    if width >= 46 || waiting == 0 {
        segs.push(Seg::new(format!("{} running {dot} ", number(running)), Role::Muted));
    }
    segs.push(Seg::new(format!("{} total", number(list.runs.all())), Role::Muted));
    title.note = RichLine::from_segs(segs);
    title
}

fn draw_filter(list: &mut RunList, focus: Focus, row: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
    let mut painter = Painter::new(buf, cx);
    painter.band(row, Role::Field);
    painter.put(row.x + 3, row.y, "/", Role::Strong, 1);
    let note = match_summary(list);
    let start = painter.right(row.right().saturating_sub(1), row.y, &note, Role::Muted);
    let line = Rect { x: row.x + 5, width: start.saturating_sub(row.x + 6), ..row };
    list.drawn.filter = row;
    let style = cx.theme.style(Role::Field).patch(cx.theme.style(Role::Strong));
    let cursor = list.filter.field.draw(line, buf, style, &[]);
    if cx.focused && focus == Focus::Filter {
        cx.cursor = cursor;
    }
}

fn draw_run(
    settings: &RunSettings,
    (run, distinction): (&RunRecord, &str),
    selected: bool,
    y: u16,
    columns: &Columns,
    (turning, now_ms): (&'static str, i64),
    painter: &mut Painter<'_>,
) {
    let group = Group::of(run);
    let (sign, role) = state_sign(run, painter.glyphs, turning);
    painter.put(columns.name.0 - 2, y, sign, role, 1);
    let quiet = group == Group::Ended && !selected;
    let name_role = match (selected || group == Group::WaitingForApproval, quiet) {
        (true, _) => Role::Strong,
        (_, true) => Role::Muted,
        _ => Role::Text,
    };
    let (step_at, step_room) = columns.step;
    let (word, asks) = if step_room > 0 { state_label(run, now_ms) } else { word_of(run, now_ms) };
    let title = shown(run.title_or_skill());
    let mut forms = vec![word];
    forms.extend(short_labels(run, now_ms));
    let widths: Vec<u16> = forms.iter().map(|form| cells(form)).collect();
    let wanted = cells(&title) + if distinction.is_empty() { 0 } else { 2 + cells(distinction) };
    let (name_room, (word_at, word_room), form) = columns.fit(wanted, &widths);
    let word = forms.swap_remove(form);
    let name = run_name(&title, distinction, name_room, painter.glyphs.ellipsis);
    painter.put(columns.name.0, y, &name, name_role, name_room);
    painter.put(columns.id, y, &tail(&run.id), Role::Muted, 4);
    if let Some(progress) = columns.progress {
        painter.put(progress, y, &progress_of(run), Role::Muted, u16::MAX);
    }
    let step_role = if quiet { Role::Muted } else { Role::Text };
    let step = cut_end(&step_of(run), step_room, painter.glyphs.ellipsis).into_owned();
    painter.put(step_at, y, &step, step_role, step_room);
    let word_role = match (run.expires_ms.filter(|_| run.state.is_waiting() && asks), asks) {
        (Some(at), _) => match deadline_role(settings, Deadline::of(Some(at), now_ms)) {
            Role::Text => Role::Waiting,
            urgent => urgent,
        },
        (None, true) => Role::Waiting,
        (None, false) => Role::Muted,
    };
    painter.put(word_at, y, &cut_end(&word, word_room, painter.glyphs.ellipsis), word_role, word_room);
    let age_role = if quiet { Role::Muted } else { Role::Text };
    painter.right(columns.age_end, y, &age(now_ms - since(run)), age_role);
}
/// Describes how many runs match the filter, and how many of them are loaded.
fn match_summary(list: &RunList) -> String {
    if list.filter.is_invalid() {
        return "not applied".to_owned();
    }
    let rows = list.listed().count();
    let loaded = count(rows);
    if !list.runs.feeds.lacks_matches() {
        let all = count(usize::try_from(list.runs.all()).unwrap_or(usize::MAX));
        return format!("{loaded} of {all}");
    }
    match list.views.summaries.matches(list.filter.in_force(), rows as u64) {
        Some(total) => format!("first {loaded} of {total} matches"),
        None if list.runs.feeds.is_finding() => format!("{loaded}, loading"),
        None => format!("first {loaded} matches, more exist"),
    }
}

/// Returns the step of a run that has not ended or failed.
fn step_of(run: &RunRecord) -> String {
    let ended = matches!(run.state, RunState::Completed | RunState::Canceled);
    let step = run.step.as_deref().filter(|_| !ended);
    step.map(|step| shown(step_label(step))).unwrap_or_default()
}

/// Returns the text for a state, or the step if there is none and the step has no column; and whether it requires a
/// person.
fn word_of(run: &RunRecord, now_ms: i64) -> (String, bool) {
    let (word, asks) = state_label(run, now_ms);
    if word.is_empty() && run.state != RunState::WaitingForHuman {
        return (step_of(run), false);
    }
    (word, asks)
}

/// Draws why a part of the list is missing, below the loaded part.
fn trouble(message: &str, area: Rect, painter: &mut Painter<'_>) {
    let text = format!("some runs cannot be read: {}", shown(message));
    let lines = wrap_to(
        &[Seg::new(text, Role::Text)],
        area.width.saturating_sub(6),
        ERROR_ROWS as usize,
        painter.glyphs.ellipsis,
    );
    painter.put(area.x + 3, area.y, painter.glyphs.bad, Role::Danger, 1);
    for (line, y) in lines.iter().zip(area.y..) {
        painter.line(area.x + 5, y, line, area.width.saturating_sub(6));
    }
}

/// Returns the start of the age in the list: a running run's launch, others' last change.
pub(super) fn since(run: &RunRecord) -> i64 {
    if run.state.is_active() { run.created_ms } else { run.since_ms }
}

/// Returns glyph and role of a run's state.
pub fn state_sign(run: &RunRecord, glyphs: &Glyphs, turning: &'static str) -> (&'static str, Role) {
    match run.state {
        RunState::Pending => (glyphs.pending, Role::Muted),
        RunState::Running => (turning, Role::Info),
        RunState::Replaying => (glyphs.replaying, Role::Info),
        RunState::WaitingForHuman => (glyphs.waiting, Role::Waiting),
        RunState::WaitingForSignal => (glyphs.signal, Role::Text),
        RunState::Completed => (glyphs.ok, Role::Success),
        RunState::Failed => (glyphs.bad, Role::Danger),
        RunState::Canceled => (glyphs.canceled, Role::Muted),
    }
}

fn heading(group: Group, by_deadline: bool, row: Rect, painter: &mut Painter<'_>) {
    let order = if by_deadline { "deadline first" } else { "oldest first" };
    let role = if group == Group::WaitingForApproval { Role::Waiting } else { Role::Muted };
    let end = painter.put(row.x + 3, row.y, group.title(), role, row.width.saturating_sub(4));
    if group == Group::WaitingForApproval && row.right().saturating_sub(end) > cells(order) + 2 {
        painter.right(row.right().saturating_sub(1), row.y, order, Role::Muted);
    }
}

/// Returns how many steps have ended, and how many there are.
fn progress_of(run: &RunRecord) -> String {
    let (through, all) = run.progress;
    format!("{through}/{all}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_truncated_only_for_a_fixed_text() {
        let columns = Columns::of(Rect::new(0, 0, 46, 20), true, 12, 3);
        let (x, available) = columns.name;
        assert_eq!(available, 29);
        assert_eq!(columns.fit(25, &[0]), (29, (x, 0), 0), "nothing else");
        assert_eq!(columns.fit(18, &[9, 1]), (19, (x + 20, 9), 0), "both fit");
        assert_eq!(columns.fit(25, &[13, 6, 1]), (27, (x + 28, 1), 2), "only the shortest text fits");
        assert_eq!(columns.fit(40, &[13, 4]), (24, (x + 25, 4), 1), "the name is cut anyway");
        assert_eq!(columns.fit(14, &[12]), (16, (x + 17, 12), 0), "an error beside a short name");
        assert_eq!(columns.fit(20, &[12]), (20, (x + 21, 8), 0), "an error that is cut");
        assert_eq!(columns.fit(25, &[12]).0, 29, "an error without space");
    }
}
