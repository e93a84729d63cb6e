//! Numbers for people.

/// Separates groups of three digits.
const SEPARATOR: char = ' ';

/// Formats a number with separators: `14 639`.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(SEPARATOR);
        }
        out.push(digit);
    }
    out
}
