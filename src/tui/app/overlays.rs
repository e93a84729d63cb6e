//! The dialogs and texts over the panes.

use std::time::Instant;

use crate::overlay::{Outcome, Overlay, Reading};

/// The overlay that has the keys, and the one behind it.
#[derive(Default)]
pub(super) struct Overlays {
    pub top: Option<Box<dyn Overlay>>,
    /// The overlay behind its help, or the one with unsaved text behind the confirmation to quit; restored afterwards.
    pub behind: Option<Box<dyn Overlay>>,
    /// When the open dialog was drawn first.
    pub since: Option<Instant>,
}

impl Overlays {
    pub fn open(&mut self, overlay: impl Overlay + 'static) {
        self.top = Some(Box::new(overlay));
    }

    /// Opens an overlay in front of the current one, which is restored when it closes.
    pub fn open_over(&mut self, overlay: impl Overlay + 'static) {
        self.behind = self.top.take();
        self.open(overlay);
    }

    /// Returns the overlay that receives messages: a dialog behind its help continues.
    pub fn receiver(&mut self) -> Option<&mut Box<dyn Overlay>> {
        self.behind.as_mut().or(self.top.as_mut())
    }

    /// Shows the new version of a text, also behind the help.
    pub fn read_again(&mut self, reading: Reading) {
        if let Some(overlay) = self.receiver() {
            overlay.read_again(reading);
        }
    }

    /// Returns whether the confirmation to quit is shown.
    pub fn asks_to_leave(&self) -> bool {
        self.top.as_ref().is_some_and(|overlay| overlay.asks_to_leave())
    }

    /// Returns whether help can be opened over the overlay, which is restored when it closes.
    pub fn can_open_help(&self) -> bool {
        let is_dialog = self.top.as_ref().is_some_and(|over| !over.asks_to_leave() && !over.is_help());
        is_dialog && self.behind.is_none()
    }

    /// Closes the help over a dialog that ends.
    pub fn uncover(&mut self, outcome: &Outcome) {
        let ends = matches!(outcome, Outcome::Close | Outcome::Done(..));
        if ends && self.top.as_ref().is_some_and(|overlay| overlay.is_help()) && self.behind.is_some() {
            self.top = self.behind.take();
        }
    }
}
