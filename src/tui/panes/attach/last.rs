//! The outcome of the last attachment: the run it started, or the structured reason why there is none.

use std::sync::Arc;

use serde_json::Value;

use crate::widgets::text_width::shown;
use skills_api::{AttachReason, Attached, Error, RunDetail};
use skills_store::{EventKind, NewEvent, RunId};

/// The last attachment.
#[derive(Debug, Clone)]
pub(super) enum LastAttachment {
    /// It started a run.
    Done(Arc<Attached>),
    /// It failed.
    Failed {
        /// The error code, as on the wire.
        code: String,
        /// What is wrong and what to do.
        message: String,
        /// The rejected value and the accepted ones, if known.
        reason: Option<AttachReason>,
    },
}

impl LastAttachment {
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

    /// Updates the state of its run, and the outcome of the control signal it sent.
    pub fn goes_on(&mut self, detail: &RunDetail) {
        let Self::Done(attached) = self else { return };
        let attached = Arc::make_mut(attached);
        attached.execution.clone_from(&detail.run);
        let text = detail.events.iter().rev().find_map(|event| control_line(&event.event));
        attached.control = text.or_else(|| attached.control.take());
    }

    /// Returns the run, if one was started.
    pub fn run(&self) -> Option<&RunId> {
        match self {
            Self::Done(attached) => Some(&attached.execution.id),
            Self::Failed { .. } => None,
        }
    }
}

/// Describes an event of the sidecar about the control signal it sent.
fn control_line(event: &NewEvent) -> Option<String> {
    let text = |name: &str| event.data.get(name).and_then(Value::as_str).map(shown);
    let (requested, on) = (text("asked")?, text("on")?);
    match &event.kind {
        EventKind::ControlApplied => {
            let did = text("did").map(|did| format!(": {did}")).unwrap_or_default();
            Some(format!("{requested}: applied to run {on}{did}"))
        }
        EventKind::ControlRefused => {
            let why = text("refused").unwrap_or_default();
            Some(format!("{requested}: not applied to run {on}: {why}"))
        }
        _ => None,
    }
}
