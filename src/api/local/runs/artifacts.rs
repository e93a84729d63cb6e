//! Content uploaded by a caller, stored as an artifact.

use std::sync::Arc;

use super::{Runs, audited, identity};
use crate::content::MAX_FILE_BYTES;
use crate::{Code, Error, NewArtifact, StoredArtifact};

/// Maximum length of an artifact's name in bytes.
const MAX_NAME_BYTES: usize = 255;

impl Runs {
    /// Stores content under its digest.
    ///
    /// # Errors
    /// Returns `payload_too_large`, or `invalid_request` for a name that is a path or empty.
    pub(super) async fn store_artifact(
        self: &Arc<Self>,
        artifact: NewArtifact,
    ) -> Result<StoredArtifact, Error> {
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
        let artifacts = self.kept_files()?;
        let stored = super::super::run_blocking(move || {
            artifacts.keep(&name, &mut content.as_slice()).map_err(|error| {
                Error::new(Code::InternalError, format!("cannot store the artifact: {error}"))
            })
        })
        .await?;
        let by = by.filter(|name| !name.trim().is_empty()).unwrap_or_else(identity::account);
        self.audit.record(audited::artifact_stored(&stored, &by)).await;
        Ok(StoredArtifact {
            target_ref: format!("artifact:{}", stored.digest),
            digest: stored.digest,
            name: stored.name,
            bytes: stored.bytes,
            media_type: stored.media_type,
        })
    }
}
