//! Identity of skills: the id by which a skill is loaded, and the digest of a `SKILL.md`.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::Digest as _;

/// Id of the skill: its folder name, or for a shadowed one `id@` + eight hex digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct SkillId(String);

impl SkillId {
    /// Accepts any text: ids come from folder names, which are not restricted in practice.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the id of a bundle whose own id another one has: `id@3f9a01c2`.
    #[must_use]
    pub fn shadowed(&self, digest: Digest) -> Self {
        Self(format!("{}@{:.8}", self.0, digest.to_string()))
    }
}

impl std::borrow::Borrow<str> for SkillId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SkillId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// SHA-256 of a file's bytes; shown and serialized as 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Hashes the bytes of a file.
    pub fn of(bytes: &[u8]) -> Self {
        Self(sha2::Sha256::digest(bytes).into())
    }
}

impl From<[u8; 32]> for Digest {
    /// Wraps a digest computed elsewhere, for content too large for memory.
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl schemars::JsonSchema for Digest {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Digest".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "pattern": "^[0-9a-f]{64}$",
            "description": "SHA-256, 64 hexadecimal digits.",
        })
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        if s.is_human_readable() { s.collect_str(self) } else { self.0.serialize(s) }
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        if !d.is_human_readable() {
            return Ok(Self(<[u8; 32]>::deserialize(d)?));
        }
        let hex = String::deserialize(d)?;
        let mut out = [0; 32];
        if hex.len() != 64 || !hex.is_ascii() {
            return Err(serde::de::Error::custom("a digest is 64 hex digits"));
        }
        for (byte, pair) in out.iter_mut().zip(hex.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).map_err(serde::de::Error::custom)?;
            *byte = u8::from_str_radix(pair, 16).map_err(serde::de::Error::custom)?;
        }
        Ok(Self(out))
    }
}
