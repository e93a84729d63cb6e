//! Breaks a command line into rows that the shell joins to the same command, whatever its words contain.

use unicode_segmentation::UnicodeSegmentation as _;

use super::rich::RichLine;
use super::text_width::{cells, exact};
use crate::theme::Role;

/// Width of the end of a row that is continued.
const CONTINUED_WIDTH: u16 = 2;

/// The quotation at a place of a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quotation {
    None,
    /// `'…'`
    Single,
    /// `$'…'`, with escape sequences.
    Ansi,
    /// `"…"`
    Double,
}

impl Quotation {
    /// Returns what ends a row and begins the next one where a word is broken.
    fn joint(self) -> (&'static str, &'static str) {
        match self {
            Self::None | Self::Double => ("\\", ""),
            Self::Single => ("'\\", "'"),
            Self::Ansi => ("'\\", "$'"),
        }
    }
}

/// The parts of a word that a row does not break, each with the quotation after it.
type Word = Vec<(String, Quotation)>;

/// Breaks a command before its options, a long one also before words, and a word only if it is wider than a row.
pub fn command_rows(command: &str, width: u16) -> Vec<RichLine> {
    let words = words(&exact(command.replace("\\\n", " ").trim()));
    let is_option = |word: &Word| word.first().is_some_and(|(part, _)| part.starts_with('-'));
    let mut rows = Vec::new();
    let (mut start, mut end) = (0, 0);
    for part in words.chunk_by(|_, next| !is_option(next)) {
        let line = joined(&words[start..end + part.len()], rows.is_empty());
        if start < end && cells(&line) > width.saturating_sub(CONTINUED_WIDTH) {
            push_rows(&words[start..end], true, width, &mut rows);
            start = end;
        }
        end += part.len();
    }
    push_rows(&words[start..], false, width, &mut rows);
    rows.into_iter().map(|row| RichLine::of(row, Role::Text)).collect()
}

/// Appends the rows of words; `continues` is whether further words follow.
fn push_rows(words: &[Word], continues: bool, width: u16, rows: &mut Vec<String>) {
    let mut rest = words;
    while !rest.is_empty() {
        let is_first = rows.is_empty();
        let most = |count: usize| {
            let is_continued = continues || count < rest.len();
            if is_continued { width.saturating_sub(CONTINUED_WIDTH) } else { width }
        };
        let fits = |count: &usize| cells(&joined(&rest[..*count], is_first)) <= most(*count);
        let count = (1..=rest.len()).take_while(fits).last().unwrap_or_default();
        let mut lines = if count == 0 {
            break_word(&rest[0], is_first, width, most(1))
        } else {
            vec![joined(&rest[..count], is_first)]
        };
        rest = &rest[count.max(1)..];
        if let Some(last) = lines.last_mut().filter(|_| continues || !rest.is_empty()) {
            last.push_str(" \\");
        }
        rows.append(&mut lines);
    }
}

/// Returns words as one row; all but the first of a command are indented.
fn joined(words: &[Word], is_first: bool) -> String {
    let texts = words.iter().map(|word| word.iter().map(|(part, _)| part.as_str()).collect::<String>());
    let indent = if is_first { "" } else { "  " };
    format!("{indent}{}", texts.collect::<Vec<_>>().join(" "))
}

/// Breaks a word between its parts; `most` is the maximum width of the last row.
fn break_word(word: &[(String, Quotation)], is_first: bool, width: u16, most: u16) -> Vec<String> {
    let mut rows = Vec::new();
    let mut row = joined(&[], is_first);
    let mut used = cells(&row);
    let mut joint: Option<(&str, &str)> = None;
    for (number, (part, quotation)) in (1..).zip(word) {
        let (end, _) = quotation.joint();
        let available = if number == word.len() { most } else { width.saturating_sub(cells(end)) };
        if let Some((end, begin)) = joint.filter(|_| used + cells(part) > available) {
            rows.push(row + end);
            row = String::from(begin);
            used = cells(begin);
        }
        row.push_str(part);
        used += cells(part);
        joint = Some(quotation.joint());
    }
    rows.push(row);
    rows
}

/// Splits a command line into its words, and these into parts. The marks of a quotation are in one part with what is
/// next to them in it.
fn words(command: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut word = Word::new();
    let (mut rest, mut quotation, mut has_begun) = (command, Quotation::None, false);
    while !rest.is_empty() {
        let (length, next) = first_part(rest, quotation);
        let (part, after) = rest.split_at(length);
        let is_outside = quotation == Quotation::None;
        let ends = !is_outside && next == Quotation::None;
        match word.last_mut().filter(|_| has_begun || ends) {
            Some(last) => {
                last.0.push_str(part);
                last.1 = next;
            }
            None if is_outside && part == " " => words.push(std::mem::take(&mut word)),
            None => word.push((part.to_owned(), next)),
        }
        has_begun = is_outside && next != Quotation::None;
        (rest, quotation) = (after, next);
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// Returns the length of the first part of a text, and the quotation after it: a mark that begins or ends a quotation, an
/// escape sequence, an apostrophe in the form `'\''`, or any other character.
fn first_part(text: &str, quotation: Quotation) -> (usize, Quotation) {
    let character = |text: &str| text.graphemes(true).next().map_or(0, str::len);
    if let Some(rest) = text.strip_prefix('\\').filter(|_| quotation != Quotation::Single) {
        let code = rest.strip_prefix('x').filter(|_| quotation == Quotation::Ansi);
        let digits = |code: &str| code.chars().take(2).take_while(char::is_ascii_hexdigit).count();
        return (1 + code.map_or_else(|| character(rest), |code| 1 + digits(code)), quotation);
    }
    match quotation {
        Quotation::None if text.starts_with("$'") => (2, Quotation::Ansi),
        Quotation::None if text.starts_with('\'') => (1, Quotation::Single),
        Quotation::None if text.starts_with('"') => (1, Quotation::Double),
        Quotation::Single if text.starts_with(r"'\''") => (4, quotation),
        Quotation::Single | Quotation::Ansi if text.starts_with('\'') => (1, Quotation::None),
        Quotation::Double if text.starts_with('"') => (1, Quotation::None),
        _ => (character(text), quotation),
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::process::Command;

    use proptest::prelude::*;
    use skills_config::quoted;

    use super::*;

    fn rows(command: &str, width: u16) -> Vec<String> {
        command_rows(command, width).iter().map(RichLine::plain_text).collect()
    }

    #[test]
    fn a_command_breaks_before_its_options_and_not_inside_quotes() {
        let command = "skills attach audit --target-ref r/x --input 'note=a --b c' --input n=1";
        assert_eq!(
            rows(command, 34),
            [
                "skills attach audit \\",
                "  --target-ref r/x \\",
                "  --input 'note=a --b c' \\",
                "  --input n=1"
            ]
        );
    }

    #[test]
    fn long_parts_of_a_command_break_before_words_with_shell_syntax() {
        let command = "skills --store sqlite:/tmp/t/f/h.db attach log-digest --input 'note=a   b'";
        assert_eq!(
            rows(command, 30),
            [
                "skills \\",
                "  --store \\",
                "  sqlite:/tmp/t/f/h.db \\",
                "  attach log-digest \\",
                "  --input 'note=a   b'"
            ]
        );
        for width in 8..60 {
            assert!(rows(command, width).iter().all(|row| cells(row) <= width), "{width}");
        }
    }

    #[test]
    fn a_broken_word_is_joined_by_the_shell() {
        let command = "curl http://127.0.0.1:8080/v1/skills/log-digest/attach -d '{\"a\":\"b c d e f g h\"}'";
        for width in 12..60 {
            let rows = rows(command, width);
            assert!(rows.iter().all(|row| cells(row) <= width), "{rows:?}");
            let joined = rows.join("\n").replace("'\\\n'", "").replace(" \\\n  ", " ").replace("\\\n", "");
            assert_eq!(joined, command, "{width}");
        }
    }

    #[test]
    fn a_word_is_not_broken_in_an_apostrophe_or_escape_sequence() {
        let command = format!("x {} {}", quoted("abcd'efgh"), quoted("a\u{1b}b\\c'd"));
        assert_eq!(
            rows(&command, 12),
            ["x \\", "  'abcd'\\", "''\\''efgh' \\", "  $'a\\x1bb'\\", "$'\\\\c\\'d'"]
        );
    }

    /// Checks that bash reads the words from the rows of every width, where it exists.
    fn check(words: &[String]) -> Result<(), TestCaseError> {
        let words_line = words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        let command = format!(r"printf '%s\0' {words_line}");
        let mut script = String::new();
        for width in 20..=140 {
            let rows = rows(&command, width);
            prop_assert!(rows.iter().all(|row| cells(row) <= width), "{:?}", rows);
            script += &format!("{}\n", rows.join("\n"));
        }
        let output = match Command::new("bash").args(["-c", &script]).output() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            output => output.unwrap(),
        };
        let expected = words.iter().map(|word| format!("{word}\0")).collect::<String>().repeat(121);
        prop_assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{}", command);
        Ok(())
    }

    #[test]
    fn apostrophes_do_not_end_a_broken_word() {
        check(&["log".to_owned() + &"'''''';b;".repeat(16)]).unwrap();
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn rows_have_the_same_words_as_the_command(
            words in proptest::collection::vec(
                "[ab;' \"\\\\$`#!~-]{0,20}|[ax1'\u{1b}\n\u{7f}\\\\]{1,20}|[表👩e\u{301}' ]{1,12}",
                1..4,
            )
        ) {
            check(&words)?;
        }
    }
}
