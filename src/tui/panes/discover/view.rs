//! The layout of Discover at each size.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::ask::Options;
use super::rows::Item;
use super::why_view::WhyLayout;
use super::{Discover, Focus, comparison_view, intent_view, results_view, why_view};
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::{BorderJunction, Painter, Title, divider};
use skills_discovery::Fit;

/// Below this width the parts share one column.
const FOLD: u16 = 80;
/// Minimum width for blank rows, and for contributions beneath the words.
const WIDE: u16 = 100;
/// Minimum height for a request of more than three rows: that of the pane on a screen of 30 rows.
const TALL_BAND: u16 = 27;
/// Minimum width for a separate column for the other result.
const THREE: u16 = 160;

/// What this ranking is, shown on every screen.
pub(super) const RANKING_DISCLAIMER: &str = "Ranked by Skill Workbench; models may differ";

/// Returns the disclaimer that fits a width.
pub(super) fn disclaimer(available: u16) -> &'static str {
    if usize::from(available) < RANKING_DISCLAIMER.len() {
        "ranked by Skill Workbench"
    } else {
        RANKING_DISCLAIMER
    }
}

impl Discover {
    pub(super) fn view(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        self.list.start_frame(area.width < FOLD);
        (self.form.area, self.why_area) = (Rect::ZERO, Rect::ZERO);
        if let Some(Item::Hit(place)) = self.list.item() {
            self.list.want_place(place, &self.asking);
        }
        if area.width < FOLD {
            self.one_part(area, false, buf, cx);
        } else if cx.full_screen {
            let title = options_title(&self.asking.options, area.width, self.focused(Focus::Intent, cx));
            title.draw(&mut Painter::new(buf, cx), area.x, area.y, area.width);
            let below = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
            self.one_part(below, true, buf, cx);
        } else {
            self.columns(area, buf, cx);
        }
        if cx.glyphs.ascii {
            only_ascii(area, buf);
        }
    }

    fn focused(&self, part: Focus, cx: &Draw<'_>) -> bool {
        cx.focused && self.focus == part
    }

    fn columns(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        let wide = area.width >= WIDE && area.height >= 24;
        let share = if area.width >= THREE {
            area.width * 11 / 30
        } else if wide {
            area.width / 2
        } else {
            area.width * 27 / 50
        };
        let left = share.saturating_add_signed(cx.split).clamp(30, area.width.saturating_sub(32));
        let right = Rect { x: area.x + left + 1, width: area.width - left - 1, ..area };
        let title = options_title(&self.asking.options, area.width, self.focused(Focus::Intent, cx));
        title.draw(&mut Painter::new(buf, cx), area.x, area.y, area.width);
        let top = if wide {
            // A long verdict grows into the space of a high screen.
            let rows = if area.height >= TALL_BAND { 5 } else { 3 };
            let rows = intent_view::status_lines(&self.asking, right.width, rows, cx).len().max(3) as u16;
            self.draw_intent(Rect { y: area.y + 1, width: left, height: rows, ..area }, buf, cx);
            let status = Rect { y: area.y + 1, height: rows, ..right };
            intent_view::draw_status(&self.asking, status, buf, cx);
            1 + rows
        } else {
            1 + self.draw_request(Rect { y: area.y + 1, ..area }, area.height, buf, cx)
        };
        let body = Rect { y: area.y + top, height: area.height.saturating_sub(top), ..area };

        let results = Rect { width: left, ..body };
        let has_other =
            self.asking.shown().is_some_and(|s| s.answer.results.len() > 1) && self.list.hit().is_some();
        let (middle, third) =
            third_column(area.width, has_other, Rect { y: body.y, height: body.height, ..right });
        self.draw_results(results, buf, cx);
        self.draw_why(middle, wide, third.is_some(), buf, cx);
        let (left_heavy, right_heavy) = (self.focused(Focus::Results, cx), self.focused(Focus::Why, cx));
        let (line, joints) = if wide {
            let cross = BorderJunction::Cross { left: left_heavy, right: right_heavy };
            let heavy = self.focused(Focus::Intent, cx);
            (area, vec![(body.y, cross), (area.y, BorderJunction::Top { heavy })])
        } else {
            (body, vec![(body.y, BorderJunction::Top { heavy: left_heavy || right_heavy })])
        };
        let line = Rect { x: area.x + left, width: 1, ..line };
        divider(&mut Painter::new(buf, cx), line, &joints);
        if let Some(third) = third {
            comparison_view::draw(&self.list, &self.asking, &mut self.measured, third, buf, cx);
            let cross = BorderJunction::Cross { left: true, right: false };
            let joint = if right_heavy { cross } else { BorderJunction::Top { heavy: false } };
            let line = Rect { x: third.x - 1, width: 1, ..body };
            divider(&mut Painter::new(buf, cx), line, &[(body.y, joint)]);
        }
    }

    /// Draws one column: the request, the verdict, and the list or the explanation.
    fn one_part(&mut self, area: Rect, airy: bool, buf: &mut Buffer, cx: &mut Draw<'_>) {
        let top = self.draw_request(area, area.height + u16::from(airy), buf, cx);
        let body = Rect { y: area.y + top, height: area.height.saturating_sub(top), ..area };
        if self.focus == Focus::Why {
            self.draw_why(body, airy, false, buf, cx);
        } else {
            self.draw_results(body, buf, cx);
        }
    }

    /// Draws the request in one row and the verdict below it; returns the number of rows. `height` is that of the pane.
    fn draw_request(&mut self, area: Rect, height: u16, buf: &mut Buffer, cx: &mut Draw<'_>) -> u16 {
        self.draw_intent(Rect { height: 1, ..area }, buf, cx);
        let verdict = intent_view::verdict_lines(&self.asking, area.width, height, cx);
        let rows = verdict.len() as u16;
        let below = Rect { y: area.y + 1, height: rows, ..area };
        intent_view::draw_verdict(&self.asking, &verdict, below, buf, cx);
        1 + rows
    }

    fn draw_intent(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        let focused = self.focused(Focus::Intent, cx);
        intent_view::draw(&mut self.form, &self.asking, self.list.hit(), focused, area, buf, cx);
    }

    fn draw_results(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        results_view::draw(&mut self.list, &self.asking, self.focus, area, buf, cx);
        if self.asking.shown().is_none() {
            let below = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
            let skills = self.list.catalog.entries.len();
            let mut painter = Painter::new(buf, cx);
            results_view::draw_no_request(&self.asking, &self.form.history, skills, below, &mut painter);
        }
    }

    fn draw_why(&mut self, area: Rect, airy: bool, with_other: bool, buf: &mut Buffer, cx: &Draw<'_>) {
        self.why_area = area;
        let look = WhyLayout { airy, with_other, focused: self.focused(Focus::Why, cx) };
        why_view::draw(&mut self.list, &self.asking, &mut self.measured, look, area, buf, cx);
    }
}

/// Divides the right part if there is another result and enough space.
fn third_column(width: u16, has_other: bool, right: Rect) -> (Rect, Option<Rect>) {
    if width < THREE || !has_other {
        return (right, None);
    }
    let third = right.width * 9 / 20;
    let middle = Rect { width: right.width - third - 1, ..right };
    (middle, Some(Rect { x: middle.right() + 1, width: third, ..right }))
}

/// Returns the title above the request: the options.
fn options_title(options: &Options, width: u16, focused: bool) -> Title {
    let mut words = vec![options.policy.to_string()];
    words.push(options.role.map_or_else(|| "any role".to_owned(), |r| format!("only {r} skills")));
    match &options.domain {
        Some(domain) => words.push(format!("domain {}", crate::widgets::text_width::shown(domain))),
        None if width >= WIDE => words.push("any domain".to_owned()),
        None => {}
    }
    words.push(if options.with_body { "with body" } else { "without body" }.to_owned());
    Title::of("Request", focused).note(words.join(" · "))
}

/// Replaces typographic characters of sentences and descriptions by ASCII ones.
fn only_ascii(area: Rect, buf: &mut Buffer) {
    for place in area.positions() {
        let Some(cell) = buf.cell_mut(place) else { continue };
        let ascii = match cell.symbol() {
            "“" | "”" | "„" => "\"",
            "‘" | "’" => "'",
            "·" | "…" => ".",
            "•" => "*",
            "–" | "—" | "−" => "-",
            _ => continue,
        };
        cell.set_symbol(ascii);
    }
}

/// Returns the glyph for how well the first result fits, and its role.
pub(super) fn fit_sign(fit: Fit, cx: &Draw<'_>) -> (&'static str, Role) {
    match fit {
        Fit::High | Fit::Medium => (cx.glyphs.set, Role::Success),
        Fit::Low => (cx.glyphs.set, Role::Warning),
        Fit::None => (cx.glyphs.pending, Role::Waiting),
    }
}
