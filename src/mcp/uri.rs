//! URIs of skills: `skill://ID/PATH`, or `skill://ID/NAME/PATH` if a skill's name differs from its folder, so that the
//! part before `SKILL.md` is always the skill's name.

use std::fmt::Write as _;
use std::sync::Arc;

use skills_api::{Code, Error, near};
use skills_registry::Catalog;
use skills_skill::Skill;

/// Prefix of every URI.
const SCHEME: &str = "skill://";

/// Returns the URI of a file or folder of a skill; of the skill's own folder if the path is empty.
pub fn of(skill: &Skill, path: &str) -> String {
    let mut out = format!("{SCHEME}{}", encoded(skill.id.as_str()));
    let name = (skill.name != skill.id.as_str()).then_some(skill.name.as_str());
    for part in name.into_iter().chain(path.split('/').filter(|part| !part.is_empty())) {
        out.push('/');
        out.push_str(&encoded(part));
    }
    out
}

/// Returns the skill and the path that a URI names.
///
/// # Errors
/// Returns `invalid_request` for anything that is not such a URI; `not_found` with similar names; `path_escape` for an
/// encoded slash. The path itself is validated where it is opened.
pub fn read(catalog: &Catalog, uri: &str) -> Result<(Arc<Skill>, String), Error> {
    let wrong = |why: &str| {
        let message = format!("{uri:?} {why}; expected skill://ID/PATH, e.g. skill://pdf/SKILL.md");
        Error::new(Code::InvalidRequest, message)
    };
    let rest = uri.strip_prefix(SCHEME).ok_or_else(|| wrong("does not begin with skill://"))?;
    if rest.contains(['?', '#']) {
        return Err(wrong("has a query or a fragment"));
    }
    let mut parts = Vec::new();
    for part in rest.trim_end_matches('/').split('/') {
        let part = decoded(part).ok_or_else(|| wrong("is not percent-encoded UTF-8"))?;
        if part.contains(['/', '\0']) {
            return Err(Error::new(Code::PathEscape, format!("{uri:?} has an encoded separator")));
        }
        parts.push(part);
    }
    let mut parts = parts.into_iter();
    let id = parts.next().filter(|id| !id.is_empty()).ok_or_else(|| wrong("names no skill"))?;
    let skill = catalog.by_id(&id).cloned().ok_or_else(|| {
        let ids = catalog.entries.iter().map(|entry| entry.skill.id.as_str());
        let suggestions = near(&id, ids);
        Error { suggestions, ..Error::new(Code::NotFound, format!("skill `{id}` not found")) }
    })?;
    if skill.name != skill.id.as_str() && parts.next().as_ref() != Some(&skill.name) {
        let message = format!("{uri:?} does not exist; {} is at {}", skill.id, of(&skill, "SKILL.md"));
        return Err(Error::new(Code::NotFound, message));
    }
    let path: Vec<String> = parts.collect();
    Ok((skill, path.join("/")))
}

/// Encodes everything but unreserved characters in a part of a path (RFC 3986, 2.3).
fn encoded(part: &str) -> String {
    let mut out = String::with_capacity(part.len());
    for byte in part.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
                return None;
            }
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uri_parts_round_trip() {
        for part in ["pdf-tables", "old@3f9a01c2", "a b", "50%", "größe", "a?b#c"] {
            let there = encoded(part);
            assert!(there.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~%".contains(&b)), "{there}");
            assert_eq!(decoded(&there).as_deref(), Some(part));
        }
        for wrong in ["%", "%4", "%zz", "%+1", "%ff"] {
            assert_eq!(decoded(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn invalid_and_missing_addresses_are_distinguished() {
        let catalog = Catalog::default();
        let code = |uri: &str| read(&catalog, uri).unwrap_err().code;
        for wrong in
            ["", "file:///etc/passwd", "skill://", "skill://a/b?c", "skill:///SKILL.md", "skill://%zz/x"]
        {
            assert_eq!(code(wrong), Code::InvalidRequest, "{wrong}");
        }
        assert_eq!(code("skill://a/..%2f..%2fetc"), Code::PathEscape);
        assert_eq!(code("skill://a/SKILL.md"), Code::NotFound);
    }
}
