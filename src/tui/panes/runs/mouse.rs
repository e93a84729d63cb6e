//! Clicks and the wheel in Runs, using the areas of the last frame.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use super::detail::DetailView;
use super::{Focus, Runs};
use crate::action::Action;
use crate::pane::{Effect, Pane as _};
use skills_config::RunSort;

impl Runs {
    pub(super) fn pointed(&mut self, event: MouseEvent) -> Vec<Effect> {
        let at = Position::new(event.column, event.row);
        match event.kind {
            MouseEventKind::Down(MouseButton::Left) => self.clicked(at),
            MouseEventKind::ScrollUp => {
                self.wheel(at, -3);
                Vec::new()
            }
            MouseEventKind::ScrollDown => {
                self.wheel(at, 3);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn clicked(&mut self, at: Position) -> Vec<Effect> {
        let hit = |rects: &[(ratatui::layout::Rect, usize)]| {
            rects.iter().find(|(rect, _)| rect.contains(at)).map(|(_, place)| *place)
        };
        if let Some(tab) = hit(&self.drawn.tabs) {
            return self.open_tab(tab);
        }
        let term = self.drawn.terms.iter().find(|(rect, _)| rect.contains(at)).map(|(_, term)| term.clone());
        if let Some(term) = term {
            if self.board.take().is_some() {
                self.filter.field.clear();
            }
            return self.add_term(&term);
        }
        let column = self.drawn.columns.iter().find(|(rect, _)| rect.contains(at)).map(|(_, column)| *column);
        if let Some(column) = column {
            // A second click on a head reverses the order.
            let ascending = RunSort { column, descending: false };
            let sort = RunSort { descending: self.sort == Some(ascending), ..ascending };
            return self.sort_by(Some(sort));
        }
        if self.board.is_some() {
            return match hit(&self.drawn.spots) {
                Some(spot) => self.click_on_board(spot),
                None => Vec::new(),
            };
        }
        if self.drawn.filter.contains(at) {
            self.focus = Focus::Filter;
            self.filter.field.click(at);
            return Vec::new();
        }
        if self.drawn.list.contains(at) {
            self.focus = Focus::List;
            let row = self.drawn.rows.iter().find(|(rect, _)| rect.contains(at)).map(|(_, row)| *row);
            let Some(row) = row else { return Vec::new() };
            (self.scroll.cursor, self.moved) = (row, true);
            return self.selection_changed();
        }
        if !self.drawn.detail.contains(at) {
            return Vec::new();
        }
        self.focus = Focus::Detail;
        if let Some(action) =
            self.drawn.buttons.iter().find(|(rect, _)| rect.contains(at)).map(|(_, act)| *act)
        {
            let blocked = self.available_commands().into_iter().find(|command| command.action == action);
            return match blocked.and_then(|command| command.blocked) {
                Some(why) => vec![Effect::Toast(why)],
                None => self.act(action).unwrap_or_default(),
            };
        }
        let stop = self.drawn.stops.iter().find(|(rect, _)| rect.contains(at)).map(|(_, stop)| stop.clone());
        if let (Some(stop), DetailView::Run) = (stop, &self.detail.showing) {
            // A second click on the item under the cursor opens it.
            let again = self.detail.stop.as_ref() == Some(&stop);
            self.detail.stop = Some(stop);
            if again {
                return self.act(Action::Open).unwrap_or_default();
            }
        }
        Vec::new()
    }

    fn wheel(&mut self, at: Position, rows: isize) {
        if self.drawn.list.contains(at) {
            self.follow = false;
            self.scroll.roll(rows, self.rows.len());
        } else if self.drawn.detail.contains(at) {
            let scroll = match self.detail.showing {
                DetailView::Run => &mut self.detail.scroll,
                _ => &mut self.detail.tree,
            };
            // Drawing clamps the offset.
            scroll.offset = scroll.offset.saturating_add_signed(rows).min(100_000);
            self.detail.follow = false;
        }
    }
}
