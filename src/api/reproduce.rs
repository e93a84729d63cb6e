//! An attachment as a command line and as an HTTP request, for users to copy and repeat.

use serde_json::{Map, Value, json};

use crate::AttachRequest;
use crate::local_files::{LocalFile, stored_name};
use skills_config::{arguments, option, quoted};

/// The address at which `skills serve` listens unless it is given another.
pub const DEFAULT_ADDRESS: &str = "http://127.0.0.1:8080";

/// Returns the command line.
pub fn cli(skill: &str, request: &AttachRequest) -> String {
    let mut options =
        vec![option("--target-type", &request.target_type), option("--target-ref", &request.target_ref)];
    let inputs = request.inputs.iter();
    options.extend(inputs.map(|(name, value)| option("--input", &format!("{name}={}", spelt(value)))));
    format!("skills attach {}", arguments([skill], &options.join(" ")))
}

/// Returns the HTTP request to the service at this address, without a trailing `/`.
pub fn curl(address: &str, skill: &str, request: &AttachRequest) -> String {
    let mut body = Map::new();
    body.insert("target_type".to_owned(), json!(request.target_type));
    body.insert("target_ref".to_owned(), json!(request.target_ref));
    body.insert("inputs".to_owned(), Value::Object(request.inputs.clone()));
    format!(
        "curl -X POST {} -H 'content-type: application/json' -d {}",
        quoted(&format!("{address}/v1/skills/{}/attach", percent(skill))),
        quoted(&Value::Object(body).to_string())
    )
}

/// Returns the request that stores a local file, which an attachment names by its digest.
pub(crate) fn upload(address: &str, file: &LocalFile) -> String {
    let name = Value::from(stored_name(&file.path));
    let start = format!("{{\"name\":{name},\"encoding\":\"base64\",\"content\":\"");
    format!(
        "curl -X POST {} -H 'content-type: application/json' -d {}\"$(base64 < {} | tr -d '\\n')\"{}",
        quoted(&format!("{address}/v1/artifacts")),
        quoted(&start),
        quoted(&file.path.display().to_string()),
        quoted("\"}")
    )
}

/// Formats a value for `--input`: a string unchanged (a leading `@` would name a file), anything else as JSON.
fn spelt(value: &Value) -> String {
    match value {
        Value::String(text) if text.starts_with('@') => format!("@{text}"),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Percent-encodes a path segment (RFC 3986, section 3.3).
fn percent(text: &str) -> String {
    let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~@".contains(&byte);
    let escape =
        |byte: u8| if is_unreserved(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_can_be_copied_into_a_shell() {
        let inputs = json!({ "note": "it's $HOME", "limit": 0.8, "handle": "@ana" });
        let request = AttachRequest {
            skill: "table-audit".to_owned(),
            target_type: "output".to_owned(),
            target_ref: "0198/extract".to_owned(),
            inputs: inputs.as_object().cloned().unwrap_or_default(),
            options: crate::ExecutionOptions::default(),
            started_by: None,
            sessions: crate::SessionAccess::default(),
            local_files: None,
        };
        assert_eq!(
            cli("table-audit", &request),
            "skills attach table-audit --target-type output --target-ref 0198/extract \
             --input 'note=it'\\''s $HOME' --input limit=0.8 --input handle=@@ana"
        );
        let curl = curl("https://gate.example/skills", "table audit", &request);
        assert!(
            curl.starts_with("curl -X POST https://gate.example/skills/v1/skills/table%20audit/attach -H "),
            "{curl}"
        );
        assert!(curl.ends_with("}}'"), "{curl}");
    }
}
