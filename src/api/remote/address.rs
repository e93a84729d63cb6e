//! The address of a service and its key, as given by the user.

use std::fmt;
use std::path::Path;

use reqwest::Url;
use reqwest::header::HeaderValue;

use crate::{Code, Error};

/// Environment variable with a key.
pub const KEY_VARIABLE: &str = "SKILLS_API_KEY";
/// Maximum size of a key file in bytes.
const MAX_KEY_BYTES: u64 = 4096;

/// The address of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Prefix of all paths, without a trailing `/`.
    base: String,
    /// Form for display: `host:port`, with a non-default scheme or prefix.
    shown: String,
    loopback: bool,
    encrypted: bool,
}

impl Address {
    /// Parses an address: `http://HOST:PORT`, `https://HOST/PREFIX`, or `HOST:PORT`.
    ///
    /// # Errors
    /// Returns `invalid_request` for an invalid address, and for one with credentials or a query.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let wrong = |why: &str| {
            let message = format!(
                "{text:?} is not a service address: {why}; expected http://HOST:PORT or https://HOST, as \
                    `skills serve` prints it"
            );
            Error::new(Code::InvalidRequest, message)
        };
        let url_text = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let url = Url::parse(&url_text).map_err(|error| wrong(&error.to_string()))?;
        let encrypted = match url.scheme() {
            "http" => false,
            "https" => true,
            other => return Err(wrong(&format!("{other}:// is not supported"))),
        };
        if !url.username().is_empty() || url.password().is_some() {
            // Not with `wrong`, which would print the password.
            let message =
                format!("an address cannot contain credentials: set {KEY_VARIABLE}, or use --api-key-file");
            return Err(Error::new(Code::InvalidRequest, message));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("it has a query or a fragment"));
        }
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| wrong("it has no host"))?;
        let prefix = url.path().trim_end_matches('/');
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let scheme = if encrypted { "https://" } else { "" };
        Ok(Self {
            base: format!("{}://{host}{port}{prefix}", url.scheme()),
            shown: format!("{scheme}{host}{port}{prefix}"),
            loopback: is_loopback(host),
            encrypted,
        })
    }

    /// Returns the complete URL of a path.
    pub fn at(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Returns whether it is on this machine.
    pub fn is_loopback(&self) -> bool {
        self.loopback
    }

    /// Returns whether traffic to it can be read on the network.
    pub fn is_readable_on_the_way(&self) -> bool {
        !self.encrypted && !self.loopback
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

fn is_loopback(host: &str) -> bool {
    let unbracketed = host.trim_matches(['[', ']']);
    unbracketed == "localhost"
        || unbracketed.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The API key for a service. It is never displayed.
#[derive(Clone)]
pub struct Key {
    header: HeaderValue,
    source: String,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key(from {})", self.source)
    }
}

impl Key {
    /// Returns the key in an environment variable.
    ///
    /// # Errors
    /// Returns `invalid_configuration` if it is not valid in a header.
    pub fn of_variable(name: &str, value: &str) -> Result<Self, Error> {
        Self::new(value, name.to_owned())
    }

    /// Returns the key in a file; surrounding white space is ignored.
    ///
    /// # Errors
    /// Returns `not_found` or `invalid_configuration`, naming the file.
    pub fn of_file(file: &Path) -> Result<Self, Error> {
        let shown = file.display();
        let failed = |error: &std::io::Error| {
            let code = match error.kind() {
                std::io::ErrorKind::NotFound => Code::NotFound,
                _ => Code::InvalidConfiguration,
            };
            let reason = skills_base::files::io_reason(error);
            Error::new(code, format!("cannot read key file `{shown}`: {reason}"))
        };
        let metadata = std::fs::metadata(file).map_err(|error| failed(&error))?;
        if metadata.len() > MAX_KEY_BYTES {
            let message = format!("the key file {shown} has {} bytes; expected one line", metadata.len());
            return Err(Error::new(Code::InvalidConfiguration, message));
        }
        open_to_others(file, &metadata);
        let text = skills_base::files::read_user_text(file).map_err(|error| failed(&error))?;
        Self::new(&text, shown.to_string())
    }

    fn new(text: &str, source: String) -> Result<Self, Error> {
        let text = text.trim();
        let unfit = |why: &str| {
            let message =
                format!("the key in {source} {why}; expected one line of printable ASCII without spaces");
            Error::new(Code::InvalidConfiguration, message)
        };
        if text.is_empty() {
            return Err(unfit("is empty"));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(unfit("contains invalid characters"));
        }
        let mut header = HeaderValue::try_from(format!("Bearer {text}"))
            .map_err(|_| unfit("contains invalid characters"))?;
        header.set_sensitive(true);
        Ok(Self { header, source })
    }

    /// Returns the value of the header `Authorization`, marked as sensitive so that it is not logged.
    pub fn header(&self) -> &HeaderValue {
        &self.header
    }

    pub fn source(&self) -> &str {
        &self.source
    }
}

/// Logs a warning if other users of this machine can read the key.
#[cfg(unix)]
fn open_to_others(file: &Path, metadata: &std::fs::Metadata) {
    use std::os::unix::fs::PermissionsExt as _;
    if metadata.permissions().mode() & 0o077 != 0 {
        tracing::warn!("the key file {} is readable by other users; run chmod 600", file.display());
    }
}

#[cfg(not(unix))]
fn open_to_others(_: &Path, _: &std::fs::Metadata) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_spellings_of_an_address_are_parsed() {
        for (text, base, shown) in [
            ("127.0.0.1:8080", "http://127.0.0.1:8080/v1/runs", "127.0.0.1:8080"),
            ("localhost:8080/", "http://localhost:8080/v1/runs", "localhost:8080"),
            (
                "https://gate.example/skills/",
                "https://gate.example/skills/v1/runs",
                "https://gate.example/skills",
            ),
            ("http://[::1]:80", "http://[::1]/v1/runs", "[::1]"),
        ] {
            let address = Address::parse(text).unwrap();
            assert_eq!((address.at("/v1/runs").as_str(), address.to_string().as_str()), (base, shown));
        }
        assert!(Address::parse("http://gate.example").unwrap().is_readable_on_the_way());
        assert!(!Address::parse("localhost:1").unwrap().is_readable_on_the_way());
    }

    #[test]
    fn invalid_addresses_are_rejected_without_their_password() {
        for wrong in ["", "ftp://a", "http://", "http://a?b=c", "a b"] {
            assert_eq!(Address::parse(wrong).unwrap_err().code, Code::InvalidRequest, "{wrong}");
        }
        let error = Address::parse("http://me:s3cret@gate.example").unwrap_err();
        assert!(!error.message.contains("s3cret") && error.message.contains(KEY_VARIABLE), "{error}");
    }

    #[test]
    fn key_is_hidden_and_its_source_is_shown() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        std::fs::write(&file, "s3cret\n").unwrap();
        let key = Key::of_file(&file).unwrap();
        assert_eq!(key.header().to_str().unwrap(), "Bearer s3cret");
        assert!(!format!("{key:?} {:?}", key.header()).contains("s3cret"));
        std::fs::write(&file, "two words").unwrap();
        let error = Key::of_file(&file).unwrap_err();
        assert!(error.message.contains("/key") && !error.message.contains("two words"), "{error}");
        assert_eq!(Key::of_file(&dir.path().join("none")).unwrap_err().code, Code::NotFound);
        assert!(Key::of_variable(KEY_VARIABLE, " ").is_err());
    }
}
