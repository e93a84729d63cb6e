//! Launches and attachments: each with an idempotency key, so that it can be sent again if its response is lost.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};

use super::Inner;
use super::call::{Arguments, LONG_CALL_TIMEOUT, arguments, to_arguments};
use super::transport::TransportError;
use crate::local_files::{FILE_FORMS, LocalFile, STORED_FORMS, is_path, stored_name};
use crate::operations::arguments::{ArtifactArguments, ContentEncoding};
use crate::run_types::SKIPPED;
use crate::{
    AttachCheck, AttachCheckResult, AttachPreview, AttachReason, AttachRequest, Attached, CapabilityRequest,
    Code, Error, ExecutionOptions, LaunchRequest, Launched, NewArtifact, StoredArtifact, content,
    new_trace_id, reproduce,
};
use skills_config::quoted;
use skills_skill::{AttachTarget, Digest};
use skills_store::IdempotencyOutcome;

/// Options as they are sent, and whether the key in them is the caller's own.
struct KeyedOptions {
    options: ExecutionOptions,
    own: bool,
}

/// Sends launches and attachments.
pub(super) struct LaunchSender {
    pub inner: Arc<Inner>,
    /// Who runs are started by, if the service has no authentication.
    pub user: Option<String>,
}

impl LaunchSender {
    /// Adds a key and a trace id to options, by which a launch is recognized.
    ///
    /// # Errors
    /// Returns `invalid_request` for files, which are paths of this machine.
    fn keyed(&self, mut options: ExecutionOptions) -> Result<KeyedOptions, Error> {
        if let Some(name) = options.files.keys().next() {
            let message = format!(
                "{name} is a local file, which {} cannot read: pass its content as an input, or launch the \
                    skill on that machine with --file",
                self.inner.wire.address()
            );
            return Err(Error::new(Code::InvalidRequest, message));
        }
        let own = options.idempotency_key.is_some();
        options.idempotency_key.get_or_insert_with(|| format!("remote-{}", uuid::Uuid::now_v7()));
        options.trace_id.get_or_insert_with(new_trace_id);
        Ok(KeyedOptions { options, own })
    }

    fn asker(&self, target: Option<String>) -> Option<String> {
        target.or_else(|| self.user.clone())
    }

    pub async fn launched(&self, request: LaunchRequest) -> Result<Launched, Error> {
        let keyed = self.keyed(request.options)?;
        let fields =
            execution("skill_id", request.skill, request.inputs, &keyed, self.asker(request.started_by));
        let launched = self.inner.keyed("skill.execute_async", fields, &keyed).await?;
        Ok(as_asked(launched, &keyed))
    }

    pub async fn capability_launched(&self, request: CapabilityRequest) -> Result<Launched, Error> {
        let keyed = self.keyed(request.options)?;
        let asker = self.asker(request.started_by);
        let fields = execution("capability_id", request.capability, request.inputs, &keyed, asker);
        let launched = self.inner.keyed("capability.execute_async", fields, &keyed).await?;
        Ok(as_asked(launched, &keyed))
    }

    pub async fn attached(&self, mut request: AttachRequest) -> Result<Attached, Error> {
        let keyed = self.keyed(request.options.clone())?;
        if let Some(file) = own_file(&request).await? {
            let name = stored_name(&file.path);
            let by = request.started_by.clone();
            let stored = self.artifact_stored(NewArtifact { name, content: file.content, by }).await?;
            request.target_ref = stored.target_ref;
        }
        let fields = self.attachment(&request, &keyed.options);
        let attached = self.inner.keyed("skill.attach_async", fields, &keyed).await;
        attached.map_err(|error| Error { message: with_files(&error.message, &request), ..error })
    }

    pub async fn attachment_previewed(&self, mut request: AttachRequest) -> Result<AttachPreview, Error> {
        let file = match own_file(&request).await {
            Ok(file) => file,
            // The service makes the first three checks; a problem with the local file is reported after theirs. Its path
            // is not sent.
            Err(error) => {
                let preview = self.preview_of(&request, "").await?;
                return Ok(without_target(preview, &request, error));
            }
        };
        let Some(file) = file else { return self.preview_of(&request, &request.target_ref).await };
        let target =
            std::mem::replace(&mut request.target_ref, format!("artifact:{}", Digest::of(&file.content)));
        let preview = self.preview_of(&request, &request.target_ref).await?;
        let mut preview = with_own_file(preview, &file, &target, &request.target_ref);
        if preview.target_label.is_some() {
            let upload = reproduce::upload(&self.inner.wire.address().at(""), &file);
            preview.curl = format!("{upload} && {}", preview.curl);
        }
        Ok(preview)
    }

    async fn preview_of(&self, request: &AttachRequest, target_ref: &str) -> Result<AttachPreview, Error> {
        let mut fields = self.attachment(request, &request.options);
        fields.insert("target_ref".to_owned(), target_ref.into());
        let mut preview: AttachPreview = self.inner.ask("skill.attach_preview", fields).await?;
        let notes = preview.checks.iter_mut().map(|check| &mut check.note);
        for text in notes.chain(preview.reason.iter_mut().flat_map(|reason| &mut reason.allowed)) {
            *text = with_files(text, request);
        }
        // Commands to copy are not taken from a service.
        let address = self.inner.wire.address().at("");
        let cli = reproduce::cli(&request.skill, request);
        let curl = reproduce::curl(&address, &request.skill, request);
        Ok(AttachPreview { cli, curl, ..preview })
    }

    pub async fn artifact_stored(&self, artifact: NewArtifact) -> Result<StoredArtifact, Error> {
        let NewArtifact { name, content, by } = artifact;
        let fields = to_arguments(&ArtifactArguments {
            name,
            content: BASE64.encode(&content),
            encoding: ContentEncoding::Base64,
            by: self.asker(by),
        })?;
        self.inner.ask("artifact.create", fields).await
    }

    fn attachment(&self, request: &AttachRequest, options: &ExecutionOptions) -> Arguments {
        arguments(json!({
            "skill_id": request.skill,
            "target_type": request.target_type,
            "target_ref": request.target_ref,
            "inputs": request.inputs,
            "options": options,
            "started_by": self.asker(request.started_by.clone()),
        }))
    }
}

/// Returns a text of the service with the files that this process uploads among the references.
fn with_files(text: &str, request: &AttachRequest) -> String {
    if request.local_files.is_some() { text.replace(STORED_FORMS, FILE_FORMS) } else { text.to_owned() }
}

/// Reads the local file that a request names; `None` if it names stored content.
async fn own_file(request: &AttachRequest) -> Result<Option<LocalFile>, Error> {
    let reference = request.target_ref.trim().to_owned();
    let is_artifact = request.target_type.trim().parse() == Ok(AttachTarget::Artifact);
    let local =
        request.local_files.clone().filter(|_| is_artifact && !reference.is_empty() && is_path(&reference));
    let Some(local) = local else { return Ok(None) };
    let read = crate::work::spawn_blocking(move || local.read(&reference, &[])).await;
    let read =
        read.map_err(|error| Error::new(Code::InternalError, format!("cannot read the file: {error}")))?;
    read.map(Some)
}

/// Returns a preview whose last check is that of a local file which is uploaded when it is attached. Nothing about the
/// target is taken from the service, which does not know the file.
fn with_own_file(
    mut preview: AttachPreview,
    file: &LocalFile,
    target: &str,
    reference: &str,
) -> AttachPreview {
    preview.cli = preview.cli.replace(reference, &quoted(target));
    let label =
        format!("file {}, {} bytes, uploaded when it is attached", file.path.display(), file.content.len());
    preview.checks.retain(|check| check.check != AttachCheck::Target);
    if preview.checks.iter().any(|check| check.passed != Some(true)) {
        preview.checks.push(AttachCheckResult {
            check: AttachCheck::Target,
            passed: None,
            note: SKIPPED.to_owned(),
        });
        return AttachPreview { target_label: None, content: None, content_bytes: None, ..preview };
    }
    preview.checks.push(AttachCheckResult {
        check: AttachCheck::Target,
        passed: Some(true),
        note: label.clone(),
    });
    if preview.reason.as_ref().is_some_and(|reason| reason.check == AttachCheck::Target) {
        preview.reason = None;
    }
    let content = content::of_bytes(&stored_name(&file.path), &file.content);
    preview.target_label = Some(label);
    preview.content_bytes = Some(content.to_string().len() as u64);
    preview.content = Some(content::cut(&content));
    preview
}

/// Returns a preview whose last check fails because of a local file.
fn without_target(mut preview: AttachPreview, request: &AttachRequest, error: Error) -> AttachPreview {
    let check = preview.checks.iter_mut().find(|check| check.check == AttachCheck::Target);
    if let Some(check) = check.filter(|check| check.passed.is_some()) {
        check.passed = Some(false);
        check.note = error.message;
        let allowed = preview.reason.map(|reason| reason.allowed).unwrap_or_default();
        let target = request.target_ref.clone();
        preview.reason =
            Some(AttachReason { check: AttachCheck::Target, value: target, allowed, cause: None });
    }
    preview
}

fn execution(
    what: &str,
    id: String,
    inputs: Map<String, Value>,
    keyed: &KeyedOptions,
    started_by: Option<String>,
) -> Arguments {
    let mut fields = arguments(json!({
        "inputs": inputs, "options": keyed.options, "started_by": started_by,
    }));
    fields.insert(what.to_owned(), Value::String(id));
    fields
}

/// Hides the outcome of an idempotency key that the caller did not provide.
fn as_asked(launched: Launched, keyed: &KeyedOptions) -> Launched {
    let idempotency = if keyed.own { launched.idempotency } else { IdempotencyOutcome::None };
    Launched { idempotency, ..launched }
}

impl Inner {
    async fn keyed<R: serde::de::DeserializeOwned>(
        &self,
        name: &'static str,
        fields: Arguments,
        keyed: &KeyedOptions,
    ) -> Result<R, Error> {
        let patience = if keyed.options.wait { LONG_CALL_TIMEOUT } else { self.wire.reading() };
        match self.surely(name, fields, patience).await {
            Err(TransportError::ResponseLost(error)) => {
                let key = keyed.options.idempotency_key.as_deref().unwrap_or_default();
                let advice = format!("check the runs, or repeat the launch with the idempotency key {key}");
                Err(error.outcome_unknown(&advice))
            }
            answer => answer.map_err(TransportError::error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LocalFiles, SessionAccess};

    #[test]
    fn nothing_about_an_uploaded_file_is_taken_from_the_service() {
        let preview = json!({
            "checks": [{"check": "exists", "holds": true, "note": "1.0.0"}],
            "reason": null, "target_label": "stored by kim", "content": {"text": "item,amount"}, "content_bytes": 19,
            "input_problems": [], "effect_mode": null, "may_do": [], "cli": "", "curl": "",
        });
        let preview: AttachPreview = serde_json::from_value(preview).unwrap();
        let file = LocalFile {
            name: "salaries.csv".to_owned(),
            path: "/w/salaries.csv".into(),
            content: b"iban\n".to_vec(),
        };
        let own = with_own_file(preview, &file, "artifact:00", "salaries.csv");
        let label = "file /w/salaries.csv, 5 bytes, uploaded when it is attached";
        assert_eq!(own.target_label.as_deref(), Some(label));
        let last = own.checks.last().unwrap();
        assert_eq!((last.check, last.note.as_str()), (AttachCheck::Target, label));
        assert!(own.content.unwrap().to_string().contains("iban"));
    }

    #[test]
    fn callers_that_upload_files_may_name_them() {
        let request = AttachRequest {
            skill: "a".to_owned(),
            target_type: "artifact".to_owned(),
            target_ref: String::new(),
            inputs: Map::new(),
            options: ExecutionOptions::default(),
            started_by: None,
            sessions: SessionAccess::default(),
            local_files: None,
        };
        let message = format!("a reference is required; {STORED_FORMS}");
        assert_eq!(with_files(&message, &request), message);
        let local_files = Some(LocalFiles { cwd: "/w".into(), home: "/h".into() });
        let own = with_files(&message, &AttachRequest { local_files, ..request });
        assert_eq!(own, format!("a reference is required; {FILE_FORMS}"));
    }
}
