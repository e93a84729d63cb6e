//! Limits the number of values in the JSON of a request: each takes 32 bytes of memory and more wherever it is parsed
//! again, however short its text is.

use crate::{Code, Error};

/// Maximum number of values and keys in the JSON of a request.
const MAX_VALUES: usize = 200_000;

/// Checks the number of values and keys before they are parsed.
///
/// # Errors
/// Returns `payload_too_large` for more than 200,000.
pub fn ensure_few_values(json: &[u8]) -> Result<(), Error> {
    // Each value but the first follows one of these.
    let (mut separators, mut in_string, mut is_escaped) = (0, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_string,
            b'"' => in_string = !in_string,
            b',' | b':' | b'[' | b'{' if !in_string => separators += 1,
            _ => {}
        }
    }
    if separators < MAX_VALUES {
        return Ok(());
    }
    let message =
        format!("the body has more than {MAX_VALUES} JSON values and keys; send large data as text");
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
        assert!(ensure_few_values(list(MAX_VALUES - 1).as_bytes()).is_ok());
        let error = ensure_few_values(list(MAX_VALUES).as_bytes()).unwrap_err();
        assert_eq!(error.code, Code::PayloadTooLarge);
        let nested = "[".repeat(MAX_VALUES);
        assert!(ensure_few_values(nested.as_bytes()).is_err());
        let text = format!("{{\"text\": \"\\\\\\\"{}\"}}", ",".repeat(MAX_VALUES));
        serde_json::from_str::<serde_json::Value>(&text).unwrap();
        assert!(ensure_few_values(text.as_bytes()).is_ok());
    }
}
