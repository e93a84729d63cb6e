//! Formats of ages, durations and times of day: `12 s`, `2 m`, `4 h`, `1.2 s`, `00:44:58`.

use std::sync::OnceLock;

use jiff::tz::TimeZone;

pub use skills_base::duration::{age, elapsed as duration};

/// Formats an age with a suffix: `just now`, `12 s ago`.
pub fn ago(millis: i64) -> String {
    if millis < 1_000 { "just now".to_owned() } else { format!("{} ago", age(millis)) }
}

/// Formats how long something has lasted: `just now`, `for 12 s`.
pub fn lasting(millis: i64) -> String {
    if millis < 1_000 { "just now".to_owned() } else { format!("for {}", age(millis)) }
}

/// Returns the unit in milliseconds in which [`age`] formats an age.
fn unit(millis: i64) -> i64 {
    match millis {
        ..60_000 => 1_000,
        60_000..3_600_000 => 60_000,
        3_600_000..86_400_000 => 3_600_000,
        _ => 86_400_000,
    }
}

/// Returns after how many milliseconds the text of [`age`] changes.
pub fn until_older(millis: i64) -> i64 {
    let millis = millis.max(0);
    let unit = unit(millis);
    unit - millis % unit
}

/// Returns after how many milliseconds the text of [`age`] changes for a remaining time, which decreases.
pub fn until_younger(millis: i64) -> i64 {
    let millis = millis.max(0);
    (millis % unit(millis) + 1).min(millis.max(1))
}

/// The user's time zone; the system's by default.
static ZONE: OnceLock<TimeZone> = OnceLock::new();

/// Sets the time zone of formatted times; only the first call has an effect.
pub fn set_time_zone(zone: TimeZone) {
    drop(ZONE.set(zone));
}

fn format_time(millis: i64, form: &str) -> Option<String> {
    format_time_in(millis, form, ZONE.get_or_init(TimeZone::system))
}

fn format_time_in(millis: i64, form: &str, zone: &TimeZone) -> Option<String> {
    let time = jiff::Timestamp::from_millisecond(millis).ok()?;
    Some(time.to_zoned(zone.clone()).strftime(form).to_string())
}

/// Formats a local date and time to the minute: `22 Nov 12:04`; empty if unknown.
pub fn moment(millis: i64) -> String {
    Some(millis)
        .filter(|millis| *millis > 0)
        .and_then(|millis| format_time(millis, "%d %b %H:%M"))
        .unwrap_or_default()
}

/// Formats a local date: `2026-11-22`; empty if unknown.
pub fn day(millis: i64) -> String {
    Some(millis)
        .filter(|millis| *millis > 0)
        .and_then(|millis| format_time(millis, "%Y-%m-%d"))
        .unwrap_or_default()
}

/// Formats the local time of day: `00:44:58`.
pub fn time_of_day(millis: i64) -> String {
    format_time(millis, "%H:%M:%S").unwrap_or_else(|| "--:--:--".to_owned())
}

/// Formats a moment as a time of day, with its date if it is a day ago or more.
#[must_use]
pub fn moment_since(millis: i64, now_ms: i64) -> String {
    if now_ms.saturating_sub(millis) < 24 * 3_600_000 { time_of_day(millis) } else { moment(millis) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_text_changes_exactly_when_predicted() {
        for millis in [0, 999, 1_000, 59_999, 60_000, 61_500, 3_599_999, 3_700_000, 90_000_000] {
            let next = until_older(millis);
            assert_ne!(age(millis + next), age(millis), "{millis}");
            assert_eq!(age(millis + next - 1), age(millis), "{millis}");
        }
    }

    #[test]
    fn remaining_time_text_changes_exactly_when_predicted() {
        for millis in [1_000, 59_999, 60_000, 61_500, 3_600_000, 3_700_000, 90_000_000] {
            let next = until_younger(millis);
            assert_ne!(age(millis - next), age(millis), "{millis}");
            assert_eq!(age(millis - next + 1), age(millis), "{millis}");
        }
    }

    #[test]
    fn times_are_in_the_local_time_zone() {
        let east = TimeZone::fixed(jiff::tz::offset(9));
        assert_eq!(format_time_in(2_698_000, "%H:%M:%S", &TimeZone::UTC).unwrap(), "00:44:58");
        assert_eq!(format_time_in(2_698_000, "%d %b %H:%M", &east).unwrap(), "01 Jan 09:44");
        assert_eq!(format_time_in(i64::MAX, "%H:%M", &east), None);
        assert_eq!((moment(0), day(-1)), (String::new(), String::new()), "not known is not 1970");
    }
}
