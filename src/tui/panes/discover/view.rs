//! The layout of Discover at each size.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::ask::Options;
use super::rows::Item;
use super::why_view::WhyLayout;
use super::{Discover, Focus, against_view, intent_view, results_view, why_view};
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
        self.list.start_frame(area.width < FOLD);
        (self.form.area, self.why_area) = (Rect::ZERO, Rect::ZERO);
        if let Some(Item::Hit(place)) = self.list.item() {
            self.list.want_place(place, &self.asking);
        }
        if area.width < FOLD {
            self.one_part(area, false, buf, cx);
        } else if cx.full_screen {
            let title =
                options_title(&self.asking.options, area.width >= WIDE, self.focused(Focus::Intent, cx));
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
        let verdict = if wide {
            Vec::new()
        } else {
            intent_view::verdict_lines(&self.asking, area.width, area.height, cx)
        };
        // A long verdict grows into the space of a high screen.
        let band_rows = if area.height >= TALL_BAND { 5 } else { 3 };
        let band_height =
            intent_view::status_lines(&self.asking, right.width, band_rows, cx).len().max(3) as u16;
        let top = if wide { 1 + band_height } else { 2 + verdict.len() as u16 };
        let body = Rect { y: area.y + top, height: area.height.saturating_sub(top), ..area };

        let title = options_title(&self.asking.options, area.width >= WIDE, self.focused(Focus::Intent, cx));
        title.draw(&mut Painter::new(buf, cx), area.x, area.y, area.width);
        if wide {
            let band = Rect { y: area.y + 1, width: left, height: band_height, ..area };
            self.draw_intent(band, buf, cx);
            let status = Rect { y: area.y + 1, height: band_height, ..right };
            intent_view::draw_status(&self.asking, status, buf, cx);
        } else {
            self.draw_intent(Rect { y: area.y + 1, height: 1, ..area }, buf, cx);
            intent_view::draw_verdict(
                &self.asking,
                &verdict,
                Rect { y: area.y + 2, height: top - 2, ..area },
                buf,
                cx,
            );
        }

        let results = Rect { width: left, ..body };
        let (middle, third) = self.third_column(area.width, right, body);
        self.draw_results(results, buf, cx);
        self.draw_why(middle, wide, third.is_some(), buf, cx);
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
            against_view::draw(&self.list, &self.asking, &mut self.measured, third, buf, cx);
            let heavy = self.focused(Focus::Why, cx);
            let joint = if heavy { Joint::Cross { left: true, right: false } } else { Joint::Top { heavy } };
            let line = Rect { x: third.x - 1, width: 1, ..body };
            divider(&mut Painter::new(buf, cx), line, &[(body.y, joint)]);
        }
    }

    fn third_column(&self, width: u16, right: Rect, body: Rect) -> (Rect, Option<Rect>) {
        let right = Rect { y: body.y, height: body.height, ..right };
        let has_rival =
            self.asking.shown().is_some_and(|s| s.answer.results.len() > 1) && self.list.hit().is_some();
        if width < THREE || !has_rival {
            return (right, None);
        }
        let third = right.width * 9 / 20;
        let middle = Rect { width: right.width - third - 1, ..right };
        (middle, Some(Rect { x: middle.right() + 1, width: third, ..right }))
    }

    /// Draws one column: the request, the verdict, and the list or the explanation.
    fn one_part(&mut self, area: Rect, airy: bool, buf: &mut Buffer, cx: &mut Draw<'_>) {
        self.draw_intent(Rect { height: 1, ..area }, buf, cx);
        let verdict = intent_view::verdict_lines(&self.asking, area.width, area.height + u16::from(airy), cx);
        let top = 1 + verdict.len() as u16;
        intent_view::draw_verdict(
            &self.asking,
            &verdict,
            Rect { y: area.y + 1, height: top - 1, ..area },
            buf,
            cx,
        );
        let body = Rect { y: area.y + top, height: area.height.saturating_sub(top), ..area };
        if self.focus == Focus::Why {
            self.draw_why(body, airy, false, buf, cx);
        } else {
            self.draw_results(body, buf, cx);
        }
    }

    fn draw_intent(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        let focused = self.focused(Focus::Intent, cx);
        intent_view::draw(&mut self.form, &self.asking, self.list.hit(), focused, area, buf, cx);
    }

    fn draw_results(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        results_view::draw(&mut self.list, &self.asking, self.focus, area, buf, cx);
        if self.asking.shown().is_none() {
            let below = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
            let skills = self.list.catalogue.entries.len();
            let mut painter = Painter::new(buf, cx);
            results_view::draw_no_request(&self.asking, &self.form.history, skills, below, &mut painter);
        }
    }

    fn draw_why(&mut self, area: Rect, airy: bool, with_rival: bool, buf: &mut Buffer, cx: &Draw<'_>) {
        self.why_area = area;
        let look = WhyLayout { airy, with_rival, focused: self.focused(Focus::Why, cx) };
        why_view::draw(&mut self.list, &self.asking, &mut self.measured, look, area, buf, cx);
    }
}

/// Returns the title above the request: the options.
fn options_title(options: &Options, long: bool, focused: bool) -> Title {
    let mut words = vec![options.policy.to_string()];
    words.push(options.role.map_or_else(|| "any role".to_owned(), |r| format!("only {r} skills")));
    match &options.domain {
        Some(domain) => words.push(format!("domain {}", crate::widgets::text_width::shown(domain))),
        None if long => words.push("any domain".to_owned()),
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
