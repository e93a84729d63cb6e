//! Composing an attachment: the current request, whether it can be sent, and sending it once.

use super::{Attach, Focus};
use crate::pane::Effect;
use crate::run_requests::RunRequest;
use crate::widgets::text_width::shown;
use skills_api::{AttachRequest, ExecutionOptions};
use skills_skill::AttachTarget;

impl Attach {
    /// Returns the current request, with the inputs that are valid.
    pub(super) fn request(&self) -> Option<AttachRequest> {
        Some(AttachRequest {
            skill: self.skill.as_ref()?.to_string(),
            target_type: self.target.map(|target| target.to_string()).unwrap_or_default(),
            target_ref: self.reference.text().trim().to_owned(),
            inputs: self.form().map(crate::form::Form::so_far).unwrap_or_default(),
            options: ExecutionOptions::default(),
            started_by: None,
            sessions: skills_api::SessionAccess::default(),
            local_files: None,
        })
    }

    /// Requests a preview of the attachment; responses to earlier requests are dropped.
    pub(super) fn request_preview(&mut self) -> Vec<Effect> {
        let Some(request) = self.request() else { return Vec::new() };
        let generation = self.preview.ask();
        vec![Effect::Run(RunRequest::AttachPreview { request: Box::new(request), generation })]
    }

    /// Returns why it cannot be attached now, if so.
    pub(super) fn blocked(&self) -> Option<String> {
        if self.skill.is_none() {
            return Some("no skill selected".to_owned());
        }
        if self.sending.is_some() {
            return Some("attaching".to_owned());
        }
        if let Some(error) = self.preview.error() {
            return Some(shown(&error.message));
        }
        if self.reference.text().trim().is_empty() && self.target.is_some() {
            return Some("select a target".to_owned());
        }
        if let Some(failed) = self.preview.failed().filter(|_| !self.preview.pending()) {
            return Some(shown(&failed.note));
        }
        if let Some(problem) = self.form().and_then(|form| form.problems().into_iter().next()) {
            return Some(format!("{} {}", shown(&problem.field), problem.why));
        }
        let remarked = self.preview.shown().and_then(|preview| preview.input_problems.first());
        if let Some((field, why)) = remarked.filter(|_| !self.preview.pending()) {
            return Some(format!("{}: {}", shown(field), shown(why)));
        }
        if self.preview.pending() {
            return Some("checking".to_owned());
        }
        (!self.preview.is_valid()).then(|| "checks failed".to_owned())
    }

    /// Sends the request, once: while it is in progress further keys have no effect.
    pub(super) fn submit(&mut self) -> Vec<Effect> {
        if self.sending.is_some() {
            return Vec::new();
        }
        if let Some(why) = self.blocked() {
            if self.form_mut().is_some_and(|form| !form.check()) && self.preview.failed().is_none() {
                self.focus = Focus::Inputs;
            }
            return vec![Effect::Toast(why)];
        }
        let Some(request) = self.request() else { return Vec::new() };
        self.ticket += 1;
        self.sending = Some(self.ticket);
        vec![Effect::Run(RunRequest::Attach { request: Box::new(request), ticket: self.ticket })]
    }

    /// Returns why a type of target cannot be chosen, if so.
    pub(super) fn refuses(&self, target: AttachTarget) -> Option<&'static str> {
        let skill = self.chosen()?;
        (!skill.classification.attach_targets.contains(&target)).then_some("not accepted by this skill")
    }

    /// Copies a form of the preview to the clipboard.
    pub(super) fn copy_as(&self, what: &str) -> Vec<Effect> {
        let Some(preview) = self.preview.shown() else { return Vec::new() };
        let text = match what {
            "cli" => Some((preview.cli.clone(), "command line")),
            "curl" => Some((preview.curl.clone(), "curl line")),
            "content" => preview
                .content
                .as_ref()
                .and_then(|content| serde_json::to_string_pretty(content).ok())
                .map(|content| (content, "target's content")),
            "json" => self
                .request()
                .and_then(|request| serde_json::to_string_pretty(&request).ok())
                .map(|json| (json, "request")),
            _ => None,
        };
        text.into_iter().map(|(text, what)| Effect::Copy(text, what.to_owned())).collect()
    }
}
