//! Formats times and durations.

use jiff::Timestamp;
use jiff::tz::TimeZone;

pub use skills_base::duration::{age, elapsed as took};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_the_readers_time_zone() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        assert_eq!(moment(1_784_021_400_000, &zone), "2026-07-14 11:30:00");
        assert_eq!(time_of_day(1_784_021_400_000, &TimeZone::UTC), "09:30:00");
    }
}
