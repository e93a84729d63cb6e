//! How the last attachment ended: the run it started, or the structured reason why there is none.

use std::sync::Arc;

use crate::gateway::{AttachReason, Attached, Error};
use crate::store::RunId;
use crate::tui::widgets::measure::shown;

/// The last attachment.
#[derive(Debug, Clone)]
pub(super) enum Last {
    /// It became a run.
    Done(Arc<Attached>),
    /// It did not.
    Failed {
        /// The code, as on every wire.
        code: String,
        /// What was wrong and what to do.
        message: String,
        /// What was given and what would be allowed, where that is known.
        reason: Option<AttachReason>,
    },
}

impl Last {
    pub fn of(attached: &Result<Arc<Attached>, Error>) -> Self {
        match attached {
            Ok(attached) => Self::Done(Arc::clone(attached)),
            Err(error) => Self::Failed {
                code: error.code.to_string(),
                message: shown(&error.message),
                reason: error.reason.clone().and_then(|reason| serde_json::from_value(reason).ok()),
            },
        }
    }

    /// The run to go to.
    pub fn run(&self) -> Option<&RunId> {
        match self {
            Self::Done(attached) => Some(&attached.execution.id),
            Self::Failed { .. } => None,
        }
    }
}
