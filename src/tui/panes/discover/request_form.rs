//! The field of the request, with the recall of earlier ones.

use ratatui::layout::Rect;

use super::history::History;
use crate::action::Action;
use crate::field::Field;

/// The request being edited.
#[derive(Default)]
pub(super) struct RequestForm {
    pub field: Field,
    /// The text that another pane set.
    pub preset: Option<String>,
    pub history: History,
    /// Area of the last frame.
    pub area: Rect,
}

impl RequestForm {
    /// Executes an action; returns whether the text changed, or `None` if it handles no such action.
    pub fn act(&mut self, action: Action) -> Option<bool> {
        let recalled = match action {
            Action::Clear => return Some(self.field.kill_to_start()),
            Action::HistoryEarlier => self.history.earlier(self.field.text()),
            Action::HistoryLater => self.history.later(),
            Action::Down if self.history.walking() => self.history.later(),
            _ => return None,
        };
        if let Some(intent) = recalled {
            self.field.set(intent);
        }
        Some(recalled.is_some())
    }

    /// Notes that the text was edited; returns whether it was.
    pub fn edited(&mut self, changed: bool) -> bool {
        if changed {
            self.history.stop();
        }
        changed
    }

    /// Returns whether the last word may be incomplete: the cursor is at the end.
    pub fn is_at_end(&self) -> bool {
        self.field.cursor() == self.field.text().len()
    }

    /// Returns the request that the user entered here; one of another pane belongs to the skill that was selected there.
    pub fn entered(&self) -> Option<&str> {
        let text = self.field.text().trim();
        (!text.is_empty() && self.preset.as_deref() != Some(text)).then_some(text)
    }

    /// Sets a request that was made elsewhere.
    pub fn set(&mut self, intent: &str) {
        self.preset = Some(intent.trim().to_owned());
        self.history.keep(self.field.text());
        self.field.set(intent);
        self.history.keep(intent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_of_another_pane_is_not_entered() {
        let mut form = RequestForm::default();
        assert_eq!(form.entered(), None);
        form.set("a golden query");
        assert_eq!(form.entered(), None);
        form.field.set("a golden query, changed");
        assert_eq!(form.entered(), Some("a golden query, changed"));
    }
}
