//! Makes text of a bundle safe to display: characters that could control a terminal or are invisible become visible.
//!
//! Control characters are replaced by their pictures (`␛`), other invisible characters by their codes (`⟨U+202E⟩`).
//! Clean text is returned unchanged.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::Write as _;
use std::sync::LazyLock;

use icu_properties::props::{
    BidiControl, CanonicalCombiningClass, DefaultIgnorableCodePoint, Emoji, EmojiModifier, EmojiModifierBase,
    ExtendedPictographic, GeneralCategory, GraphemeClusterBreak, UnifiedIdeograph,
};
use icu_properties::{
    CodePointMapData, CodePointMapDataBorrowed, CodePointSetData, CodePointSetDataBorrowed,
};

use regex_syntax::hir::{Class, Hir, HirKind};
use unicode_width::UnicodeWidthChar as _;

use super::slice;
use super::text_width::CATEGORY;

const BIDI_CONTROL: CodePointSetDataBorrowed<'static> = CodePointSetData::new::<BidiControl>();
const IGNORABLE: CodePointSetDataBorrowed<'static> = CodePointSetData::new::<DefaultIgnorableCodePoint>();
const EMOJI: CodePointSetDataBorrowed<'static> = CodePointSetData::new::<Emoji>();
const SKIN_TONE: CodePointSetDataBorrowed<'static> = CodePointSetData::new::<EmojiModifier>();
const SKIN_TONE_BASE: CodePointSetDataBorrowed<'static> = CodePointSetData::new::<EmojiModifierBase>();
const CLUSTER_BREAK: CodePointMapDataBorrowed<'static, GraphemeClusterBreak> = CodePointMapData::new();
const COMBINING_CLASS: CodePointMapDataBorrowed<'static, CanonicalCombiningClass> = CodePointMapData::new();
const PICTOGRAPHIC: CodePointSetDataBorrowed<'static> = CodePointSetData::new::<ExtendedPictographic>();
const UNIFIED_IDEOGRAPH: CodePointSetDataBorrowed<'static> = CodePointSetData::new::<UnifiedIdeograph>();

/// The ranges of the characters in Unicode 14: tables of terminals are often older than this program's, and a character
/// that is not in them is not drawn and does not move the cursor.
static KNOWN: LazyLock<Vec<(char, char)>> = LazyLock::new(|| {
    // Noncharacters have an age, too.
    match regex_syntax::parse(r"[\p{Age=14.0}--\p{Unassigned}]").map(Hir::into_kind) {
        Ok(HirKind::Class(Class::Unicode(class))) => {
            class.ranges().iter().map(|range| (range.start(), range.end())).collect()
        }
        _ => Vec::new(),
    }
});

/// Maximum number of combining characters on one base.
const MAX_COMBINING: usize = 8;
/// Maximum number of those that take a cell of their own.
const MAX_WIDE: usize = 2;
/// Maximum number of letters that are joined to one conjunct, without the first.
const MAX_CONJUNCT: usize = 5;
/// Maximum number of prepended marks of one character.
const MAX_PREPENDED: usize = 3;
/// Maximum number of joiners in one sequence of emoji.
const MAX_JOINERS: usize = 3;
/// Maximum number of joiners in [`NEAR`] bytes: terminals that do not join them draw each emoji.
const MAX_NEAR_JOINERS: usize = 16;
const NEAR: usize = 256;

/// Makes one line safe: line breaks and tabs become spaces.
pub fn line(text: &str) -> Cow<'_, str> {
    rewrite(text, false)
}

/// Makes a part of `name=value` safe: in quotation marks, as JSON, if it could be taken for several fields.
pub fn field(text: &str) -> String {
    let is_plain = |c: char| !c.is_whitespace() && !matches!(c, '=' | '"');
    if !text.is_empty() && text.chars().all(is_plain) {
        return line(text).into_owned();
    }
    line(&serde_json::Value::from(text).to_string()).into_owned()
}

/// Returns whether a text cannot be taken for several fields of a sentence: it consists of letters, digits, single spaces
/// and signs that join words of a name. Letters of other scripts may look like commas and colons, so that a text with
/// spaces and such letters can be.
pub fn is_one_field(text: &str) -> bool {
    let has_spaces = text.contains([' ', '\n']);
    let joins = |c: char| match c {
        ' ' | '\n' | '.' | '-' | '_' | '/' | '@' | '+' => true,
        '\u{2b0}'..='\u{2ff}' | '\u{a4f8}'..='\u{a4fd}' => false,
        _ if has_spaces && c > '\u{17f}' => false,
        // Other numbers may contain a comma or a point.
        _ => matches!(
            CATEGORY.get(c),
            GeneralCategory::UppercaseLetter
                | GeneralCategory::LowercaseLetter
                | GeneralCategory::TitlecaseLetter
                | GeneralCategory::ModifierLetter
                | GeneralCategory::OtherLetter
                | GeneralCategory::NonspacingMark
                | GeneralCategory::SpacingMark
                | GeneralCategory::DecimalNumber
        ),
    };
    !text.is_empty() && text.trim() == text && !text.contains("  ") && text.chars().all(joins)
}

/// Makes several lines safe: line feeds stay, `CR LF` becomes a line feed, a tab becomes four spaces.
pub fn block(text: &str) -> Cow<'_, str> {
    rewrite(text, true)
}

/// Makes a name safe: in addition to [`line()`], whitespace at its ends, which looks like padding, any other whitespace
/// than a space, and selectors of ideographs, which few fonts draw, become visible.
pub fn name(text: &str) -> Cow<'_, str> {
    let (start, end) = (text.len() - text.trim_start().len(), text.trim_end().len());
    let is_shown = |at: usize, c: char| match c {
        ' ' => at < start || at >= end,
        '\u{e0100}'..='\u{e01ef}' => true,
        _ => c.is_whitespace(),
    };
    if !text.char_indices().any(|(at, c)| is_shown(at, c)) {
        return line(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for (at, c) in text.char_indices() {
        if is_shown(at, c) || !is_visible(text, at, c) {
            show(c, &mut out);
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Makes one line safe and shows it exactly: every space is preserved, while spaces at its end and any other whitespace
/// become visible.
pub fn exact(text: &str) -> String {
    let is_other_blank = |c: char| c.is_whitespace() && c != ' ';
    let body = text.trim_end();
    let mut out = String::with_capacity(text.len());
    for part in body.split_inclusive(is_other_blank) {
        let words = part.trim_end_matches(is_other_blank);
        out.push_str(&line(words));
        out.push_str(&name(part.strip_prefix(words).unwrap_or_default()));
    }
    out.push_str(&name(text.strip_prefix(body).unwrap_or_default()));
    out
}

/// Makes one line safe for output without symbols: each space other than U+0020, line break and invisible character is
/// shown by its code (`<U+00A0>`).
pub fn coded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        if (c.is_whitespace() && c != ' ') || !is_visible(text, at, c) {
            // Writing to a string cannot fail.
            let _ = write!(out, "<U+{:04X}>", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
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
    /// Looks like a space, but is not one.
    Blank,
    /// A combining character without a base, or one of too many: terminals draw all of them in one cell, or none.
    Combining,
    /// Not assigned in the version of Unicode that terminals know; see [`KNOWN`].
    Unassigned,
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
            Self::Blank => ("a blank character", "blank characters"),
            Self::Combining => {
                ("a combining character that may not be drawn", "combining characters that may not be drawn")
            }
            Self::Unassigned => ("an unassigned character", "unassigned characters"),
        }
    }
}

/// Returns the kind of an invisible character, or `None`; `before` and `after` are the text around it. Line feed, CR
/// and tab are not invisible.
///
/// Follows Unicode's tables: C0 and C1, `Bidi_Control` and `Default_Ignorable_Code_Point`, and in addition line and
/// paragraph separators, annotation marks and symbols without a shape, which are not visible either. Variation selectors
/// are exempt if they have an effect: the presentation of an emoji (of a digit in a keycap only), or the form of an
/// ideograph; and so are the joiner of two emoji, and the braille blank next to a braille pattern. Combining characters
/// are invisible where terminals may not draw them; see [`is_combined`]. So are characters that Unicode has not assigned, or
/// has assigned since version 14.
pub(super) fn hidden(c: char, before: &str, after: &str) -> Option<Hidden> {
    let follows = |set: CodePointSetDataBorrowed<'static>| {
        before.chars().next_back().is_some_and(|before| set.contains(before) && is_known(before))
    };
    match c {
        '\n' | '\r' | '\t' | ' '..='~' => None,
        _ if c.is_control() => Some(Hidden::Control),
        _ if BIDI_CONTROL.contains(c) => Some(Hidden::Bidi),
        '\u{2028}' | '\u{2029}' | '\u{fff9}'..='\u{fffb}' => Some(Hidden::ZeroWidth),
        '\u{2800}' if is_next_to_braille(before, after) => None,
        '\u{2800}' | '\u{16fe4}' | '\u{1d159}' => Some(Hidden::Blank),
        _ if !IGNORABLE.contains(c) && !is_known(c) => Some(Hidden::Unassigned),
        _ if !IGNORABLE.contains(c) => (!is_combined(c, before, after)).then_some(Hidden::Combining),
        '\u{fe0f}' if after.starts_with('\u{20e3}') && follows(EMOJI) && !follows(SKIN_TONE) => None,
        '\u{fe0e}' | '\u{fe0f}' if before.ends_with(|base: char| base.is_ascii()) => Some(Hidden::Selector),
        '\u{fe0e}' | '\u{fe0f}' if follows(EMOJI) && !follows(SKIN_TONE) => None,
        '\u{e0100}'..='\u{e01ef}' if follows(UNIFIED_IDEOGRAPH) => None,
        '\u{200d}' if joins_emoji(before, after) && has_few_joiners(before) => None,
        '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => Some(Hidden::Selector),
        '\u{e0000}'..='\u{e0fff}' => Some(Hidden::Tag),
        _ => Some(Hidden::ZeroWidth),
    }
}

/// Returns whether terminals know a character.
fn is_known(c: char) -> bool {
    let compared = |(first, last): &(char, char)| {
        if *last < c {
            Ordering::Less
        } else if *first > c {
            Ordering::Greater
        } else {
            Ordering::Equal
        }
    };
    c.is_ascii() || KNOWN.binary_search_by(compared).is_ok()
}

/// Returns how a character joins others to a grapheme cluster; one that terminals do not know is replaced by a code, which
/// does not.
fn cluster_break(c: char) -> GraphemeClusterBreak {
    if is_known(c) { CLUSTER_BREAK.get(c) } else { GraphemeClusterBreak::Other }
}

/// Returns whether a braille pattern with dots precedes or follows.
fn is_next_to_braille(before: &str, after: &str) -> bool {
    let is_braille = |c: char| matches!(c, '\u{2801}'..='\u{28ff}');
    before.chars().next_back().is_some_and(is_braille) || after.chars().next().is_some_and(is_braille)
}

/// Returns whether a zero-width joiner joins two emoji: the first one may have a presentation selector or a skin tone.
fn joins_emoji(before: &str, after: &str) -> bool {
    let mut before = before.chars().rev();
    let first = match before.next() {
        // A selector without effect is shown, and separates them.
        Some('\u{fe0f}') => before.next().filter(|base| EMOJI.contains(*base)),
        Some(tone) if SKIN_TONE.contains(tone) => before.next().filter(|base| SKIN_TONE_BASE.contains(*base)),
        other => other,
    };
    let is_pictographic = |c: Option<char>| c.is_some_and(|c| PICTOGRAPHIC.contains(c) && is_known(c));
    is_pictographic(first) && is_pictographic(after.chars().next())
}

/// Returns whether another joiner in a sequence of emoji is one of few.
fn has_few_joiners(before: &str) -> bool {
    let (mut joiners, mut has_emoji) = (0, false);
    for c in before.chars().rev().take((MAX_JOINERS + 1) * 4) {
        if c == '\u{200d}' {
            joiners += 1;
            has_emoji = false;
        } else if has_emoji || !(PICTOGRAPHIC.contains(c) || SKIN_TONE.contains(c) || c == '\u{fe0f}') {
            // The emoji before is not joined.
            break;
        } else {
            has_emoji = PICTOGRAPHIC.contains(c);
        }
    }
    let mut start = before.len().saturating_sub(NEAR);
    while !before.is_char_boundary(start) {
        start += 1;
    }
    let near = slice(before, start..).chars().filter(|c| *c == '\u{200d}').count();
    joiners < MAX_JOINERS && near < MAX_NEAR_JOINERS
}

/// Returns whether a character is drawn: as a character of its own, or together with the ones before it. Terminals draw
/// a grapheme cluster in the cells of its base: further characters on a base are not seen, and a cluster that is wider
/// than the line is not drawn at all.
fn is_combined(c: char, before: &str, after: &str) -> bool {
    let mut previous = before.chars().rev();
    if SKIN_TONE.contains(c) {
        return previous.next().is_some_and(|base| SKIN_TONE_BASE.contains(base) && is_known(base));
    }
    match CLUSTER_BREAK.get(c) {
        GraphemeClusterBreak::Extend | GraphemeClusterBreak::SpacingMark => {
            let marks = previous.clone().take(MAX_COMBINING).take_while(|c| is_extending(*c)).count();
            let base = previous.clone().nth(marks);
            let wide = previous.clone().take(marks).filter(|c| is_wide_mark(*c)).count();
            let is_second_letter = is_letter_above(c) && previous.take(marks).any(is_letter_above);
            marks < MAX_COMBINING
                && base.is_some_and(|base| !base.is_whitespace())
                && !is_second_letter
                && (wide < MAX_WIDE || !is_wide_mark(c))
                && !(is_virama(c) && viramas(before) >= MAX_CONJUNCT)
        }
        GraphemeClusterBreak::L | GraphemeClusterBreak::V | GraphemeClusterBreak::T => is_syllable(c, before),
        GraphemeClusterBreak::Prepend => {
            let is_prepended = |c: &char| cluster_break(*c) == GraphemeClusterBreak::Prepend;
            let is_base = |c: char| {
                let is_other = is_known(c) && CLUSTER_BREAK.get(c) == GraphemeClusterBreak::Other;
                is_other && c.is_alphanumeric() && has_width(c)
            };
            let earlier = previous.take(MAX_PREPENDED).take_while(is_prepended).count();
            let later = after.chars().take(MAX_PREPENDED).take_while(is_prepended).count();
            earlier + later < MAX_PREPENDED && after.chars().nth(later).is_some_and(is_base)
        }
        _ => has_width(c),
    }
}

fn has_width(c: char) -> bool {
    c.width() != Some(0)
}

fn is_extending(c: char) -> bool {
    let class = cluster_break(c);
    [GraphemeClusterBreak::Extend, GraphemeClusterBreak::SpacingMark, GraphemeClusterBreak::ZWJ]
        .contains(&class)
}

/// Returns whether a combining character takes a cell of its own; the voiced marks of halfwidth katakana do in most
/// terminals.
fn is_wide_mark(c: char) -> bool {
    has_width(c) || matches!(c, '\u{ff9e}' | '\u{ff9f}')
}

/// Returns whether a character is a letter that is drawn above another one.
fn is_letter_above(c: char) -> bool {
    matches!(c, '\u{363}'..='\u{36f}' | '\u{1dd3}'..='\u{1df4}' | '\u{2de0}'..='\u{2dff}' | '\u{a674}'..='\u{a67b}')
}

/// Returns whether a character joins two letters of an Indic script.
fn is_virama(c: char) -> bool {
    COMBINING_CLASS.get(c) == CanonicalCombiningClass::Virama
}

/// Returns how many viramas precede in the same conjunct, at most [`MAX_CONJUNCT`].
fn viramas(before: &str) -> usize {
    let (mut count, mut has_letter) = (0, false);
    for c in before.chars().rev().take(MAX_CONJUNCT * (MAX_COMBINING + 1)) {
        match (is_virama(c), is_extending(c)) {
            (true, _) => {
                count += 1;
                has_letter = false;
            }
            (false, true) => {}
            // Two letters without a virama between them are not joined.
            (false, false) if has_letter || c.is_ascii() => break,
            (false, false) => has_letter = true,
        }
    }
    count.min(MAX_CONJUNCT)
}

/// Returns whether a conjoining jamo is part of a Hangul syllable with at most two of each kind.
fn is_syllable(c: char, before: &str) -> bool {
    let mut rest = before.chars().rev().map(cluster_break).peekable();
    let mut run = |class: GraphemeClusterBreak| {
        std::iter::from_fn(|| rest.next_if(|found| *found == class)).take(3).count()
    };
    let class = CLUSTER_BREAK.get(c);
    let trailing = if class == GraphemeClusterBreak::T { run(GraphemeClusterBreak::T) } else { 0 };
    let vowels = if class == GraphemeClusterBreak::L { 0 } else { run(GraphemeClusterBreak::V) };
    let leading = run(GraphemeClusterBreak::L);
    if class == GraphemeClusterBreak::L {
        return leading < 2;
    }
    let composed = rest.peek().copied().filter(|_| leading == 0);
    let has_base = match composed {
        Some(GraphemeClusterBreak::LV) => true,
        Some(GraphemeClusterBreak::LVT) => class == GraphemeClusterBreak::T && vowels == 0,
        _ => (1..=2).contains(&leading) && (class == GraphemeClusterBreak::V || vowels > 0),
    };
    let most_vowels = if class == GraphemeClusterBreak::V { 1 } else { 2 };
    has_base && vowels <= most_vowels && trailing < 2
}

/// Returns whether a character is invisible in any position. Spaces and line breaks count as visible.
pub fn is_invisible(c: char) -> bool {
    hidden(c, "", "").is_some_and(|kind| kind != Hidden::Combining)
}

/// Returns whether a byte can only belong to clean text; everything else is checked in detail.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~')
}

fn rewrite(text: &str, keep_lines: bool) -> Cow<'_, str> {
    let clean = text.bytes().all(|byte| is_plain(byte) || (keep_lines && byte == b'\n')) || {
        text.char_indices()
            .all(|(at, c)| is_visible(text, at, c) && !matches!(c, '\r' | '\t') && (keep_lines || c != '\n'))
    };
    if clean {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\n' if keep_lines => out.push('\n'),
            '\r' if chars.peek().is_some_and(|(_, next)| *next == '\n') => {}
            '\r' => out.push('␍'),
            '\t' if keep_lines => out.push_str("    "),
            '\n' | '\t' => out.push(' '),
            _ if is_visible(text, at, c) => out.push(c),
            _ => show(c, &mut out),
        }
    }
    Cow::Owned(out)
}

/// Returns whether the character at a place of a text is visible.
fn is_visible(text: &str, at: usize, c: char) -> bool {
    hidden(c, slice(text, ..at), slice(text, at + c.len_utf8()..)).is_none()
}

/// Escapes the invisible characters of a JSON text (`\u009b`); its value stays the same.
pub fn json(text: &str) -> Cow<'_, str> {
    let mut is_clean = true;
    let mut out = String::new();
    for (at, c) in text.char_indices() {
        if !is_visible(text, at, c) {
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
    fn output_without_symbols_has_codes() {
        assert_eq!(coded("100 €, not ¥; a−b×c∕d ✗ ①  é 表 …"), "100 €, not ¥; a−b×c∕d ✗ ①  é 表 …");
        assert_eq!(
            coded("a\u{a0}b\u{3000}\tc\n\u{1b}\u{202e} "),
            "a<U+00A0>b<U+3000><U+0009>c<U+000A><U+001B><U+202E> "
        );
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
            let is_blank = matches!(c, '\u{2800}' | '\u{16fe4}' | '\u{1d159}');
            let is_invisible_alone =
                listed(c) || is_blank || matches!(c, '\u{2028}' | '\u{2029}' | '\u{fff9}'..='\u{fffb}');
            let is_undrawn = match CLUSTER_BREAK.get(c) {
                GraphemeClusterBreak::V | GraphemeClusterBreak::T => true,
                GraphemeClusterBreak::Extend => SKIN_TONE.contains(c),
                GraphemeClusterBreak::SpacingMark | GraphemeClusterBreak::Prepend => false,
                _ => c.width() == Some(0),
            };
            let is_unassigned = !is_known(c) && !is_invisible_alone;
            let is_combining = is_undrawn && !is_invisible_alone && !is_unassigned;
            assert_eq!(hidden(c, "x", "y") == Some(Hidden::Combining), is_combining, "{:04X}", u32::from(c));
            assert_eq!(
                hidden(c, "x", "y") == Some(Hidden::Unassigned),
                is_unassigned,
                "{:04X}",
                u32::from(c)
            );
            let replaced = is_invisible_alone || is_combining || is_unassigned;
            assert_eq!(line(&text) != text, replaced, "{:04X}", u32::from(c));
            assert_eq!(line(&text).contains(c), !replaced, "{:04X}", u32::from(c));
            assert_eq!(block(&text) != text, replaced && c != '\n', "{:04X}", u32::from(c));
            assert_eq!(block(&text).contains(c), !replaced || c == '\n', "{:04X}", u32::from(c));
            let is_replaced = replaced && !is_combining && !matches!(c, '\n' | '\r' | '\t');
            assert_eq!(is_invisible(c), is_replaced, "{:04X}", u32::from(c));
        }
    }

    #[test]
    fn characters_that_terminals_do_not_know_become_visible() {
        // Unassigned, a noncharacter, a mark of Unicode 15, an emoji and a letter of 16, an ideograph of 15.
        for c in ['\u{378}', '\u{ffff}', '\u{fdd0}', '\u{13440}', '\u{1fae9}', '\u{a7cb}', '\u{31350}'] {
            let code = format!("⟨U+{:04X}⟩", u32::from(c));
            assert_eq!(name(&format!("pay{c}")), format!("pay{code}"));
            assert_eq!(block(&format!("a\n{c} b")), format!("a\n{code} b"));
        }
        // Private use characters, such as symbols of patched fonts, have a width.
        for text in
            ["aé ßя אب", "表\u{20000}\u{9fff}", "각 ひ カ", "👍\u{1fae0}", "→ ─ ⠓", "\u{e0b0}\u{f0001}"]
        {
            assert!(matches!(line(text), Cow::Borrowed(_)), "{text}: {}", line(text));
        }
        assert_eq!(line("\u{1fae8}\u{fe0f}"), "⟨U+1FAE8⟩⟨U+FE0F⟩");
        assert_eq!(line("\u{1faf7}🏽"), "⟨U+1FAF7⟩⟨U+1F3FD⟩");
    }

    #[test]
    fn blank_characters_and_whitespace_around_names_become_visible() {
        assert_eq!(line("fmt\u{2800}"), "fmt⟨U+2800⟩");
        assert_eq!(line("⠓\u{2800}⠊"), "⠓\u{2800}⠊");
        for blank in ['\u{115f}', '\u{1160}', '\u{2800}', '\u{3164}', '\u{ffa0}', '\u{16fe4}', '\u{1d159}'] {
            let code = format!("⟨U+{:04X}⟩", u32::from(blank));
            assert_eq!(name(&format!("a{blank}b")), format!("a{code}b"));
        }
        assert_eq!(name(" fmt "), "⟨U+0020⟩fmt⟨U+0020⟩");
        assert_eq!(name("a b\u{a0}c\n"), "a b⟨U+00A0⟩c␊");
        assert_eq!(name("  "), "⟨U+0020⟩⟨U+0020⟩");
        assert!(matches!(name("my skill"), Cow::Borrowed(_)));
    }

    #[test]
    fn exact_text_preserves_spaces_and_shows_other_white_space() {
        assert_eq!(exact("   a    b"), "   a    b");
        assert_eq!(exact("a \tb\u{a0}c\r\nd"), "a ␉b⟨U+00A0⟩c␍␊d");
        assert_eq!(exact("a  "), "a⟨U+0020⟩⟨U+0020⟩");
        assert_eq!(exact(" \n"), "⟨U+0020⟩␊");
        assert_eq!(exact("\u{1b}[2J\u{202e}"), "␛[2J⟨U+202E⟩");
        assert_eq!(exact(""), "");
    }

    #[test]
    fn bidi_isolates_become_visible() {
        assert_eq!(line("\u{2066}a\u{2069}"), "⟨U+2066⟩a⟨U+2069⟩");
        assert_eq!(block("\u{2067}a\u{2068}"), "⟨U+2067⟩a⟨U+2068⟩");
    }

    #[test]
    fn digits_have_selectors_only_in_keycaps() {
        for text in ["1\u{fe0f}\u{20e3}", "#\u{fe0f}\u{20e3}x*\u{fe0f}\u{20e3}", "©\u{fe0f}", "❤\u{fe0e}"]
        {
            assert!(matches!(name(text), Cow::Borrowed(_)), "{text}: {}", name(text));
        }
        assert_eq!(line("pay2\u{fe0e}"), "pay2⟨U+FE0E⟩");
        assert_eq!(line("2\u{fe0f}x"), "2⟨U+FE0F⟩x");
        assert_eq!(line("2\u{fe0e}\u{20e3}"), "2⟨U+FE0E⟩\u{20e3}");
        assert_eq!(json("\"2\u{fe0f}\""), "\"2\\ufe0f\"");
    }

    #[test]
    fn selectors_of_ideographs_in_names_become_visible() {
        assert_eq!(name("表\u{e0100}"), "表⟨U+E0100⟩");
        assert_eq!(line("表\u{e0100}"), "表\u{e0100}");
        assert!(matches!(name("表"), Cow::Borrowed(_)));
    }

    #[test]
    fn selectors_are_kept_only_after_their_bases() {
        for c in all_chars() {
            for (selectors, bases) in [("\u{fe0e}\u{fe0f}", EMOJI), ("\u{e0100}\u{e01ef}", UNIFIED_IDEOGRAPH)]
            {
                for selector in selectors.chars() {
                    let text = format!("x{c}{selector}");
                    let passes = line(&text).ends_with(selector);
                    let is_base = bases.contains(c) && is_known(c) && !SKIN_TONE.contains(c) && !c.is_ascii();
                    assert_eq!(passes, is_base, "{:04X} {selector:?}", u32::from(c));
                }
            }
            assert!(!line(&format!("x{c}\u{fe00}\u{fe0d}")).contains(['\u{fe00}', '\u{fe0d}']));
        }
    }

    #[test]
    fn joiners_are_kept_only_between_emoji() {
        for text in
            ["👩\u{200d}💻", "👩🏽\u{200d}💻", "🏳\u{fe0f}\u{200d}🌈", "👨\u{200d}👩\u{200d}👧\u{200d}👦"]
        {
            assert!(matches!(line(text), Cow::Borrowed(_)), "{text}");
            assert_eq!(json(text), text);
        }
        for text in [
            "👩\u{200d}",
            "\u{200d}💻",
            "👩\u{200d}x",
            "x\u{200d}💻",
            "1\u{fe0f}\u{200d}💻",
            "👩\u{200d}\u{200d}💻",
            "👩\u{fe0f}\u{fe0f}\u{200d}💻",
            "👩\u{fe0e}\u{200d}💻",
            "👩\u{200d}\u{fe0f}💻",
            "👩🏽🏽\u{200d}💻",
            "👩\u{200d}🏽",
            "👩\u{200c}💻",
            "क\u{200d}ष",
        ] {
            assert!(line(text).contains("⟨U+200"), "{text:?} became {:?}", line(text));
        }
        for c in all_chars() {
            let (first, second) = (format!("{c}\u{200d}💻"), format!("👩\u{200d}{c}"));
            for text in [first, second] {
                let passes = line(&text).contains('\u{200d}');
                assert_eq!(passes, PICTOGRAPHIC.contains(c) && is_known(c), "{:04X}", u32::from(c));
            }
        }
    }

    #[test]
    fn combining_characters_are_kept_where_they_are_drawn() {
        let conjunct = "क\u{94d}".repeat(5) + "क";
        let syllables = "\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}각\u{11a8}가\u{11ab}";
        for text in [
            "e\u{301}",
            "שּׁ\u{5b8}",
            "Tiê\u{301}ng",
            "👍🏽👩🏿",
            "กำ",
            &"👨\u{200d}👩\u{200d}👧\u{200d}👦".repeat(3),
            "ｶ\u{ff9e}",
            "\u{600}1",
            "a\u{363}b\u{364}",
            &conjunct,
            syllables,
        ] {
            assert!(matches!(line(text), Cow::Borrowed(_)), "{text}: {}", line(text));
        }
        let long = |text: &str| text.repeat(9);
        for text in [
            format!("e{}", long("\u{301}")),
            format!("e{}", long("\u{e33}")),
            "ｶ\u{ff9e}\u{ff9e}\u{ff9e}".to_owned(),
            "\u{301}".to_owned(),
            "a\n\u{301}".to_owned(),
            "a\u{363}\u{364}".to_owned(),
            "a🏽".to_owned(),
            "👍🏽🏽".to_owned(),
            long("क\u{94d}") + "क",
            long("\u{1100}"),
            "y\u{1161}".to_owned(),
            "\u{1100}\u{1161}\u{1161}\u{1161}".to_owned(),
            "\u{1100}\u{11a8}".to_owned(),
            long("\u{600}"),
            long("\u{600}") + "1",
            "pay\u{a8fa}".to_owned(),
            "pay\u{d4e}".to_owned(),
            "pay\u{605} ".to_owned(),
            "👨\u{200d}👩\u{200d}👧\u{200d}👦\u{200d}👦".to_owned(),
            "👩\u{200d}💻 ".repeat(17),
            "a \u{301}".to_owned(),
            "a\u{363}\u{301}\u{364}".to_owned(),
        ] {
            assert!(line(&text).contains("⟨U+"), "{text:?} became {:?}", line(&text));
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
            Just('🏽'),
            Just('\u{200d}'),
            Just('\u{fe0f}'),
            Just('\u{feff}'),
            Just('\u{301}'),
            Just('\u{363}'),
            Just('क'),
            Just('\u{94d}'),
            Just('👩'),
            (0x1100_u32..0x1200).prop_filter_map("char", char::from_u32),
            Just('가'),
            Just('\u{600}'),
            Just('\u{1fae8}'),
            Just('\u{16d63}'),
        ];
        proptest::collection::vec(c, 0..60).prop_map(|chars| chars.into_iter().collect())
    }

    proptest! {
        #[test]
        fn no_control_or_invisible_character_remains(text in wild()) {
            for (safe, lines) in [(line(&text), false), (block(&text), true)] {
                for (at, c) in safe.char_indices() {
                    prop_assert!(!c.is_control() || (lines && c == '\n'), "{c:?}");
                    prop_assert!(is_visible(&safe, at, c), "{c:?}");
                }
                let again = if lines { block(&safe) } else { line(&safe) };
                prop_assert_eq!(&again, &safe);
            }
        }
    }
}
