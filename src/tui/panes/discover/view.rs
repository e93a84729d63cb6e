//! The layout of Discover at each size.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::rows::Item;
use super::{Discover, Focus, FrameAreas};
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::painter::Painter;
use crate::widgets::rule::{Joint, Title, divider};
use skills_discovery::Fit;

/// Below this width the parts share one column.
const FOLD: u16 = 80;
/// Minimum width for blank rows, and for contributions beneath the words.
const WIDE: u16 = 100;
/// Minimum height for a request of more than three rows: that of the pane on a screen of 30 rows.
const TALL_BAND: u16 = 27;
/// Minimum width for a separate column for the nearest rival.
const THREE: u16 = 160;

/// What this ranking is, shown on every screen.
pub(super) const DISCLAIMER: &str = "router ranking; a client's model may differ";

/// Returns the disclaimer that fits a width.
pub(super) fn disclaimer(available: u16) -> &'static str {
    if usize::from(available) < DISCLAIMER.len() { "a router's ranking, not a model's" } else { DISCLAIMER }
}

impl Discover {
    pub(super) fn view(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        self.drawn = FrameAreas { folded: area.width < FOLD, ..FrameAreas::default() };
        if let Some(Item::Hit(place)) = self.item() {
            self.want_place(place);
        }
        if area.width < FOLD {
            self.folded(area, buf, cx);
        } else if cx.full_screen {
            self.one_part(area, buf, cx);
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
        let verdict = if wide { Vec::new() } else { self.verdict_lines(area.width, area.height, cx) };
        // A long verdict grows into the space of a high screen.
        let band_rows = if area.height >= TALL_BAND { 5 } else { 3 };
        let band_height = self.status_lines(right.width, band_rows, cx).len().max(3) as u16;
        let top = if wide { 1 + band_height } else { 2 + verdict.len() as u16 };
        let body = Rect { y: area.y + top, height: area.height.saturating_sub(top), ..area };

        let title = self.options_title(area.width >= WIDE, self.focused(Focus::Intent, cx));
        title.draw(&mut Painter::new(buf, cx), area.x, area.y, area.width);
        if wide {
            let band = Rect { y: area.y + 1, width: left, height: band_height, ..area };
            self.draw_intent(band, 1, buf, cx);
            let status = Rect { y: area.y + 1, height: band_height, ..right };
            self.draw_status(status, buf, cx);
        } else {
            self.draw_intent(Rect { y: area.y + 1, height: 1, ..area }, 0, buf, cx);
            self.draw_verdict(&verdict, Rect { y: area.y + 2, height: top - 2, ..area }, buf, cx);
        }

        let results = Rect { width: left, ..body };
        let (middle, third) = self.third_column(area.width, right, body);
        self.drawn.third = third.is_some();
        self.draw_results(results, buf, cx);
        self.draw_why(middle, wide, buf, cx);
        let mut joints = vec![(
            body.y,
            Joint::Cross { left: self.focused(Focus::Results, cx), right: self.focused(Focus::Why, cx) },
        )];
        let mut line = Rect { x: area.x + left, width: 1, ..body };
        if wide {
            joints.push((area.y, Joint::Top { heavy: self.focused(Focus::Intent, cx) }));
            line = Rect { y: area.y, height: area.height, ..line };
        } else {
            let heavy = self.focused(Focus::Results, cx) || self.focused(Focus::Why, cx);
            joints = vec![(body.y, Joint::Top { heavy })];
        }
        divider(&mut Painter::new(buf, cx), line, &joints);
        if let Some(third) = third {
            self.draw_against(third, buf, cx);
            let heavy = self.focused(Focus::Why, cx);
            let joint = if heavy { Joint::Cross { left: true, right: false } } else { Joint::Top { heavy } };
            let line = Rect { x: third.x - 1, width: 1, ..body };
            divider(&mut Painter::new(buf, cx), line, &[(body.y, joint)]);
        }
    }

    fn third_column(&self, width: u16, right: Rect, body: Rect) -> (Rect, Option<Rect>) {
        let right = Rect { y: body.y, height: body.height, ..right };
        let has_rival =
            self.asking.shown().is_some_and(|s| s.answer.results.len() > 1) && self.hit().is_some();
        if width < THREE || !has_rival {
            return (right, None);
        }
        let third = right.width * 9 / 20;
        let middle = Rect { width: right.width - third - 1, ..right };
        (middle, Some(Rect { x: middle.right() + 1, width: third, ..right }))
    }

    /// Draws one column: the request, the verdict, and the list or the explanation.
    fn folded(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        self.draw_intent(Rect { height: 1, ..area }, 0, buf, cx);
        let verdict = self.verdict_lines(area.width, area.height, cx);
        let top = 1 + verdict.len() as u16;
        self.draw_verdict(&verdict, Rect { y: area.y + 1, height: top - 1, ..area }, buf, cx);
        let body = Rect { y: area.y + top, height: area.height.saturating_sub(top), ..area };
        if self.focus == Focus::Why {
            self.draw_why(body, false, buf, cx);
        } else {
            self.draw_results(body, buf, cx);
        }
    }

    /// Draws one part over the entire pane.
    fn one_part(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        let title = self.options_title(area.width >= WIDE, self.focused(Focus::Intent, cx));
        title.draw(&mut Painter::new(buf, cx), area.x, area.y, area.width);
        self.draw_intent(Rect { y: area.y + 1, height: 1, ..area }, 0, buf, cx);
        let verdict = self.verdict_lines(area.width, area.height, cx);
        let top = 2 + verdict.len() as u16;
        self.draw_verdict(&verdict, Rect { y: area.y + 2, height: top - 2, ..area }, buf, cx);
        let body = Rect { y: area.y + top, height: area.height.saturating_sub(top), ..area };
        if self.focus == Focus::Why {
            self.draw_why(body, true, buf, cx);
        } else {
            self.draw_results(body, buf, cx);
        }
    }

    /// Returns the title above the request: the options.
    fn options_title(&self, long: bool, focused: bool) -> Title {
        let mut words = vec![self.options.policy.to_string()];
        words.push(self.options.role.map_or_else(|| "any role".to_owned(), |r| format!("only {r} skills")));
        match &self.options.domain {
            Some(domain) => words.push(format!("domain {}", crate::widgets::text_width::shown(domain))),
            None if long => words.push("any domain".to_owned()),
            None => {}
        }
        words.push(if self.options.with_body { "with body" } else { "without body" }.to_owned());
        Title::of("Request", focused).note(words.join(" · "))
    }
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
