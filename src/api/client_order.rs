//! English collation of names, as in programs of the web platform (`localeCompare`).

use std::cmp::Ordering;

use icu_normalizer::DecomposingNormalizerBorrowed;

/// Symbols and digits, which sort before letters in this order.
const SIGNS: &str = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789";

/// Compares two names: by letters without accents and case, then by accents, then by case.
pub(super) fn english(a: &str, b: &str) -> Ordering {
    let (a, b) = (parts(a), parts(b));
    a.letters.cmp(&b.letters).then_with(|| a.accents.cmp(&b.accents)).then_with(|| a.cases.cmp(&b.cases))
}

/// Sort keys of a name, in order of significance.
struct Parts {
    letters: Vec<(u8, usize, char)>,
    accents: Vec<Vec<char>>,
    cases: Vec<bool>,
}

fn parts(name: &str) -> Parts {
    let mut parts = Parts { letters: Vec::new(), accents: Vec::new(), cases: Vec::new() };
    for sign in DecomposingNormalizerBorrowed::new_nfd().normalize_iter(name.chars()) {
        if is_accent(sign) {
            if let Some(last) = parts.accents.last_mut() {
                last.push(sign);
            }
            continue;
        }
        parts.letters.push(match SIGNS.find(sign) {
            Some(at) => (0, at, '\0'),
            None => (1, 0, sign.to_lowercase().next().unwrap_or(sign)),
        });
        parts.accents.push(Vec::new());
        parts.cases.push(sign.is_uppercase());
    }
    parts
}

fn is_accent(sign: char) -> bool {
    matches!(sign, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn punctuation_sorts_first_and_accents_and_case_last() {
        let mut names = vec!["Zeta", "é-accent", "beta", "alpha2", "Alpha", "1num", "_x"];
        names.sort_by(|a, b| english(a, b));
        assert_eq!(names, ["_x", "1num", "Alpha", "alpha2", "beta", "é-accent", "Zeta"]);
        let mut names = vec!["name-y", "naïve-日本", "naive", "apple-pie", "apple_pie", "Naive"];
        names.sort_by(|a, b| english(a, b));
        assert_eq!(names, ["apple_pie", "apple-pie", "naive", "Naive", "naïve-日本", "name-y"]);
    }
}
