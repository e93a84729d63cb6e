//! Authentication of requests: API keys in headers.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use async_trait::async_trait;
use axum::http::{HeaderMap, header};

use skills_api::operations::{Credentials, Principal};
use skills_api::{Code, Error, KeyRing};
use skills_base::sync::MutexExt as _;

/// Authenticates the sender of a request. Can also be implemented for tokens of an identity provider or a proxy's
/// header.
#[async_trait]
pub trait Authenticator: Send + Sync + 'static {
    /// Returns the principal that these headers identify.
    ///
    /// # Errors
    /// Returns `unauthorized` for an unknown sender.
    async fn authenticate(&self, headers: &HeaderMap) -> Result<Principal, Error>;
}

/// The headers of a request, with which its sender is authenticated again.
pub(super) struct RequestCredentials {
    pub(super) authenticator: Arc<dyn Authenticator>,
    pub(super) headers: HeaderMap,
}

impl fmt::Debug for RequestCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestCredentials")
    }
}

#[async_trait]
impl Credentials for RequestCredentials {
    async fn principal(&self) -> Result<Principal, Error> {
        self.authenticator.authenticate(&self.headers).await
    }
}

#[async_trait]
impl Authenticator for KeyRing {
    async fn authenticate(&self, headers: &HeaderMap) -> Result<Principal, Error> {
        let Some(key) = presented(headers) else {
            let message = "an API key is required: header `x-api-key: KEY` or `authorization: Bearer KEY`";
            return Err(Error::new(Code::Unauthorized, message));
        };
        self.principal(key).cloned().ok_or_else(|| Error::new(Code::Unauthorized, "invalid API key"))
    }
}

/// The keys of a service. The file is reloaded when it changes: a removed key is rejected immediately.
pub struct ServiceKeys {
    /// A key from outside the file, with all scopes.
    key: Option<String>,
    file: Option<PathBuf>,
    current: Mutex<Current>,
}

struct Current {
    ring: Arc<KeyRing>,
    /// The version of the file that was read; `None` if the file did not exist.
    version: Option<FileVersion>,
}

/// Metadata that changes when a file is written or replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileVersion {
    modified: SystemTime,
    length: u64,
    #[cfg(unix)]
    inode: u64,
}

impl FileVersion {
    /// Returns `None` if the file does not exist or is not a regular file: a pipe can be read only once.
    fn of(file: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(file).ok().filter(std::fs::Metadata::is_file)?;
        Some(Self {
            modified: metadata.modified().ok()?,
            length: metadata.len(),
            #[cfg(unix)]
            inode: std::os::unix::fs::MetadataExt::ino(&metadata),
        })
    }
}

impl ServiceKeys {
    /// Reads the keys.
    ///
    /// # Errors
    /// Same as [`KeyRing::add`] and [`KeyRing::read`]; `invalid_configuration` for a file without keys.
    pub fn open(key: Option<String>, file: Option<PathBuf>) -> Result<Self, Error> {
        let version = file.as_deref().and_then(FileVersion::of);
        let ring = Arc::new(ring(key.as_deref(), file.as_deref())?);
        if let Some(file) = file.as_deref().filter(|_| ring.is_empty()) {
            let message = format!(
                "the keys file {}: no keys found; `skills keys new NAME` prints a line for it",
                file.display()
            );
            return Err(Error::new(Code::InvalidConfiguration, message));
        }
        let file = file.filter(|_| version.is_some());
        Ok(Self { key, file, current: Mutex::new(Current { ring, version }) })
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.current.locked().ring.len()
    }

    /// Returns whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the keys of the current file, none if all were removed. If it cannot be read, the previous keys stay valid.
    fn current(&self) -> Arc<KeyRing> {
        let mut current = self.current.locked();
        if let Some(file) = &self.file
            && let version = FileVersion::of(file)
            && version != current.version
        {
            current.version = version;
            match ring(self.key.as_deref(), Some(file)) {
                Ok(ring) => {
                    tracing::info!(keys = ring.len(), "read the keys file again");
                    current.ring = Arc::new(ring);
                }
                Err(error) => tracing::error!("{}; keeping the previous keys", error.message),
            }
        }
        Arc::clone(&current.ring)
    }
}

#[async_trait]
impl Authenticator for ServiceKeys {
    async fn authenticate(&self, headers: &HeaderMap) -> Result<Principal, Error> {
        self.current().authenticate(headers).await
    }
}

fn ring(key: Option<&str>, file: Option<&Path>) -> Result<KeyRing, Error> {
    let mut ring = KeyRing::default();
    key.map_or(Ok(()), |key| ring.add("api-key", key))?;
    file.map_or(Ok(()), |file| ring.read(file))?;
    Ok(ring)
}

/// Returns the key that a request contains.
fn presented(headers: &HeaderMap) -> Option<&str> {
    if let Some(key) = headers.get("x-api-key") {
        return key.to_str().ok();
    }
    let (scheme, key) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use skills_api::new_key;
    use skills_api::operations::Scope;

    use super::*;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        headers
    }

    #[tokio::test]
    async fn a_key_is_accepted_in_both_headers_and_nothing_else_is() {
        let (key, stored) = new_key("ci", BTreeSet::from([Scope::Read])).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.yaml");
        std::fs::write(&path, format!("keys:\n  {}\n", stored.line())).unwrap();
        let keys = ServiceKeys::open(None, Some(path)).unwrap();
        for headers in [headers("x-api-key", &key), headers("authorization", &format!("bearer {key}"))] {
            assert_eq!(keys.authenticate(&headers).await.unwrap().name, "ci");
        }
        for headers in
            [HeaderMap::new(), headers("x-api-key", "skw_x"), headers("authorization", "Basic abc")]
        {
            assert_eq!(keys.authenticate(&headers).await.unwrap_err().code, Code::Unauthorized);
        }
    }

    #[tokio::test]
    async fn key_file_changes_apply_immediately_unless_invalid() {
        let (first, stored_first) = new_key("first", BTreeSet::from([Scope::Read])).unwrap();
        let (second, stored_second) = new_key("second", BTreeSet::from([Scope::Read])).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.yaml");
        let write = |text: &str| std::fs::write(&path, text).unwrap();
        write(&format!("keys:\n  {}\n", stored_first.line()));
        let keys = ServiceKeys::open(Some("0123456789abcdef".to_owned()), Some(path.clone())).unwrap();
        let known = async |key: &str| keys.authenticate(&headers("x-api-key", key)).await.is_ok();
        assert!(known(&first).await && !known(&second).await);

        write(&format!("keys:\n  {}\n  # replaced\n", stored_second.line()));
        assert!(!known(&first).await && known(&second).await && known("0123456789abcdef").await);
        write("keys: [");
        assert!(!known(&first).await && known(&second).await);
        std::fs::remove_file(&path).unwrap();
        assert!(known(&second).await);
        write("keys: []\n");
        assert!(!known(&second).await && known("0123456789abcdef").await, "all keys of the file are revoked");
    }
}
