//! API keys, stored as salted digests and compared in constant time.

use std::collections::BTreeSet;
use std::hint::black_box;
use std::path::Path;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use strum::IntoEnumIterator as _;

use skills_base::hex;

use crate::operations::{Principal, Scope};
use crate::{Code, Error};

/// Random bytes in a key.
const KEY_BYTES: usize = 32;
const SALT_BYTES: usize = 16;
/// Prefix of every key, by which scanners for leaked secrets can recognize it.
const PREFIX: &str = "skw_";
/// Minimum length of a key; shorter ones can be guessed.
const MIN_KEY_CHARS: usize = 16;

/// A key as it is stored in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredKey {
    /// The principal's name.
    pub name: String,
    /// `sha256:SALT:DIGEST`, both in hexadecimal.
    pub hash: String,
    /// Permissions.
    pub scopes: BTreeSet<Scope>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    keys: Vec<StoredKey>,
}

struct Key {
    principal: Principal,
    salt: Vec<u8>,
    digest: [u8; 32],
}

/// The valid keys.
#[derive(Default)]
pub struct KeyRing {
    keys: Vec<Key>,
}

impl KeyRing {
    /// Adds a key in plain text, for a principal with all scopes.
    ///
    /// # Errors
    /// Returns `invalid_configuration` if it is too short or not valid in a header.
    pub fn add(&mut self, name: &str, key: &str) -> Result<(), Error> {
        if key.len() < MIN_KEY_CHARS || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            let message = format!(
                "an API key needs at least {MIN_KEY_CHARS} ASCII characters without spaces; `skills keys new \
                    NAME` creates one"
            );
            return Err(Error::new(Code::InvalidConfiguration, message));
        }
        let stored = make_stored_key(name, key, Scope::iter().collect(), random::<SALT_BYTES>()?);
        self.keep(stored).map_err(|why| Error::new(Code::InternalError, why))
    }

    /// Adds the keys of a file, which may have none.
    ///
    /// # Errors
    /// Returns `invalid_configuration` if the file is unreadable or invalid, with the location of the error.
    pub fn read(&mut self, path: &Path) -> Result<(), Error> {
        let wrong = |why: String| {
            Error::new(Code::InvalidConfiguration, format!("invalid keys file `{}`: {why}", path.display()))
        };
        let text = skills_base::files::read_user_text(path).map_err(|error| {
            let reason = skills_base::files::io_reason(&error);
            let message = format!("cannot read keys file `{}`: {reason}", path.display());
            Error::new(Code::InvalidConfiguration, message)
        })?;
        let file: KeyFile = serde_saphyr::from_str(&text).map_err(|error| {
            let message = skills_skill::yaml_message(&error);
            let Some(at) = error.location() else { return wrong(message) };
            let (line, column) = (at.line(), at.column());
            // The position follows the path, as in errors of other settings files.
            let message = message.replacen(&format!(" at line {line}, column {column}"), "", 1);
            let help = if message.starts_with("expected a map") {
                "; write a list `keys:` with the entries that `skills keys new NAME` prints"
            } else {
                ""
            };
            let message = format!("invalid keys file {}:{line}:{column}: {message}{help}", path.display());
            Error::new(Code::InvalidConfiguration, message)
        })?;
        file.keys.into_iter().try_for_each(|key| self.keep(key)).map_err(wrong)
    }

    fn keep(&mut self, stored: StoredKey) -> Result<(), String> {
        let name = stored.name;
        if self.keys.iter().any(|key| key.principal.name == name) {
            return Err(format!("two keys have the name {name:?}"));
        }
        if name.trim().is_empty() || name.chars().any(char::is_control) {
            return Err(format!("the key name {name:?} is blank or has control characters"));
        }
        if stored.scopes.is_empty() {
            let names: Vec<String> = Scope::iter().map(|scope| scope.to_string()).collect();
            return Err(format!("the key {name:?} has no scopes; scopes are {}", names.join(", ")));
        }
        let parts: Vec<&str> = stored.hash.split(':').collect();
        let (salt, digest) = match parts.as_slice() {
            ["sha256", salt, digest] => {
                (hex::decode(salt), hex::decode(digest).and_then(|d| d.try_into().ok()))
            }
            _ => (None, None),
        };
        let (Some(salt), Some(digest)) = (salt, digest) else {
            return Err(format!("the hash of the key {name:?} is not `sha256:SALT:DIGEST` in hexadecimal"));
        };
        self.keys.push(Key { principal: Principal { name, scopes: stored.scopes }, salt, digest });
        Ok(())
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the principal of a key. Every key is compared completely, whichever matches.
    pub fn principal(&self, presented: &str) -> Option<&Principal> {
        let mut found = None;
        for key in &self.keys {
            if same(&digest(&key.salt, presented), &key.digest) {
                found = Some(&key.principal);
            }
        }
        found
    }
}

fn digest(salt: &[u8], key: &str) -> [u8; 32] {
    Sha256::new().chain_update(salt).chain_update(key.as_bytes()).finalize().into()
}

/// Compares two digests in constant time.
fn same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    black_box(a.iter().zip(b).fold(0, |differing, (a, b)| differing | (a ^ b))) == 0
}

/// Generates a key, and its stored form.
///
/// # Errors
/// Returns `internal_error` if the system provides no random bytes.
pub fn new_key(name: &str, scopes: BTreeSet<Scope>) -> Result<(String, StoredKey), Error> {
    let key = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random::<KEY_BYTES>()?));
    let stored = make_stored_key(name, &key, scopes, random::<SALT_BYTES>()?);
    Ok((key, stored))
}

fn make_stored_key(name: &str, key: &str, scopes: BTreeSet<Scope>, salt: [u8; SALT_BYTES]) -> StoredKey {
    let hash = format!("sha256:{}:{}", hex::encode(&salt), hex::encode(&digest(&salt, key)));
    StoredKey { name: name.to_owned(), hash, scopes }
}

impl StoredKey {
    /// Returns it as an item of the list `keys` in a keys file.
    pub fn line(&self) -> String {
        let scopes: Vec<String> = self.scopes.iter().map(ToString::to_string).collect();
        // A quoted name is a JSON string, which YAML parses the same way.
        let name = serde_json::Value::String(self.name.clone());
        format!("- {{ name: {name}, hash: \"{}\", scopes: [{}] }}", self.hash, scopes.join(", "))
    }
}

/// Parses scopes as written on the command line: `read,run`.
///
/// # Errors
/// Returns a message that lists the valid scopes.
pub fn scopes(text: &str) -> Result<BTreeSet<Scope>, String> {
    let one = |word: &str| {
        Scope::from_str(word.trim()).map_err(|_| {
            let names: Vec<String> = Scope::iter().map(|scope| scope.to_string()).collect();
            format!("unknown scope `{word}`; expected one of: {}", names.join(", "))
        })
    };
    text.split(',').filter(|word| !word.trim().is_empty()).map(one).collect()
}

/// Returns random bytes of the system.
///
/// # Errors
/// Returns `internal_error` if the system provides none.
pub(super) fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    let source = rustls::crypto::ring::default_provider().secure_random;
    source
        .fill(&mut bytes)
        .map_err(|_| Error::new(Code::InternalError, "the system provides no random bytes"))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_key_finds_its_principal_and_does_not_contain_the_key() {
        let (key, stored) = new_key("ci \"nightly\"", BTreeSet::from([Scope::Read, Scope::Run])).unwrap();
        assert!(key.len() > 40 && !stored.line().contains(&key), "{}", stored.line());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.yaml");
        let (_, other) = new_key("bo", BTreeSet::from([Scope::Admin])).unwrap();
        std::fs::write(&path, format!("keys:\n  {}\n  {}\n", other.line(), stored.line())).unwrap();
        let mut ring = KeyRing::default();
        ring.read(&path).unwrap();
        let who = ring.principal(&key).unwrap();
        assert_eq!((who.name.as_str(), who.scopes.len()), ("ci \"nightly\"", 2));
        assert!(ring.principal("skw_x").is_none());
    }

    #[test]
    fn invalid_file_is_rejected_with_location_and_reason() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.yaml");
        let message_of = |text: &str| {
            std::fs::write(&path, text).unwrap();
            KeyRing::default().read(&path).unwrap_err().message
        };
        let (_, stored) = new_key("a", BTreeSet::from([Scope::Read])).unwrap();
        assert!(
            message_of(&format!("keys:\n  {}\n  {}\n", stored.line(), stored.line())).contains("two keys")
        );
        assert!(
            message_of("keys:\n  - {name: a, hash: \"sha256:zz:00\", scopes: [read]}\n")
                .contains("sha256:SALT")
        );
        let place = path.display();
        assert_eq!(
            message_of("x: 1\n"),
            format!("invalid keys file {place}:1:1: unknown key `x`; expected `keys`")
        );
        let text = message_of("skw_abc\n");
        assert!(text.starts_with(&format!("invalid keys file {place}:1:1: expected a map; ")), "{text}");
        assert!(text.ends_with("with the entries that `skills keys new NAME` prints"), "{text}");
        let scope = message_of("keys:\n  - {name: a, hash: x, scopes: [write]}\n");
        let value = ": unknown value `write`; expected one of `read`, ";
        assert!(
            scope.starts_with(&format!("invalid keys file {place}:2:")) && scope.contains(value),
            "{scope}"
        );
        std::fs::write(&path, "keys: []\n").unwrap();
        let mut ring = KeyRing::default();
        ring.read(&path).unwrap();
        assert!(ring.is_empty());
        assert!(KeyRing::default().add("a", "short").unwrap_err().message.contains("16"));
    }

    #[test]
    fn scopes_are_separated_by_commas() {
        assert_eq!(scopes("read, run").unwrap(), BTreeSet::from([Scope::Read, Scope::Run]));
        assert!(scopes("read,write").unwrap_err().contains("decide"));
    }
}
