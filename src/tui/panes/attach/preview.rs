//! What attaching would do, as far as it is known: the last answer, and whether a newer one is on its way.

use std::sync::Arc;

use crate::widgets::scroll::Scroll;
use skills_api::{AttachCheckResult, AttachPreview, Error};

/// The preview and what was asked.
#[derive(Debug, Default)]
pub(super) struct Previewing {
    asked: u64,
    answered: u64,
    shown: Option<Arc<AttachPreview>>,
    error: Option<Error>,
    /// Whether what it is about changed since.
    old: bool,
    /// Whether the target's content is shown in full.
    pub whole: bool,
    /// Whether the last frame left something of it out.
    pub shortened: bool,
    pub scroll: Scroll,
}

impl Previewing {
    /// The number of the next question.
    pub fn ask(&mut self) -> u64 {
        self.asked += 1;
        self.old = false;
        self.asked
    }

    /// Takes an answer; answers whether it is the newest one.
    pub fn take(&mut self, generation: u64, preview: &Result<Arc<AttachPreview>, Error>) -> bool {
        if generation != self.asked {
            return false;
        }
        self.answered = generation;
        match preview {
            Ok(preview) => {
                self.shown = Some(Arc::clone(preview));
                self.error = None;
            }
            Err(error) => {
                self.shown = None;
                self.error = Some(error.clone());
            }
        }
        true
    }

    /// Nothing is chosen any longer: what was answered before, and what is on its way, is about something
    /// else.
    pub fn clear(&mut self) {
        (self.shown, self.error) = (None, None);
        self.answered = self.ask();
    }

    /// Whether an answer to what is on screen now is still to come.
    pub fn pending(&self) -> bool {
        self.answered != self.asked
    }

    /// Something happened to the target.
    pub fn grow_old(&mut self) {
        self.old = true;
    }

    /// Whether it should be asked for again, once the answer in progress is there.
    pub fn is_old(&self) -> bool {
        self.old && !self.pending()
    }

    pub fn shown(&self) -> Option<&Arc<AttachPreview>> {
        self.shown.as_ref()
    }

    pub fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }

    /// The first check that does not hold.
    pub fn failed(&self) -> Option<&AttachCheckResult> {
        self.shown.as_ref()?.checks.iter().find(|check| check.holds == Some(false))
    }

    /// Whether all four checks hold for what is on screen now.
    pub fn is_valid(&self) -> bool {
        let all = |preview: &Arc<AttachPreview>| {
            preview.reason.is_none()
                && !preview.checks.is_empty()
                && preview.checks.iter().all(|check| check.holds == Some(true))
        };
        !self.pending() && self.shown.as_ref().is_some_and(all)
    }
}
