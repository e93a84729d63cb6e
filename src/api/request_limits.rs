//! Limits of requests, checked before the core processes them, whichever adapter received them.

use std::error::Error as StdError;
use std::iter;

use http_body_util::LengthLimitError;

use super::{Code, Error};
use skills_discovery::Request;

/// Maximum number of results of a request.
pub const MAX_RESULTS: usize = 1000;
/// Maximum length of an intent in bytes.
const MAX_INTENT_BYTES: usize = 20_000;
/// Maximum length of a word in characters.
const MAX_WORD_LEN: usize = 1000;

/// Returns whether a body could not be read because it is larger than its limit.
pub fn exceeds_length_limit(error: &(dyn StdError + 'static)) -> bool {
    iter::successors(Some(error), |&error| error.source()).any(<dyn StdError>::is::<LengthLimitError>)
}

/// Validates a request and replaces control sequences of terminals in it.
///
/// # Errors
/// Returns `invalid_request`, naming the limit.
pub fn admit(request: Request) -> Result<Request, Error> {
    if !(1..=MAX_RESULTS).contains(&request.limit) {
        let message = format!("`limit`: {} is out of range; allowed: 1 to {MAX_RESULTS}", request.limit);
        return Err(refused(message));
    }
    if request.filter.len() > MAX_INTENT_BYTES {
        return Err(refused(format!(
            "the filter has {} bytes; the maximum is {MAX_INTENT_BYTES}",
            request.filter.len()
        )));
    }
    Ok(Request { intent: intent(&request.intent)?, ..request })
}

/// Validates an intent and replaces control sequences in it by spaces.
///
/// # Errors
/// Returns `invalid_request`, naming the limit.
pub fn intent(text: &str) -> Result<String, Error> {
    if text.len() > MAX_INTENT_BYTES {
        return Err(refused(format!(
            "the request has {} bytes; the maximum is {MAX_INTENT_BYTES}",
            text.len()
        )));
    }
    let text_only = without_sequences(text);
    let longest = text_only.split_whitespace().map(|word| word.chars().count()).max().unwrap_or(0);
    if longest > MAX_WORD_LEN {
        return Err(refused(format!(
            "a word of the request has {longest} characters; the maximum is {MAX_WORD_LEN}"
        )));
    }
    Ok(text_only)
}

fn refused(message: String) -> Error {
    Error::new(Code::InvalidRequest, message)
}

/// Replaces every control sequence of a terminal (ECMA-48) by as many spaces as it has bytes: offsets in the text are
/// preserved, and `31m` of `ESC [ 31 m` is not a word.
fn without_sequences(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = sequence(rest);
        if length == 0 {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        } else {
            out.extend(std::iter::repeat_n(' ', length));
            rest = &rest[length..];
        }
    }
    out
}

/// Returns the length in bytes of the control sequence at the beginning of the text; 0 if there is none.
fn sequence(text: &str) -> usize {
    let mut chars = text.chars();
    let (kind, start) = match chars.next() {
        Some('\u{1b}') => match chars.next() {
            // A two-character introducer corresponds to the C1 control 0x40 higher.
            Some(second @ '@'..='_') => (char::from_u32(u32::from(second) + 0x40), 2),
            _ => (None, 1),
        },
        Some(c @ '\u{80}'..='\u{9f}') => (Some(c), c.len_utf8()),
        _ => return 0,
    };
    let body = &text[start..];
    start
        + match kind {
            Some('\u{9b}') => parameters(body),
            Some('\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}') => string(body),
            Some(_) => 0,
            None => short(body),
        }
}

/// Returns the length of the rest of a control sequence (CSI): parameters, intermediates, one final byte.
fn parameters(body: &str) -> usize {
    let middle = body.bytes().take_while(|byte| matches!(byte, b' '..=b'?')).count();
    middle + usize::from(matches!(body.as_bytes().get(middle), Some(b'@'..=b'~')))
}

/// Returns the length of the rest of a control string (OSC, DCS, …) with its terminator. An unterminated one hides
/// nothing of the text after it.
fn string(body: &str) -> usize {
    for (at, c) in body.char_indices() {
        match c {
            '\u{7}' | '\u{9c}' => return at + c.len_utf8(),
            '\u{1b}' if body[at..].starts_with("\u{1b}\\") => return at + 2,
            '\u{1b}' | '\n' => break,
            _ => {}
        }
    }
    0
}

/// Returns the length of the rest of a short escape sequence: intermediates and a final byte, as in `ESC ( B`.
fn short(body: &str) -> usize {
    let middle = body.bytes().take_while(|byte| matches!(byte, b'!'..=b'/')).count();
    if middle == 0 {
        // Sequences such as `ESC c`; a space or a letter of another script after a lone ESC is text.
        return usize::from(matches!(body.as_bytes().first(), Some(b'0'..=b'?' | b'`'..=b'~')));
    }
    middle + usize::from(matches!(body.as_bytes().get(middle), Some(b'0'..=b'~')))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn request(limit: usize) -> Result<Request, Error> {
        admit(Request { intent: "read a pdf".into(), limit, ..Request::default() })
    }

    #[test]
    fn a_limit_outside_1_to_1000_is_refused() {
        for limit in [0, 1001, 999_999_999_999, usize::MAX] {
            let error = request(limit).unwrap_err();
            assert_eq!(error.code, Code::InvalidRequest);
            assert!(error.message.contains("1 to 1000"), "{error}");
        }
        assert!(request(1).is_ok() && request(1000).is_ok());
    }

    #[test]
    fn a_long_intent_and_a_long_word_name_their_limit() {
        assert!(intent(&"read ".repeat(4000)).is_ok());
        let long = intent(&"read ".repeat(4001)).unwrap_err();
        assert!(long.code == Code::InvalidRequest && long.message.contains("20000"), "{long}");
        assert!(intent(&"表".repeat(1000)).is_ok());
        let word = intent(&"表".repeat(1001)).unwrap_err();
        assert!(word.code == Code::InvalidRequest && word.message.contains("1000"), "{word}");
    }

    #[test]
    fn control_sequences_are_not_words_and_offsets_stay() {
        let words = |text: &str| -> Vec<String> {
            let text_only = intent(text).unwrap();
            assert_eq!(text_only.len(), text.len());
            text_only.split_whitespace().map(str::to_owned).collect()
        };
        assert_eq!(words("\u{1b}[31mread\u{1b}[0m a pdf"), ["read", "a", "pdf"]);
        assert_eq!(words("\u{9b}1;31mread"), ["read"]);
        assert_eq!(words("\u{1b}]0;title\u{7}read \u{1b}]8;;http://x\u{1b}\\pdf"), ["read", "pdf"]);
        assert_eq!(words("\u{1b}(Bread\u{1b}7 it"), ["read", "it"]);
        assert_eq!(words("\u{1b}]0;never closed"), ["0;never", "closed"]);
        assert_eq!(words("表データ \u{1b}表"), ["表データ", "表"]);
    }

    proptest! {
        #[test]
        fn any_text_keeps_its_length(text in "[\u{1b}\u{9b}\u{9d}\u{7}\\]\\[0-9;a-zA-Z表 \n(]{0,40}") {
            let text_only = without_sequences(&text);
            prop_assert_eq!(text_only.len(), text.len());
            let left = text_only.contains(['\u{1b}', '\u{9b}']);
            prop_assert!(!left);
        }
    }
}
