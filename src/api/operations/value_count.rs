//! Limits the number of values in the JSON of a request.

use crate::{Code, Error};
use skills_runs::{MAX_JSON_VALUES, has_few_values};

/// Checks the number of values and keys before they are parsed.
///
/// # Errors
/// Returns `payload_too_large` for more than 200,000.
pub fn ensure_few_values(json: &[u8]) -> Result<(), Error> {
    if has_few_values(json) {
        return Ok(());
    }
    let message =
        format!("the body has more than {MAX_JSON_VALUES} JSON values and keys; send large data as text");
    Err(Error::new(Code::PayloadTooLarge, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(values: usize) -> String {
        format!("[{}]", vec!["0"; values].join(","))
    }

    #[test]
    fn values_and_keys_count_but_not_characters_of_strings() {
        assert!(ensure_few_values(list(MAX_JSON_VALUES - 1).as_bytes()).is_ok());
        let error = ensure_few_values(list(MAX_JSON_VALUES).as_bytes()).unwrap_err();
        assert_eq!(error.code, Code::PayloadTooLarge);
        let nested = "[".repeat(MAX_JSON_VALUES);
        assert!(ensure_few_values(nested.as_bytes()).is_err());
        let text = format!("{{\"text\": \"\\\\\\\"{}\"}}", ",".repeat(MAX_JSON_VALUES));
        serde_json::from_str::<serde_json::Value>(&text).unwrap();
        assert!(ensure_few_values(text.as_bytes()).is_ok());
    }
}
