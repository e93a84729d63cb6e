//! Makes text of a bundle safe to display: characters that could control a terminal or are invisible become visible.
//!
//! Control characters are replaced by their pictures (`␛`), other invisible characters by their codes (`⟨U+202E⟩`).
//! Clean text is returned unchanged.

use std::borrow::Cow;
use std::fmt::Write as _;

use icu_properties::props::{BidiControl, DefaultIgnorableCodePoint, Emoji, UnifiedIdeograph};
use icu_properties::{CodePointSetData, CodePointSetDataBorrowed};

use super::slice;

const BIDI_CONTROL: CodePointSetDataBorrowed<'static> = CodePointSetData::new::<BidiControl>();
const IGNORABLE: CodePointSetDataBorrowed<'static> = CodePointSetData::new::<DefaultIgnorableCodePoint>();
const EMOJI: CodePointSetDataBorrowed<'static> = CodePointSetData::new::<Emoji>();
const UNIFIED_IDEOGRAPH: CodePointSetDataBorrowed<'static> = CodePointSetData::new::<UnifiedIdeograph>();

/// Makes one line safe: line breaks and tabs become spaces.
pub fn line(text: &str) -> Cow<'_, str> {
    rewrite(text, false)
}

/// Makes several lines safe: line feeds stay, `CR LF` becomes a line feed, a tab becomes four spaces.
pub fn block(text: &str) -> Cow<'_, str> {
    rewrite(text, true)
}

/// Kind of an invisible character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Hidden {
    /// C0 and C1 controls, DEL.
    Control,
    /// Changes the order in which characters are shown.
    Bidi,
    /// Has no width.
    ZeroWidth,
    /// Unicode tags (U+E0000 to U+E007F): an invisible copy of ASCII.
    Tag,
    /// A variation selector without effect.
    Selector,
}

impl Hidden {
    /// Returns the singular and the plural for messages.
    pub fn name(self) -> (&'static str, &'static str) {
        match self {
            Self::Control => ("a control character", "control characters"),
            Self::Bidi => ("a bidirectional control character", "bidirectional control characters"),
            Self::ZeroWidth => ("a zero-width character", "zero-width characters"),
            Self::Tag => ("a Unicode tag character", "Unicode tag characters"),
            Self::Selector => ("a variation selector without effect", "variation selectors without effect"),
        }
    }
}

/// Returns the kind of an invisible character, or `None`; `before` is the preceding character. Line feed, CR and tab
/// are not invisible.
///
/// Follows Unicode's tables: C0 and C1, `Bidi_Control` and `Default_Ignorable_Code_Point`, and in addition line and
/// paragraph separators and annotation marks, which are not visible either. Variation selectors are exempt if they
/// have an effect: the presentation of an emoji, or the form of an ideograph.
pub(super) fn hidden(c: char, before: Option<char>) -> Option<Hidden> {
    match c {
        '\n' | '\r' | '\t' | ' '..='~' => None,
        _ if c.is_control() => Some(Hidden::Control),
        _ if BIDI_CONTROL.contains(c) => Some(Hidden::Bidi),
        '\u{2028}' | '\u{2029}' | '\u{fff9}'..='\u{fffb}' => Some(Hidden::ZeroWidth),
        _ if !IGNORABLE.contains(c) => None,
        '\u{fe0e}' | '\u{fe0f}' if before.is_some_and(|before| EMOJI.contains(before)) => None,
        '\u{e0100}'..='\u{e01ef}' if before.is_some_and(|before| UNIFIED_IDEOGRAPH.contains(before)) => None,
        '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => Some(Hidden::Selector),
        '\u{e0000}'..='\u{e0fff}' => Some(Hidden::Tag),
        _ => Some(Hidden::ZeroWidth),
    }
}

/// Returns whether a character is invisible in any position. Spaces and line breaks count as visible.
pub fn is_invisible(c: char) -> bool {
    hidden(c, None).is_some()
}

/// Returns whether a byte can only belong to clean text; everything else is checked in detail.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~')
}

fn rewrite(text: &str, keep_lines: bool) -> Cow<'_, str> {
    let clean = text.bytes().all(|byte| is_plain(byte) || (keep_lines && byte == b'\n')) || {
        let mut before = None;
        text.chars().all(|c| {
            let clean = hidden(c, before).is_none() && !matches!(c, '\r' | '\t') && (keep_lines || c != '\n');
            before = Some(c);
            clean
        })
    };
    if clean {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut before = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' if keep_lines => out.push('\n'),
            '\r' if chars.peek() == Some(&'\n') => {}
            '\r' => out.push('␍'),
            '\t' if keep_lines => out.push_str("    "),
            '\n' | '\t' => out.push(' '),
            _ if hidden(c, before).is_some() => show(c, &mut out),
            _ => out.push(c),
        }
        before = Some(c);
    }
    Cow::Owned(out)
}

/// Escapes the invisible characters of a JSON text (`\u009b`); its value stays the same.
pub fn json(text: &str) -> Cow<'_, str> {
    let mut before = None;
    let mut is_clean = true;
    let mut out = String::new();
    for (at, c) in text.char_indices() {
        if hidden(c, before).is_some() {
            if is_clean {
                out.reserve(text.len() + 16);
                out.push_str(slice(text, ..at));
                is_clean = false;
            }
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else if !is_clean {
            out.push(c);
        }
        before = Some(c);
    }
    if is_clean { Cow::Borrowed(text) } else { Cow::Owned(out) }
}

fn show(c: char, out: &mut String) {
    match c {
        '\0'..='\u{1f}' => out.extend(char::from_u32(0x2400 + u32::from(c))),
        '\u{7f}' => out.push('␡'),
        _ => {
            // Writing to a string cannot fail.
            let _ = write!(out, "⟨U+{:04X}⟩", u32::from(c));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn clean_text_is_borrowed() {
        for text in ["plain", "déjà vu — 表 ❤\u{fe0f} 1\u{fe0f}\u{20e3} ⚠\u{fe0f} 👍🏽", ""] {
            assert!(matches!(line(text), Cow::Borrowed(_)), "{text}");
        }
        assert!(matches!(block("a\nb"), Cow::Borrowed(_)));
    }

    #[test]
    fn json_is_escaped_and_keeps_its_value() {
        let value =
            serde_json::json!({"a": "x\u{9b}31m\u{7f}\u{202e}\u{e0041} ❤\u{fe0f} 表", "b": ["déjà\n"]});
        let text = serde_json::to_string_pretty(&value).unwrap();
        let safe = json(&text);
        assert!(safe.contains("\\u009b31m\\u007f\\u202e\\udb40\\udc41 ❤\u{fe0f} 表"), "{safe}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), value);
        assert!(matches!(json("{\"a\": 1}"), Cow::Borrowed(_)));
    }

    #[test]
    fn control_and_invisible_characters_become_visible() {
        assert_eq!(line("\u{1b}]0;owned\u{7}"), "␛]0;owned␇");
        assert_eq!(line("a\u{202e}b\u{200b}"), "a⟨U+202E⟩b⟨U+200B⟩");
        assert_eq!(line("\u{9b}31m\u{e0041}x\u{fe01}"), "⟨U+009B⟩31m⟨U+E0041⟩x⟨U+FE01⟩");
        assert_eq!(line("a\u{fe0f}❤\u{fe0f}\u{fe0f}"), "a⟨U+FE0F⟩❤\u{fe0f}⟨U+FE0F⟩");
        assert_eq!(line("one\r\ntwo\tthree"), "one two three");
        assert_eq!(block("one\r\ntwo\tthree\rx"), "one\ntwo    three␍x");
    }

    fn all_chars() -> impl Iterator<Item = char> {
        (0..=u32::from(char::MAX)).filter_map(char::from_u32)
    }

    #[test]
    fn every_invisible_code_point_becomes_visible() {
        let controls = |c: char| matches!(c, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}');
        let listed = |c: char| controls(c) || BIDI_CONTROL.contains(c) || IGNORABLE.contains(c);
        assert!(all_chars().filter(|c| listed(*c)).count() > 4_000);
        for c in all_chars() {
            let text = format!("x{c}y");
            let replaced = listed(c) || matches!(c, '\u{2028}' | '\u{2029}' | '\u{fff9}'..='\u{fffb}');
            assert_eq!(line(&text) != text, replaced, "{:04X}", u32::from(c));
            assert_eq!(line(&text).contains(c), !replaced, "{:04X}", u32::from(c));
            assert_eq!(block(&text) != text, replaced && c != '\n', "{:04X}", u32::from(c));
            assert_eq!(block(&text).contains(c), !replaced || c == '\n', "{:04X}", u32::from(c));
            assert_eq!(is_invisible(c), replaced && !matches!(c, '\n' | '\r' | '\t'), "{:04X}", u32::from(c));
        }
    }

    #[test]
    fn bidi_isolates_become_visible() {
        assert_eq!(line("\u{2066}a\u{2069}"), "⟨U+2066⟩a⟨U+2069⟩");
        assert_eq!(block("\u{2067}a\u{2068}"), "⟨U+2067⟩a⟨U+2068⟩");
    }

    #[test]
    fn selectors_are_kept_only_after_their_bases() {
        for c in all_chars() {
            for (selectors, bases) in [("\u{fe0e}\u{fe0f}", EMOJI), ("\u{e0100}\u{e01ef}", UNIFIED_IDEOGRAPH)]
            {
                for selector in selectors.chars() {
                    let text = format!("x{c}{selector}");
                    let passes = line(&text).ends_with(selector);
                    assert_eq!(passes, bases.contains(c), "{:04X} {selector:?}", u32::from(c));
                }
            }
            assert!(!line(&format!("x{c}\u{fe00}\u{fe0d}")).contains(['\u{fe00}', '\u{fe0d}']));
        }
    }

    /// Generates text with many dangerous characters.
    fn wild() -> impl Strategy<Value = String> {
        let c = prop_oneof![
            any::<char>(),
            (0_u32..0x100).prop_filter_map("char", char::from_u32),
            (0x2000_u32..0x2070).prop_filter_map("char", char::from_u32),
            (0xfe00_u32..0xfe10).prop_filter_map("char", char::from_u32),
            (0xe0000_u32..0xe0200).prop_filter_map("char", char::from_u32),
            Just('❤'),
            Just('\u{feff}'),
        ];
        proptest::collection::vec(c, 0..60).prop_map(|chars| chars.into_iter().collect())
    }

    proptest! {
        #[test]
        fn no_control_or_invisible_character_remains(text in wild()) {
            for (safe, lines) in [(line(&text), false), (block(&text), true)] {
                let mut before = None;
                for c in safe.chars() {
                    prop_assert!(!c.is_control() || (lines && c == '\n'), "{c:?}");
                    prop_assert!(hidden(c, before).is_none(), "{c:?}");
                    before = Some(c);
                }
                let again = if lines { block(&safe) } else { line(&safe) };
                prop_assert_eq!(&again, &safe);
            }
        }
    }
}
