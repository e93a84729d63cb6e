//! Ages, durations and times of day as people read them: `12 s`, `2 m`, `4 h`, `1.2 s`, `00:44:58`.

/// How long ago, in one unit: `now`, `12 s`, `2 m`, `4 h`, `3 d`.
#[must_use]
pub fn age(millis: i64) -> String {
    let seconds = millis.max(0) / 1000;
    match seconds {
        0 => "now".to_owned(),
        1..60 => format!("{seconds} s"),
        60..3_600 => format!("{} m", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// How long ago, with the word: `just now`, `12 s ago`.
#[must_use]
pub fn ago(millis: i64) -> String {
    if millis < 1_000 { "just now".to_owned() } else { format!("{} ago", age(millis)) }
}

/// How long it has lasted, with the word: `just now`, `for 12 s`.
#[must_use]
pub fn lasting(millis: i64) -> String {
    if millis < 1_000 { "just now".to_owned() } else { format!("for {}", age(millis)) }
}

/// After how many milliseconds [`age`] says something else.
#[must_use]
pub fn until_older(millis: i64) -> i64 {
    let millis = millis.max(0);
    let unit = match millis {
        0..60_000 => 1_000,
        60_000..3_600_000 => 60_000,
        3_600_000..86_400_000 => 3_600_000,
        _ => 86_400_000,
    };
    unit - millis % unit
}

/// After how many milliseconds [`age`] of what is left says something else, as it grows less.
#[must_use]
pub fn until_younger(millis: i64) -> i64 {
    let millis = millis.max(0);
    let unit = match millis {
        0..60_000 => 1_000,
        60_000..3_600_000 => 60_000,
        3_600_000..86_400_000 => 3_600_000,
        _ => 86_400_000,
    };
    (millis % unit + 1).min(millis.max(1))
}

/// How long something took: `< 1 ms`, `12 ms`, `1.2 s`, `4 m 05 s`, `2 h 10 m`.
#[must_use]
pub fn duration(millis: i64) -> String {
    match millis {
        ..1 => "< 1 ms".to_owned(),
        1..100 => format!("{millis} ms"),
        100..59_950 => format!("{:.1} s", millis as f64 / 1e3),
        59_950..3_600_000 => format!("{} m {:02} s", millis / 60_000, millis / 1_000 % 60),
        _ => format!("{} h {:02} m", millis / 3_600_000, millis / 60_000 % 60),
    }
}

/// A day and the time of it in UTC, to the minute: `22 Nov 12:04`.
#[must_use]
pub fn moment(millis: i64) -> String {
    let time = jiff::Timestamp::from_millisecond(millis).ok().filter(|_| millis > 0);
    time.map(|time| time.strftime("%d %b %H:%M").to_string()).unwrap_or_default()
}

/// The time of day in UTC: `00:44:58`.
#[must_use]
pub fn time_of_day(millis: i64) -> String {
    let seconds = millis.div_euclid(1000).rem_euclid(86_400);
    format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_one_unit() {
        let said = [400, 12_900, 125_000, 4 * 3_600_000, 90_000_000].map(age);
        assert_eq!(said, ["now", "12 s", "2 m", "4 h", "1 d"]);
        assert_eq!(age(-5_000), "now", "a clock that went back makes nothing older");
    }

    #[test]
    fn an_age_changes_exactly_when_it_is_told_to() {
        for millis in [0, 999, 1_000, 59_999, 60_000, 61_500, 3_599_999, 3_700_000, 90_000_000] {
            let next = until_older(millis);
            assert_ne!(age(millis + next), age(millis), "{millis}");
            assert_eq!(age(millis + next - 1), age(millis), "{millis}");
        }
    }

    #[test]
    fn what_is_left_changes_exactly_when_it_is_told_to() {
        for millis in [1_000, 59_999, 60_000, 61_500, 3_600_000, 3_700_000, 90_000_000] {
            let next = until_younger(millis);
            assert_ne!(age(millis - next), age(millis), "{millis}");
            assert_eq!(age(millis - next + 1), age(millis), "{millis}");
        }
    }

    #[test]
    fn durations_and_times() {
        let said = [0, 12, 1_240, 245_000, 7_800_000].map(duration);
        assert_eq!(said, ["< 1 ms", "12 ms", "1.2 s", "4 m 05 s", "2 h 10 m"]);
        assert_eq!(time_of_day(2_698_000), "00:44:58");
    }
}
