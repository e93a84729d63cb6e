//! Content uploaded by a caller, stored as an artifact.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::references::MIN_DIGEST_CHARS;
use super::runtime::{CapabilityServices, RunRuntime};
use super::{audit_entries, identity};
use crate::content::MAX_FILE_BYTES;
use crate::{Code, Error, NewArtifact, StoredArtifact};
use skills_base::audit::{Entry, Recorder};
use skills_base::telemetry::{Metrics, UploadOutcome};
use skills_runs::{UPLOADS_KEPT_FOR, UploadError, UploadLimits};
use skills_store::RunFilter;

/// Maximum length of an artifact's name in bytes.
const MAX_NAME_BYTES: usize = 255;

/// Maximum number of expired uploads that are looked up and deleted at once: each is searched for among the runs.
const MAX_EXPIRED_UPLOADS: usize = 500;

/// Content uploaded by callers.
pub(in crate::local) struct Uploads {
    pub(super) services: Arc<CapabilityServices>,
    pub(super) metrics: Metrics,
    pub(super) audit: Arc<Recorder>,
}

impl Uploads {
    /// Stores content under its digest.
    ///
    /// # Errors
    /// Returns `payload_too_large`, `rate_limited` if the caller or all callers have stored too much, or `invalid_request` for a name that is a path or empty.
    pub(super) async fn store_artifact(&self, artifact: NewArtifact) -> Result<StoredArtifact, Error> {
        let NewArtifact { name, content, by } = artifact;
        if content.len() as u64 > MAX_FILE_BYTES {
            let message =
                format!("the content has {} bytes; the maximum is {MAX_FILE_BYTES} (8 MiB)", content.len());
            return Err(Error::new(Code::PayloadTooLarge, message));
        }
        let is_valid = !name.trim().is_empty()
            && name.len() <= MAX_NAME_BYTES
            && !name.contains(|sign: char| matches!(sign, '/' | '\\') || sign.is_control())
            && !matches!(name.as_str(), "." | "..");
        if !is_valid {
            let message = format!(
                "{name:?} is not a file name; use a name without folders, e.g. rows.csv, of at most \
                    {MAX_NAME_BYTES} bytes"
            );
            return Err(Error::new(Code::InvalidRequest, message));
        }
        let by = by.filter(|name| !name.trim().is_empty()).unwrap_or_else(identity::account);
        let artifacts = self.services.kept_files()?;
        let (owner, bytes) = (by.clone(), content.len() as u64);
        let stored = crate::work::run_blocking(move || {
            Ok(artifacts.upload(&name, &content, &owner, &UploadLimits::SERVICE))
        })
        .await?;
        let outcome = if stored.is_ok() { UploadOutcome::Stored } else { UploadOutcome::Refused };
        self.metrics.upload(outcome, bytes);
        let stored = stored.map_err(|error| match error {
            UploadError::Full { .. } => {
                let days = UPLOADS_KEPT_FOR.as_secs() / 86_400;
                let message = format!(
                    "cannot store the artifact: {error}; uploads are deleted after {days} days, unless a run refers \
                        to them"
                );
                Error::new(Code::RateLimited, message)
            }
            UploadError::Io(error) => {
                Error::new(Code::InternalError, format!("cannot store the artifact: {error}"))
            }
        })?;
        self.audit.record(audit_entries::artifact_stored(&stored, &by)).await;
        Ok(StoredArtifact {
            target_ref: format!("artifact:{}", stored.digest),
            digest: stored.digest,
            name: stored.name,
            bytes: stored.bytes,
            media_type: stored.media_type,
        })
    }

    /// Deletes uploads that were stored longer ago than `age` and that no run refers to; returns how many.
    pub(super) async fn expire_uploads(&self, runtime: &RunRuntime, age: Duration) -> Result<u64, Error> {
        let failed = |error: std::io::Error| {
            Error::new(Code::InternalError, format!("cannot delete expired uploads: {error}"))
        };
        let artifacts = Arc::clone(&runtime.artifacts);
        let expired =
            crate::work::run_blocking(move || artifacts.expired_uploads(age).map_err(failed)).await?;
        let mut deleted = 0;
        for upload in expired.into_iter().take(MAX_EXPIRED_UPLOADS) {
            // A run records the reference as its caller wrote it, which can be abbreviated.
            let Some(digits) = upload.digest.get(..MIN_DIGEST_CHARS) else { continue };
            let refers = Some(format!("target:\"artifact:{digits}\""));
            let filter = RunFilter { r#where: refers, limit: 1, ..RunFilter::default() };
            let is_used = !runtime.store.runs(filter).await?.runs.is_empty();
            let artifacts = Arc::clone(&runtime.artifacts);
            let is_deleted = crate::work::run_blocking(move || {
                if is_used {
                    return artifacts.renew_upload(&upload).map(|()| false).map_err(failed);
                }
                artifacts.delete_upload(&upload, age).map_err(failed)
            })
            .await?;
            if is_deleted {
                deleted += 1;
                self.metrics.upload(UploadOutcome::Deleted, 0);
            }
        }
        if deleted > 0 {
            tracing::info!("deleted {deleted} uploaded artifacts that no run refers to");
            self.audit.record(Entry::new("artifact.purged", None, json!({ "artifacts": deleted }))).await;
        }
        Ok(deleted)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Local;
    use super::*;
    use skills_config::{Config, Env, MEMORY_STORE};
    use skills_store::{Launch, RunId, RunOptions};

    fn referring(reference: &str) -> Launch {
        Launch {
            id: RunId("run-1".to_owned()),
            skill_id: "notes".to_owned(),
            contract_digest: "c".to_owned(),
            contract: Arc::new(json!({})),
            inputs: json!({}),
            target: Some(json!({ "type": "artifact", "ref": reference, "content": {} })),
            trace_id: "t".to_owned(),
            started_by: "ana".to_owned(),
            steps: 1,
            options: RunOptions::default(),
            idempotency: None,
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn uploads_are_deleted_unless_a_run_refers_to_them() {
        let home = tempfile::tempdir().unwrap();
        let config = Config {
            store: Some(MEMORY_STORE.to_owned()),
            watch: false,
            ..Config::defaults(home.path(), &Env::at(home.path()))
        };
        let runs = Local::open(config).unwrap().runs;
        let store = async |content: &str| {
            let artifact =
                NewArtifact { name: "a.txt".into(), content: content.into(), by: Some("ana".to_owned()) };
            runs.uploads.store_artifact(artifact).await.unwrap()
        };
        let (used, unused) = (store("used").await, store("unused").await);
        let runtime = runs.store.runtime().await.unwrap();
        let abbreviated = used.target_ref[.."artifact:".len() + MIN_DIGEST_CHARS].to_owned();
        runtime.store.launch(referring(&abbreviated)).await.unwrap();
        assert_eq!(runs.uploads.expire_uploads(&runtime, UPLOADS_KEPT_FOR).await.unwrap(), 0);
        assert_eq!(runs.uploads.expire_uploads(&runtime, Duration::ZERO).await.unwrap(), 1);
        assert!(runtime.artifacts.path(&used.digest).is_some());
        assert_eq!(runtime.artifacts.path(&unused.digest), None);
    }
}
