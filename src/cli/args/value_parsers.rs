//! Parsers of option values: names, pairs, durations, dates.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use skills_config::RunColumn;
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// Returns a parser for one of the core's enumerations, with the names used on the wire.
pub(super) fn parse_name<T>(names: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: std::str::FromStr + Clone + Send + Sync + 'static,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).try_map(|word| word.parse::<T>())
}

/// `NAME=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The part before the first `=`.
    pub name: String,
    /// The part after it.
    pub value: String,
}

/// Parses `NAME=VALUE`.
pub(super) fn pair(text: &str) -> Result<Pair, String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok(Pair { name: name.trim().to_owned(), value: value.to_owned() })
        }
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

/// Parses the id of a skill that a query expects; it may be unknown.
pub(super) fn expected_skill(text: &str) -> Result<String, String> {
    let id = text.trim();
    match id.split_once(char::is_whitespace).map_or(id, |(word, _)| word) {
        "" => Err("expected the id of a skill; if no skill fits, use --none".to_owned()),
        "none" => Err("`none` is not a skill; if no skill fits, use --none".to_owned()),
        "not" => Err("expected the id of a skill; if a skill must not rank first, use --not".to_owned()),
        word if word != id => Err("ids of skills contain no white space; separate them by commas".to_owned()),
        _ => Ok(id.to_owned()),
    }
}

/// Parses the number of a port; 0 is a free one.
pub(super) fn port(text: &str) -> Result<u16, String> {
    text.parse::<u16>().map_err(|_| "expected an integer from 0 to 65535".to_owned())
}

/// Returns a parser of an integer from `min` to `max`.
pub(super) fn integer<T>(min: T, max: T) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text: &str| {
        let number = text.parse::<T>().ok().filter(|number| *number >= min && *number <= max);
        number.ok_or_else(|| format!("expected an integer from {min} to {max}"))
    }
}

/// Returns a parser of an integer from `min`.
pub(super) fn integer_from<T>(min: T) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text: &str| {
        let number = text.parse::<T>().ok().filter(|number| *number >= min);
        number.ok_or_else(|| format!("expected an integer of at least {min}"))
    }
}

/// Parses the number of a checkpoint.
pub(super) fn checkpoint(text: &str) -> Result<u64, String> {
    text.parse::<u64>().map_err(|_| "expected the number of a checkpoint".to_owned())
}

/// Parses a number from 0 to 1.
pub(super) fn fraction(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

/// A file for the work directories of scripts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputFileArg {
    /// Its name in the work directory.
    pub name: String,
    /// Its path on this machine.
    pub path: PathBuf,
}

/// Parses `NAME=PATH`, or only a path, which keeps its name.
pub(super) fn parse_file_arg(text: &str) -> Result<InputFileArg, String> {
    let (name, path) = if let Some((name, path)) = text.split_once('=') {
        (name.trim().to_owned(), PathBuf::from(path))
    } else {
        let path = PathBuf::from(text);
        (path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(), path)
    };
    if name.is_empty() || path.as_os_str().is_empty() {
        return Err("expected NAME=PATH: the name in the work directory and the local file".to_owned());
    }
    Ok(InputFileArg { name, path })
}

/// Parses a duration of at most 100 years in seconds: `90s`, `10m`, `2h`, `30d`, `1h30m`.
pub(super) fn span(text: &str) -> Result<u64, String> {
    let duration = skills_base::duration::parse(text.trim());
    let seconds = duration.map(|duration| duration.as_secs());
    seconds.ok_or_else(|| "expected a duration such as 90s, 10m, 2h, 30d or 1h30m, at most 36500d".to_owned())
}

/// Parses a time as milliseconds since 1970-01-01 UTC: a date (midnight in the local time zone), a local time, or a
/// time with zone.
pub(super) fn moment(text: &str) -> Result<i64, String> {
    moment_in(text, &TimeZone::system())
}

fn moment_in(text: &str, zone: &TimeZone) -> Result<i64, String> {
    let text = text.trim();
    if let Ok(stamp) = text.parse::<Timestamp>() {
        return Ok(stamp.as_millisecond());
    }
    if let Ok(zoned) = text.parse::<Zoned>() {
        return Ok(zoned.timestamp().as_millisecond());
    }
    let local = text.parse::<jiff::civil::DateTime>().or_else(|_| text.parse::<Date>().map(Into::into));
    local
        .and_then(|local| local.to_zoned(zone.clone()))
        .map(|zoned| zoned.timestamp().as_millisecond())
        .map_err(|_| "expected a date such as 2026-10-01, or a time such as 2026-10-01T12:00:00Z".to_owned())
}

/// Parses the name of a column of the run list.
pub(super) fn run_column() -> impl TypedValueParser<Value = RunColumn> {
    let values = RunColumn::all().map(|column| {
        let value = PossibleValue::new(column.name());
        if column == RunColumn::Assigned { value.alias("approver") } else { value }
    });
    PossibleValuesParser::new(values).try_map(|name| name.parse::<RunColumn>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_is_from_0_to_1() {
        assert_eq!((fraction("0"), fraction("0.5"), fraction("1")), (Ok(0.0), Ok(0.5), Ok(1.0)));
        for wrong in ["5", "-0.1", "NaN", "x"] {
            assert!(fraction(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn invalid_integers_are_answered_with_their_range() {
        let ranged = integer(1_u32, 100_000);
        assert_eq!((ranged("1"), ranged("100000")), (Ok(1), Ok(100_000)));
        for wrong in ["0", "100001", "-1", "x", "99999999999999999999"] {
            assert_eq!(ranged(wrong), Err("expected an integer from 1 to 100000".to_owned()), "{wrong}");
            let open = integer_from(1_u64)(if wrong == "100001" { "" } else { wrong });
            assert_eq!(open, Err("expected an integer of at least 1".to_owned()), "{wrong}");
        }
        assert_eq!((checkpoint("0"), checkpoint("12")), (Ok(0), Ok(12)));
        assert_eq!(checkpoint("c2"), Err("expected the number of a checkpoint".to_owned()));
    }

    #[test]
    fn value_may_contain_the_separator() {
        let read = pair("query=a=b").unwrap();
        assert_eq!((read.name.as_str(), read.value.as_str()), ("query", "a=b"));
        assert_eq!(pair("note=").unwrap().value, "");
        assert!(pair("query").is_err() && pair("=x").is_err());
    }

    #[test]
    fn file_keeps_its_name_by_default() {
        let read = parse_file_arg("some/where/a.pdf").unwrap();
        assert_eq!((read.name.as_str(), read.path), ("a.pdf", PathBuf::from("some/where/a.pdf")));
        assert_eq!(parse_file_arg("in.pdf=a.pdf").unwrap().name, "in.pdf");
        assert!(parse_file_arg("in.pdf=").is_err() && parse_file_arg("..").is_err());
    }

    #[test]
    fn date_is_local_midnight() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let midnight = moment_in("2026-10-01", &zone).unwrap();
        assert_eq!(moment_in("2026-09-30T22:00:00Z", &zone), Ok(midnight));
        assert_eq!(moment_in("2026-10-01T00:00:00", &zone), Ok(midnight));
        assert!(moment_in("last week", &zone).unwrap_err().contains("2026-10-01"));
    }
}
