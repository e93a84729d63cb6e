//! The preview of an attachment: the last response, and whether a newer one is pending.

use std::sync::Arc;

use crate::widgets::scroll::Scroll;
use skills_api::{AttachCheckResult, AttachPreview, Error};

/// The preview and the state of its requests.
#[derive(Debug, Default)]
pub(super) struct PreviewState {
    requested_at: u64,
    answered: u64,
    shown: Option<Arc<AttachPreview>>,
    error: Option<Error>,
    /// Whether its subject has changed since.
    old: bool,
    /// Whether the target's content is shown in full.
    pub expanded: bool,
    /// Whether the last frame truncated the content.
    pub shortened: bool,
    pub scroll: Scroll,
}

impl PreviewState {
    /// Returns the number of the next request.
    pub fn ask(&mut self) -> u64 {
        self.requested_at += 1;
        self.old = false;
        self.requested_at
    }

    /// Handles a response; returns whether it is the newest one.
    pub fn take(&mut self, generation: u64, preview: &Result<Arc<AttachPreview>, Error>) -> bool {
        if generation != self.requested_at {
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

    /// Clears the preview when nothing is selected: earlier and pending responses have another subject.
    pub fn clear(&mut self) {
        (self.shown, self.error) = (None, None);
        self.answered = self.ask();
    }

    /// Returns whether the response for the current selection is pending.
    pub fn pending(&self) -> bool {
        self.answered != self.requested_at
    }

    /// Marks the preview as outdated: the target changed.
    pub fn grow_old(&mut self) {
        self.old = true;
    }

    /// Returns whether it should be requested again, after any pending response.
    pub fn is_old(&self) -> bool {
        self.old && !self.pending()
    }

    pub fn shown(&self) -> Option<&Arc<AttachPreview>> {
        self.shown.as_ref()
    }

    pub fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }

    /// Returns the first check that failed.
    pub fn failed(&self) -> Option<&AttachCheckResult> {
        self.shown.as_ref()?.checks.iter().find(|check| check.passed == Some(false))
    }

    /// Returns whether all checks hold for the current selection.
    pub fn is_valid(&self) -> bool {
        let all = |preview: &Arc<AttachPreview>| {
            preview.reason.is_none()
                && !preview.checks.is_empty()
                && preview.checks.iter().all(|check| check.passed == Some(true))
        };
        !self.pending() && self.shown.as_ref().is_some_and(all)
    }
}
