//! Formats times and durations.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Returns the current time, in milliseconds since 1970-01-01 UTC.
pub fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

/// Formats the time of day in a zone: `09:30:12`.
pub fn time_of_day(at_ms: i64, zone: &TimeZone) -> String {
    formatted(at_ms, zone, "%H:%M:%S")
}

/// Formats date and time in a zone: `2026-07-14 09:30:12`.
pub fn moment(at_ms: i64, zone: &TimeZone) -> String {
    formatted(at_ms, zone, "%Y-%m-%d %H:%M:%S")
}

fn formatted(at_ms: i64, zone: &TimeZone, form: &str) -> String {
    Timestamp::from_millisecond(at_ms)
        .map_or_else(|_| "-".to_owned(), |stamp| stamp.to_zoned(zone.clone()).strftime(form).to_string())
}

/// Formats a duration: `12 ms`, `1.2 s`, `2 min 5 s`.
pub fn took(ms: i64) -> String {
    match ms.max(0) {
        ms @ 0..1_000 => format!("{ms} ms"),
        ms @ 1_000..60_000 => format!("{:.1} s", ms as f64 / 1e3),
        ms => {
            let s = ms / 1_000;
            if s < 3_600 { format!("{} min {} s", s / 60, s % 60) } else { age(ms) }
        }
    }
}

/// Formats an age in one unit: `12 s`, `2 min`, `4 h`, `3 d`.
pub fn age(ms: i64) -> String {
    let s = ms.max(0) / 1_000;
    match s {
        0..60 => format!("{s} s"),
        60..3_600 => format!("{} min", s / 60),
        3_600..86_400 => format!("{} h", s / 3_600),
        _ => format!("{} d", s / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_two_figures_or_so() {
        let read: Vec<String> = [0, 999, 1_234, 59_990, 125_000, 7_200_000].map(took).into();
        assert_eq!(read, ["0 ms", "999 ms", "1.2 s", "60.0 s", "2 min 5 s", "2 h"]);
        assert_eq!([age(41_000), age(120_000), age(14_400_000), age(-5)], ["41 s", "2 min", "4 h", "0 s"]);
    }

    #[test]
    fn moments_are_told_in_the_zone_of_the_reader() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        assert_eq!(moment(1_784_021_400_000, &zone), "2026-07-14 11:30:00");
        assert_eq!(time_of_day(1_784_021_400_000, &TimeZone::UTC), "09:30:00");
    }
}
