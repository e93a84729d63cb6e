//! Draws the pane without runs: its purpose, how to start, and the sandbox of scripts on this machine.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::run_list::RunList;
use super::view::outdated_line;
use crate::action::{Action, Context};
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::painter::Painter;
use crate::widgets::rich::{RichLine, Seg};
use crate::widgets::rule::Title;
use crate::widgets::text_width::shown;
use crate::widgets::wrap::wrap;

/// Draws the pane without runs.
pub(super) fn draw(list: &mut RunList, isolation: Option<&str>, area: Rect, buf: &mut Buffer, cx: &Draw<'_>) {
    let note = match (&list.runs.error, list.runs.loaded) {
        (Some(_), _) => "cannot be read",
        (None, true) => "none",
        (None, false) => "reading",
    };
    let mut painter = Painter::new(buf, cx);
    Title::of("Runs", cx.focused).note(note).draw(&mut painter, area.x, area.y, area.width);
    list.drawn.list = area;
    if let Some(outage) = &list.runs.outage {
        let row = Rect { y: area.y + 1, height: 1, ..area };
        outdated_line(&outage.texts(None, cx.clock_ms), row, &mut painter);
    }
    if let Some(error) = &list.runs.error {
        painter.put(area.x + 3, area.y + 2, painter.glyphs.bad, Role::Danger, 1);
        let segs = [Seg::new(shown(&error.message), Role::Text)];
        for (segs, y) in wrap(&segs, area.width.saturating_sub(8)).into_iter().zip(area.y + 2..) {
            painter.line(area.x + 5, y, &RichLine::from_segs(segs), area.width.saturating_sub(8));
        }
        return;
    }
    if !list.runs.loaded {
        return;
    }
    let name = |action| painter.key_word(action, &[Context::Runs]);
    let key = |action, what: &str| {
        RichLine::from_segs(vec![
            Seg::new(format!("{:>3}  ", name(action)), Role::Key),
            Seg::new(what.to_owned(), Role::Text),
        ])
    };
    let mut lines = vec![
        RichLine::of(format!("no runs yet: press {} to launch one", name(Action::Launch)), Role::Strong),
        RichLine::default(),
        RichLine::of("A run executes the contract of a skill, step by step. Runs that wait", Role::Muted),
        RichLine::of("for you are listed first and continue only after your approval.", Role::Muted),
        RichLine::default(),
        key(Action::Launch, "select a skill with a contract and launch it"),
        key(Action::GoBrowse, "view its contract in Browse"),
        key(Action::GoAttach, "attach a sidecar to a file or a task"),
    ];
    if let Some(isolation) = isolation.map(shown) {
        lines.push(RichLine::default());
        let segs = [Seg::new("isolation  ", Role::Muted), Seg::new(isolation, Role::Text)];
        lines.extend(wrap(&segs, area.width.saturating_sub(4)).into_iter().map(RichLine::from_segs));
    }
    let top = area.y + 1 + area.height.saturating_sub(lines.len() as u16 + 1) / 3;
    for (line, y) in lines.iter().zip(top..area.bottom()) {
        painter.line(area.x + 3, y, line, area.width.saturating_sub(4));
    }
}
