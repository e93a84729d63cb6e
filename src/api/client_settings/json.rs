//! Settings files in JSON, also with comments.

use serde_json::{Map, Value};

/// Parses a JSON object.
pub(super) fn object(text: &str) -> Result<Map<String, Value>, String> {
    // A project's file can be a link: the message has nothing of its content.
    serde_json::from_str(text)
        .map_err(|error| format!("not a JSON object, see line {}, column {}", error.line(), error.column()))
}

/// Returns the object that a member of an object is, if there is one.
pub(super) fn member<'a>(
    settings: &'a Map<String, Value>,
    key: &str,
) -> Result<Option<&'a Map<String, Value>>, String> {
    match settings.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(member)) => Ok(Some(member)),
        Some(_) => Err(format!("`{key}` is not an object")),
    }
}

/// Returns the list that a member of an object is; an empty one if there is none.
pub(super) fn list<'a>(settings: &'a Map<String, Value>, key: &str) -> Result<&'a [Value], String> {
    match settings.get(key) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(list)) => Ok(list),
        Some(_) => Err(format!("`{key}` is not a list")),
    }
}

/// Replaces comments outside strings by blanks, so that positions stay, and, if asked, commas before a closing bracket.
pub(super) fn without_comments(text: &str, commas: bool) -> String {
    let mut out: Vec<u8> = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut at = 0;
    // The last character of a value or bracket, and the place of a comma after it.
    let (mut previous, mut comma) = (b'[', None);
    while let Some(&byte) = bytes.get(at) {
        let rest = &bytes[at..];
        let length = match byte {
            b'"' => string_length(rest),
            b'/' => comment_length(rest).unwrap_or(1),
            _ => 1,
        };
        let token = &rest[..length];
        at += length;
        if byte == b'/' && length > 1 {
            out.extend(token.iter().map(|byte| if *byte == b'\n' { b'\n' } else { b' ' }));
            continue;
        }
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => {}
            b',' if commas && !matches!(previous, b'[' | b'{' | b',' | b':') => {
                (previous, comma) = (byte, Some(out.len()));
            }
            _ => {
                if let (b']' | b'}', Some(comma)) = (byte, comma)
                    && let Some(comma) = out.get_mut(comma)
                {
                    *comma = b' ';
                }
                (previous, comma) = (byte, None);
            }
        }
        out.extend_from_slice(token);
    }
    // Only whole comments and commas were replaced.
    String::from_utf8(out).unwrap_or_default()
}

/// Returns the length of a string with its quotation marks; of all that follows if it is not closed.
fn string_length(bytes: &[u8]) -> usize {
    let mut escaped = false;
    for (at, byte) in bytes.iter().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    bytes.len()
}

/// Returns the length of the comment that begins here; `None` if there is none, or one that is not closed.
fn comment_length(bytes: &[u8]) -> Option<usize> {
    match bytes.get(1)? {
        b'/' => Some(bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len())),
        b'*' => bytes.windows(2).skip(2).position(|pair| pair == b"*/").map(|at| at + 4),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::without_comments;

    #[test]
    fn comments_become_blanks() {
        let same = [
            "",
            "{}",
            r#"{"a": "// no /* comment */", "b": "\"//"}"#,
            r#"["ä\\", "/"]"#,
            r#"{"a": 1} /* not closed"#,
            "/*/",
            "/",
            r#"["open // "#,
        ];
        for text in same {
            assert_eq!(without_comments(text, false), text);
            assert_eq!(without_comments(text, true), text);
        }
        for (text, expected) in [
            ("{ // ä\n\"a\": 1}", "{      \n\"a\": 1}"),
            ("{/* a\n*/\"b\": 1/**/}//", "{    \n  \"b\": 1    }  "),
            ("[1, // 2,\r\n3]", "[1,       \n3]"),
        ] {
            assert_eq!(without_comments(text, false), expected);
            assert_eq!(without_comments(text, true), expected);
        }
    }

    #[test]
    fn commas_before_closing_brackets_are_removed_if_asked() {
        let text = r#"{"a": ["],", 1 , ], "b": {}, /* c */ }"#;
        assert_eq!(without_comments(text, true), r#"{"a": ["],", 1   ], "b": {}          }"#);
        assert!(without_comments(text, false).contains("1 , ]"));
        for invalid in ["[,]", "[1,,]", "{,}", r#"{"a":,}"#] {
            let read = without_comments(invalid, true);
            assert!(serde_json::from_str::<serde_json::Value>(&read).is_err(), "{read}");
        }
    }
}
