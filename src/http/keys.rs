//! Who sent a request: API keys in headers.

use async_trait::async_trait;
use axum::http::{HeaderMap, header};

use skills_api::operations::Principal;
use skills_api::{Code, Error, KeyRing};

/// Finds out who sent a request. Tokens of an identity provider or a proxy's header implement this, too.
#[async_trait]
pub trait Authenticator: Send + Sync + 'static {
    /// The sender of these headers.
    ///
    /// # Errors
    /// `unauthorized` for an unknown sender.
    async fn authenticate(&self, headers: &HeaderMap) -> Result<Principal, Error>;
}

#[async_trait]
impl Authenticator for KeyRing {
    async fn authenticate(&self, headers: &HeaderMap) -> Result<Principal, Error> {
        let Some(given) = presented(headers) else {
            let message = "an API key is required: header `x-api-key: KEY` or `authorization: Bearer KEY`";
            return Err(Error::new(Code::Unauthorized, message));
        };
        self.principal(given).cloned().ok_or_else(|| Error::new(Code::Unauthorized, "unknown API key"))
    }
}

/// The key that a request brings.
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
        let mut ring = KeyRing::default();
        ring.read(&path).unwrap();
        for headers in [headers("x-api-key", &key), headers("authorization", &format!("bearer {key}"))] {
            assert_eq!(ring.authenticate(&headers).await.unwrap().name, "ci");
        }
        for headers in
            [HeaderMap::new(), headers("x-api-key", "skw_x"), headers("authorization", "Basic abc")]
        {
            assert_eq!(ring.authenticate(&headers).await.unwrap_err().code, Code::Unauthorized);
        }
    }
}
