//! Validation of execution options.

use serde_json::{Map, Value};

use super::{Code, Error, ExecutionOptions, is_trace_id};
use skills_base::duration::MAX_SECONDS;

/// Maximum length of a name that a caller chooses (idempotency key, trace id, signal, assignee), in bytes.
pub(crate) const MAX_KEY_LEN: usize = 255;
/// Maximum number of labels of a run.
const MAX_LABELS: usize = 32;
/// Maximum length of a label's name in bytes.
const MAX_LABEL_NAME: usize = 63;

impl ExecutionOptions {
    /// Checks every option.
    ///
    /// # Errors
    /// Returns `invalid_request`, naming the option.
    pub(crate) fn check(&self) -> Result<(), Error> {
        for (what, text) in [("idempotency key", &self.idempotency_key), ("trace id", &self.trace_id)] {
            // An idempotency key has the form of a trace id.
            if let Some(text) = text.as_ref().filter(|text| !is_trace_id(text)) {
                let message =
                    format!("the {what} is {text:?}; allowed: 1 to {MAX_KEY_LEN} visible ASCII characters");
                return Err(Error::new(Code::InvalidRequest, message));
            }
        }
        if self.labels.len() > MAX_LABELS {
            let message = format!("{} labels; the maximum is {MAX_LABELS}", self.labels.len());
            return Err(Error::new(Code::InvalidRequest, message));
        }
        for (name, value) in &self.labels {
            let fits = name.starts_with(|c: char| c.is_ascii_lowercase())
                && name.len() <= MAX_LABEL_NAME
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.".contains(&byte));
            if !fits {
                let message = format!(
                    "{name:?} is not a valid label name; allowed: a lowercase letter, then up to {} of a-z, 0-9, _, - and .",
                    MAX_LABEL_NAME - 1
                );
                return Err(Error::new(Code::InvalidRequest, message));
            }
            if value.is_empty() || value.len() > MAX_KEY_LEN || value.chars().any(char::is_control) {
                let message = format!(
                    "the label {name} has the value {value:?}; allowed: 1 to {MAX_KEY_LEN} bytes on one line"
                );
                return Err(Error::new(Code::InvalidRequest, message));
            }
        }
        if let Some(seconds) = self.expires_in.filter(|seconds| !(1..=MAX_SECONDS).contains(seconds)) {
            let message =
                format!("`expires_in`: {seconds} is out of range; allowed: 1 to {MAX_SECONDS} seconds");
            return Err(Error::new(Code::InvalidRequest, message));
        }
        Ok(())
    }
}

/// Checks that a value contains no NUL character, which not every store can compare.
///
/// # Errors
/// Returns `invalid_request`, naming the field.
pub(crate) fn ensure_without_nul(name: &str, fields: &Map<String, Value>) -> Result<(), Error> {
    fields.iter().try_for_each(|(field, value)| {
        let found = if field.contains('\0') { Some(String::new()) } else { nul_in(value) };
        found.map_or(Ok(()), |path| {
            let field = field.replace('\0', "\\u0000");
            Err(Error::new(
                Code::InvalidRequest,
                format!("`{name}.{field}{path}`: a NUL character is not allowed"),
            ))
        })
    })
}

/// Returns the path of the first text or key with a NUL character below a value (`[2].name`).
pub(crate) fn nul_in(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => text.contains('\0').then(String::new),
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(n, item)| Some(format!("[{n}]{}", nul_in(item)?)))
        }
        Value::Object(fields) => fields.iter().find_map(|(field, value)| {
            if field.contains('\0') {
                Some(String::new())
            } else {
                Some(format!(".{field}{}", nul_in(value)?))
            }
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nul_error_names_its_field() {
        let check = |value: Value| ensure_without_nul("inputs", value.as_object().unwrap());
        assert!(check(json!({ "q": ["\\u0000", { "a": 1 }], "n": null })).is_ok());
        for (value, name) in [
            (json!({ "q": "a\0" }), "`inputs.q`"),
            (json!({ "q": [1, { "a": { "b": "\0" } }] }), "`inputs.q[1].a.b`"),
            (json!({ "q": { "a\0": 1 } }), "`inputs.q`"),
            (json!({ "a\0": 1 }), "`inputs.a\\u0000`"),
        ] {
            let error = check(value).unwrap_err();
            assert!(error.code == Code::InvalidRequest && error.message.contains(name), "{error}");
        }
    }

    #[test]
    fn keys_and_waits_have_limits() {
        let with =
            |key: &str| ExecutionOptions { idempotency_key: Some(key.to_owned()), ..Default::default() };
        assert!(with("order-7").check().is_ok());
        for wrong in ["", "a b", "a\n", &"x".repeat(256), "ü"] {
            assert!(with(wrong).check().is_err(), "{wrong:?}");
        }
        let labeled = |name: &str, value: &str| ExecutionOptions {
            labels: [(name.to_owned(), value.to_owned())].into(),
            ..Default::default()
        };
        assert!(labeled("env", "prod west").check().is_ok());
        for (name, value) in [("", "x"), ("Env", "x"), ("a b", "x"), ("env", ""), ("env", "a\nb"), ("1", "x")]
        {
            assert!(labeled(name, value).check().is_err(), "{name} {value:?}");
        }
        let waiting = |seconds| ExecutionOptions { expires_in: Some(seconds), ..Default::default() };
        assert!(waiting(1).check().is_ok() && waiting(MAX_SECONDS).check().is_ok());
        for seconds in [0, MAX_SECONDS + 1, 9_223_372_036_854_775, u64::MAX] {
            assert!(waiting(seconds).check().unwrap_err().message.contains("expires_in"), "{seconds}");
        }
    }
}
