//! Number formats for columns: two decimals, thousands separators, `3.2k`.

pub use skills_base::duration::elapsed_micros;
pub use skills_base::number::{byte_size, counted};

use crate::glyphs::Glyphs;
use skills_skill::tokens::TokenCount;

/// Formats a score or a term with two decimals; zero is a dot.
pub fn score(value: f64, glyphs: &Glyphs) -> String {
    if value.abs() < 0.005 {
        glyphs.dot.to_owned()
    } else if value < 0.0 {
        format!("{}{:.2}", glyphs.minus, -value)
    } else {
        format!("{value:.2}")
    }
}

/// Formats a score, with zero as `0.00` (totals, ranks).
pub fn plain_score(value: f64, glyphs: &Glyphs) -> String {
    if value <= -0.005 { format!("{}{:.2}", glyphs.minus, -value) } else { format!("{:.2}", value.max(0.0)) }
}

/// Formats a difference, always with its sign.
pub fn signed(value: f64, glyphs: &Glyphs) -> String {
    if value.abs() < 0.005 {
        "0.00".to_owned()
    } else if value < 0.0 {
        format!("{}{:.2}", glyphs.minus, -value)
    } else {
        format!("+{value:.2}")
    }
}

/// Formats a difference of counts, always with its sign; zero is a dot.
pub fn signed_count(value: i64, glyphs: &Glyphs) -> String {
    match value {
        0 => glyphs.dot.to_owned(),
        ..0 => format!("{}{}", glyphs.minus, value.unsigned_abs()),
        1.. => format!("+{value}"),
    }
}

/// Formats tokens: `24`, `0.9k`, `3.2k`, `128k`.
pub fn tokens(count: u32) -> String {
    match count {
        0..100 => count.to_string(),
        100..99_950 => format!("{:.1}k", f64::from(count) / 1000.0),
        _ => format!("{:.0}k", f64::from(count) / 1000.0),
    }
}

/// Formats tokens, with a sign before an estimate: `≈3.2k`.
pub fn token_count(count: TokenCount, glyphs: &Glyphs) -> String {
    format!("{}{}", if count.estimated { glyphs.about } else { "" }, tokens(count.tokens))
}

/// Formats a count with thousands separators: `14,639`.
pub fn count(value: usize) -> String {
    skills_base::number::grouped(value as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::glyphs::{ASCII, UNICODE};

    #[test]
    fn scores_have_two_decimals_and_zero_is_a_dot() {
        assert_eq!(score(2.876, &UNICODE), "2.88");
        assert_eq!(score(0.0, &UNICODE), "·");
        assert_eq!(score(-0.53, &UNICODE), "−0.53");
        assert_eq!(score(-0.53, &ASCII), "-0.53");
        assert_eq!(signed(0.95, &UNICODE), "+0.95");
        assert_eq!(signed(-0.001, &UNICODE), "0.00");
    }

    #[test]
    fn large_numbers_stay_short() {
        assert_eq!(tokens(24), "24");
        assert_eq!(tokens(912), "0.9k");
        assert_eq!(tokens(3_240), "3.2k");
        assert_eq!(tokens(128_000), "128k");
        let about = TokenCount { tokens: 3_240, estimated: true };
        assert_eq!([token_count(about, &UNICODE), token_count(about, &ASCII)], ["≈3.2k", "~3.2k"]);
        assert_eq!(count(14_639), "14,639");
        assert_eq!(count(312), "312");
    }
}
