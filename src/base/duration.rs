//! Durations in human-readable form: `90s`, `10m`, `4h`, `30d`, `2w`.

use std::time::Duration;

/// Maximum duration in seconds: about 34,000 years.
const MAX_SECONDS: u64 = 1 << 40;

/// Parses a number with a unit; returns `None` for anything else.
#[must_use]
pub fn parse(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let seconds = match unit {
        "s" => 1,
        "m" | "min" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 604_800,
        _ => return None,
    };
    let seconds = number.parse::<u64>().ok()?.checked_mul(seconds)?;
    (seconds < MAX_SECONDS).then(|| Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_number_and_a_unit() {
        let seconds = |text| parse(text).map(|duration| duration.as_secs());
        for (text, expected) in [("90s", 90), ("10m", 600), ("2min", 120), ("4h", 14_400), ("30d", 2_592_000)]
        {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
        for text in ["", "5", "h", "-1h", "1.5h", "1y", "99999999999999999999d", "9999999999w", "1 h", "1hh"]
        {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
