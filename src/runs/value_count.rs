//! Limits the number of values in JSON: each takes 32 bytes of memory and more wherever it is parsed, however short its
//! text is.

/// Maximum number of values and keys in the JSON of a request or of a response.
pub const MAX_JSON_VALUES: usize = 200_000;

/// Returns whether JSON has at most [`MAX_JSON_VALUES`] values and keys, without parsing it.
pub fn has_few_values(json: &[u8]) -> bool {
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
    separators < MAX_JSON_VALUES
}
