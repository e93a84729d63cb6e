//! The content of a file as a skill gets it: JSON where it is JSON, text where it is text, else base64, with its type
//! and size.

use std::path::Path;

use serde_json::{Value, json};

use crate::engine::Artifact;
use crate::gateway::{Code, Error};
use crate::skill::open_regular;

/// Largest file that is handed over, bytes: it is kept with the run and given to scripts on stdin.
const LARGEST: u64 = 8 << 20;

/// The content of a file that is known as `artifact`.
///
/// # Errors
/// `payload_too_large`, naming the limit; `target_not_found` where it cannot be read.
pub(super) fn of_artifact(path: &Path, artifact: &Artifact) -> Result<Value, Error> {
    let bytes = read(path)?;
    Ok(value(&artifact.name, &artifact.media_type, &bytes))
}

/// The content of any file.
///
/// # Errors
/// As [`of_artifact`].
pub(super) fn of_file(path: &Path, name: &str) -> Result<Value, Error> {
    let bytes = read(path)?;
    let media_type = match std::str::from_utf8(&bytes) {
        Ok(text) if is_json(name, text) => "application/json",
        Ok(text) if !text.contains('\0') => "text/plain",
        _ => "application/octet-stream",
    };
    Ok(value(name, media_type, &bytes))
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    use std::io::Read as _;
    let unreadable = |e: std::io::Error| {
        Error::new(Code::TargetNotFound, format!("{} cannot be read: {e}", path.display()))
    };
    let (file, metadata) = open_regular(path).map_err(unreadable)?;
    let large = |bytes: u64| {
        let message = format!(
            "{} has {bytes} bytes; at most {LARGEST} are handed over: attach a smaller file",
            path.display()
        );
        Error::new(Code::PayloadTooLarge, message)
    };
    if metadata.len() > LARGEST {
        return Err(large(metadata.len()));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    // It may have grown since it was opened.
    if bytes.len() as u64 > LARGEST { Err(large(bytes.len() as u64)) } else { Ok(bytes) }
}

fn is_json(name: &str, text: &str) -> bool {
    let named = Path::new(name).extension().is_some_and(|end| end.eq_ignore_ascii_case("json"));
    named && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

fn value(name: &str, media_type: &str, bytes: &[u8]) -> Value {
    let text = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    let parsed = text.filter(|text| is_json(name, text) || media_type == "application/json");
    let (encoding, content) = match (parsed.and_then(|text| serde_json::from_str::<Value>(text).ok()), text) {
        (Some(value), _) => ("json", value),
        (None, Some(text)) => ("text", Value::String(text.to_owned())),
        (None, None) => ("base64", Value::String(base64(bytes))),
    };
    json!({
        "name": name, "media_type": media_type, "bytes": bytes.len(), "encoding": encoding, "content": content,
    })
}

/// The standard alphabet with padding (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            if place <= chunk.len() {
                let index = (group >> (18 - 6 * place)) & 63;
                out.push(char::from(ALPHABET[index as usize]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

/// A value cut for a screen: long texts and lists end in how much more there is.
pub(super) fn cut(value: &Value) -> Value {
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
    fn base64_is_that_of_the_standard() {
        let vectors = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (text, wanted) in vectors {
            assert_eq!(base64(text.as_bytes()), wanted);
        }
        assert_eq!(base64(&[0xff, 0xfe, 0xfd]), "//79");
    }

    #[test]
    fn a_file_comes_as_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            of_file(&path, name).unwrap()
        };
        let json = of("a.json", b"{\"rows\": [1, 2]}");
        assert_eq!((json["encoding"].as_str(), &json["content"]["rows"][1]), (Some("json"), &json!(2)));
        let text = of("a.csv", b"a,b\n");
        assert_eq!((text["encoding"].as_str(), text["content"].as_str()), (Some("text"), Some("a,b\n")));
        assert_eq!(of("broken.json", b"{")["encoding"], "text");
        let binary = of("a.bin", &[0, 255]);
        assert_eq!((binary["encoding"].as_str(), binary["content"].as_str()), (Some("base64"), Some("AP8=")));
    }

    #[test]
    fn what_is_too_large_is_refused_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large");
        std::fs::File::create(&path).unwrap().set_len(LARGEST + 1).unwrap();
        assert_eq!(of_file(&path, "large").unwrap_err().code, Code::PayloadTooLarge);
    }

    #[test]
    fn a_cut_value_says_how_much_is_missing() {
        let many: Vec<Value> = (0..60).map(Value::from).collect();
        let short = cut(&json!({ "rows": many, "text": "x".repeat(2500) }));
        assert_eq!(short["rows"][50], "… 10 more");
        assert!(short["text"].as_str().unwrap().ends_with("… 500 more characters"));
    }
}
