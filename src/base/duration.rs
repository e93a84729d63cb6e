//! Durations in human-readable form: `90s`, `10m`, `4h`, `30d`, `2w`, `1h30m`.

use std::time::Duration;

/// Maximum duration that a setting, a filter, a policy or a caller can specify, in seconds: 100 years. Any time plus this
/// duration can be stored and formatted.
pub const MAX_SECONDS: u64 = 36_500 * 86_400;

/// Parses numbers with units, which add up; returns `None` for anything else, and for more than [`MAX_SECONDS`].
pub fn parse(text: &str) -> Option<Duration> {
    let (mut rest, mut sum) = (text, 0_u64);
    loop {
        let (number, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let (unit, next) = after.split_at(after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len()));
        let seconds = match unit {
            "s" => 1,
            "m" | "min" => 60,
            "h" => 3_600,
            "d" => 86_400,
            "w" => 604_800,
            _ => return None,
        };
        sum = number.parse::<u64>().ok()?.checked_mul(seconds)?.checked_add(sum)?;
        rest = next;
        if rest.is_empty() {
            return (sum <= MAX_SECONDS).then(|| Duration::from_secs(sum));
        }
    }
}

/// Returns a duration in milliseconds, at most `i64::MAX`.
pub fn to_millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Formats an age in one unit: `12 s`, `2 m`, `4 h`, `3 d`.
pub fn age(millis: i64) -> String {
    let seconds = millis.max(0) / 1_000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} m", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Formats a duration: `< 1 ms`, `12 ms`, `1.2 s`, `4 m 05 s`, `2 h 10 m`.
pub fn elapsed(millis: i64) -> String {
    match millis {
        ..1 => "< 1 ms".to_owned(),
        1..100 => format!("{millis} ms"),
        100..59_950 => format!("{}.{} s", (millis + 50) / 1_000, (millis + 50) / 100 % 10),
        59_950..3_599_500 => format!("{} m {:02} s", (millis + 500) / 60_000, (millis + 500) / 1_000 % 60),
        _ => {
            let millis = millis.saturating_add(500);
            format!("{} h {:02} m", millis / 3_600_000, millis / 60_000 % 60)
        }
    }
}

/// Formats microseconds: `< 0.1 ms`, `0.6 ms`, `12 ms`, `1.4 s`.
pub fn elapsed_micros(micros: u64) -> String {
    match micros {
        0..50 => "< 0.1 ms".to_owned(),
        50..9_950 => format!("{:.1} ms", micros as f64 / 1e3),
        9_950..999_500 => format!("{:.0} ms", micros as f64 / 1e3),
        _ => format!("{:.1} s", micros as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_one_unit() {
        let message = [400, 12_900, 125_000, 4 * 3_600_000, 90_000_000].map(age);
        assert_eq!(message, ["0 s", "12 s", "2 m", "4 h", "1 d"]);
        assert_eq!(age(-5_000), "0 s", "a clock that went back makes nothing older");
    }

    #[test]
    fn durations_have_two_units_at_most() {
        let message = [0, 12, 960, 1_240, 59_990, 245_000, 3_599_700, 7_800_000].map(elapsed);
        let expected = ["< 1 ms", "12 ms", "1.0 s", "1.2 s", "1 m 00 s", "4 m 05 s", "1 h 00 m", "2 h 10 m"];
        assert_eq!(message, expected);
        assert_eq!(elapsed(i64::MAX), "2562047788015 h 12 m");
    }

    #[test]
    fn microseconds_are_shown_as_milliseconds() {
        let shown = [12, 640, 12_400, 1_400_000].map(elapsed_micros);
        assert_eq!(shown, ["< 0.1 ms", "0.6 ms", "12 ms", "1.4 s"]);
    }

    #[test]
    fn numbers_with_units_add_up() {
        let seconds = |text| parse(text).map(|duration| duration.as_secs());
        for (text, expected) in [
            ("90s", 90),
            ("10m", 600),
            ("2min", 120),
            ("4h", 14_400),
            ("30d", 2_592_000),
            ("1h30m", 5_400),
            ("2d4h", 187_200),
            ("0s", 0),
            ("36500d", MAX_SECONDS),
        ] {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
        for text in [
            "",
            "5",
            "h",
            "-1h",
            "1.5h",
            "1y",
            "99999999999999999999d",
            "9999999999w",
            "36500d1s",
            "1 h",
            "1hh",
            "2h3",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
