//! The content of a file as scripts receive it: parsed JSON, text, or Base64, with media type and size.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use super::{Code, Error};
use skills_base::files::{Folder, OpenError};
use skills_base::nesting;
use skills_runs::{Artifact, has_few_values};
use skills_skill::read_regular;

/// Maximum size of a file in bytes: it is stored with the run and passed to scripts on stdin.
pub const MAX_FILE_BYTES: u64 = 8 << 20;

/// Returns the content of an artifact at `path`.
///
/// # Errors
/// Returns `payload_too_large`, naming the limit, or `target_not_found` if it cannot be read.
pub fn of_artifact(path: &Path, artifact: &Artifact) -> Result<Value, Error> {
    let bytes = read_regular(path, MAX_FILE_BYTES).map_err(|error| match error.kind() {
        std::io::ErrorKind::FileTooLarge => too_large(&artifact.name),
        _ => Error::new(Code::TargetNotFound, format!("cannot read artifact {}: {error}", artifact.digest)),
    })?;
    Ok(value(&artifact.name, &artifact.media_type, &bytes))
}

/// Returns the content of a file in a folder; `shown` is its path as the caller knows it.
///
/// # Errors
/// Returns `target_not_found` if it is not a regular file in the folder, or `payload_too_large`.
pub fn read_inside(folder: &Folder, path: &str, shown: &str) -> Result<Vec<u8>, Error> {
    folder.read(path, MAX_FILE_BYTES).map_err(|refusal| match refusal {
        OpenError::TooLarge { .. } => too_large(shown),
        OpenError::NotFound { .. } => {
            Error::new(Code::TargetNotFound, format!("cannot read `{shown}`: no such file or directory"))
        }
        other => Error::new(Code::TargetNotFound, format!("cannot read `{shown}`: {other}")),
    })
}

fn too_large(shown: &str) -> Error {
    let message = format!("{shown} has more than {MAX_FILE_BYTES} bytes (8 MiB); attach a smaller file");
    Error::new(Code::PayloadTooLarge, message)
}

/// Returns the content of any file.
pub fn of_bytes(name: &str, bytes: &[u8]) -> Value {
    let media_type = match std::str::from_utf8(bytes) {
        Ok(text) if is_json(name, text) => "application/json",
        Ok(text) if !text.contains('\0') => "text/plain",
        _ => "application/octet-stream",
    };
    value(name, media_type, bytes)
}

fn is_json(name: &str, text: &str) -> bool {
    let named = Path::new(name).extension().is_some_and(|end| end.eq_ignore_ascii_case("json"));
    named && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() && is_parsed(text)
}

/// Returns whether JSON is parsed: it is passed as text if it is nested too deeply or has too many values.
fn is_parsed(json: &str) -> bool {
    !nesting::text_exceeds(json, nesting::MAX_LEVELS) && has_few_values(json.as_bytes())
}

fn value(name: &str, media_type: &str, bytes: &[u8]) -> Value {
    let text = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    let is_declared = media_type == "application/json";
    let parsed = text.filter(|text| is_json(name, text) || is_declared && is_parsed(text));
    let (encoding, content) = match (parsed.and_then(|text| serde_json::from_str::<Value>(text).ok()), text) {
        (Some(value), _) => ("json", value),
        (None, Some(text)) => ("text", Value::String(text.to_owned())),
        (None, None) => ("base64", Value::String(BASE64.encode(bytes))),
    };
    json!({
        "name": name, "media_type": media_type, "bytes": bytes.len(), "encoding": encoding, "content": content,
    })
}

/// Truncates a value for display: long texts and lists end with the number of omitted items.
pub fn cut(value: &Value) -> Value {
    const TEXT: usize = 2000;
    const ITEMS: usize = 50;
    match value {
        Value::String(text) if text.chars().count() > TEXT => {
            let mut short: String = text.chars().take(TEXT).collect();
            short.push_str(&format!("… {} more characters", text.chars().count() - TEXT));
            Value::String(short)
        }
        Value::Array(items) => {
            let mut short: Vec<Value> = items.iter().take(ITEMS).map(cut).collect();
            if items.len() > ITEMS {
                short.push(Value::String(format!("… {} more", items.len() - ITEMS)));
            }
            Value::Array(short)
        }
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, value)| (name.clone(), cut(value))).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_encoding_follows_the_file() {
        let of = of_bytes;
        let json = of("a.json", b"{\"rows\": [1, 2]}");
        assert_eq!((json["encoding"].as_str(), &json["content"]["rows"][1]), (Some("json"), &json!(2)));
        let text = of("a.csv", b"a,b\n");
        assert_eq!((text["encoding"].as_str(), text["content"].as_str()), (Some("text"), Some("a,b\n")));
        assert_eq!(of("broken.json", b"{")["encoding"], "text");
        let nested = |levels| [vec![b'['; levels], vec![b']'; levels]].concat();
        assert_eq!(of("deep.json", &nested(64))["encoding"], "json");
        assert_eq!(of("deep.json", &nested(65))["encoding"], "text");
        let list = |values: usize| format!("[{}0]", "0,".repeat(values - 2)).into_bytes();
        assert_eq!(of("long.json", &list(200_000))["encoding"], "json");
        assert_eq!(of("long.json", &list(200_001))["encoding"], "text");
        let binary = of("a.bin", &[0, 255]);
        assert_eq!((binary["encoding"].as_str(), binary["content"].as_str()), (Some("base64"), Some("AP8=")));
    }

    #[test]
    fn files_beyond_the_limit_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::File::create(dir.path().join("large")).unwrap().set_len(MAX_FILE_BYTES + 1).unwrap();
        let folder = Folder::follow(dir.path()).unwrap();
        assert_eq!(read_inside(&folder, "large", "large").unwrap_err().code, Code::PayloadTooLarge);
    }

    #[test]
    fn truncated_value_states_the_omitted_length() {
        let many: Vec<Value> = (0..60).map(Value::from).collect();
        let short = cut(&json!({ "rows": many, "text": "x".repeat(2500) }));
        assert_eq!(short["rows"][50], "… 10 more");
        assert!(short["text"].as_str().unwrap().ends_with("… 500 more characters"));
    }
}
