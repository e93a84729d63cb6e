#!/usr/bin/env python3
"""Merge logs by time. Every line keeps its source; times are shown in UTC.

Exit codes: 0 done, 1 no timestamps found, 2 usage or unreadable.
"""
import argparse
import datetime as dt
import re
import sys

MONTHS = {name: at for at, name in enumerate("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), 1)}
ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(?: ?(Z|UTC|[+-]\d\d:?\d\d))?(?!\d)")
WEB = re.compile(r"(\d\d)/(\w{3})/(\d{4}):(\d\d):(\d\d):(\d\d) ([+-]\d{4})")
SYSLOG = re.compile(r"^(?:<\d+>)?(\w{3}) +(\d{1,2}) (\d\d):(\d\d):(\d\d)\b")
EPOCH = re.compile(r"^\W*(\d{10})(?:\.(\d{1,6})|(\d{3}))?\b")


class NoYear(Exception):
    """A timestamp without a year, and none was given."""


def zone(text):
    if text in ("Z", "z", "UTC"):
        return dt.timezone.utc
    match = re.fullmatch(r"([+-])(\d\d):?(\d\d)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is not an offset; expected e.g. +02:00 or Z")
    minutes = int(match.group(2)) * 60 + int(match.group(3))
    return dt.timezone(dt.timedelta(minutes=-minutes if match.group(1) == "-" else minutes))


def moment(line, naive, year):
    """The first timestamp of a line, or nothing."""
    try:
        if match := ISO.search(line[:120]):
            *parts, fraction, offset = match.groups()
            numbers = [int(part or 0) for part in parts]
            micro = int((fraction or "0").ljust(6, "0")[:6])
            return dt.datetime(*numbers, micro, tzinfo=zone(offset) if offset else naive)
        if match := WEB.search(line):
            day, month, y, h, m, s, offset = match.groups()
            return dt.datetime(int(y), MONTHS[month], int(day), int(h), int(m), int(s), tzinfo=zone(offset))
        if match := SYSLOG.match(line):
            month, day, h, m, s = match.groups()
            if month in MONTHS:
                if year is None:
                    raise NoYear
                return dt.datetime(year, MONTHS[month], int(day), int(h), int(m), int(s), tzinfo=naive)
        if match := EPOCH.match(line):
            micro = match.group(2) or match.group(3) or ""
            whole = dt.datetime.fromtimestamp(int(match.group(1)), dt.timezone.utc)
            return whole.replace(microsecond=int(micro.ljust(6, "0")))
    except (ValueError, KeyError):
        return None
    return None


def bound(text):
    found = moment(text, dt.timezone.utc, None)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; expected e.g. 2025-03-31T13:50Z")
    return found


def read(name, naive, year):
    """Entries `(time, source, text, continuation lines)` of one file, and how many lines had no entry."""
    entries, orphans = [], 0
    with open(name, encoding="utf-8", errors="replace") as handle:
        for number, line in enumerate(handle, 1):
            line = line.rstrip()
            if not line:
                continue
            at = moment(line, naive, year)
            if at is not None:
                entries.append([at.astimezone(dt.timezone.utc), f"{name}:{number}", line, 0])
            elif entries:
                entries[-1][3] += 1
            else:
                orphans += 1
    return entries, orphans


def main():
    parser = argparse.ArgumentParser(description="Merge logs by time, in UTC.")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--zone", type=zone, default=dt.timezone.utc, help="offset of timestamps that name none (Z)")
    parser.add_argument("--year", type=int, help="year of timestamps that name none")
    parser.add_argument("--from", dest="start", type=bound)
    parser.add_argument("--to", dest="end", type=bound)
    parser.add_argument("--grep", help="keep entries that match this regular expression")
    parser.add_argument("--gap", type=float, default=10, metavar="MINUTES", help="show silences longer than this (10)")
    args = parser.parse_args()
    entries = []
    for name in args.files:
        try:
            found, orphans = read(name, args.zone, args.year)
        except NoYear:
            print(f"{name} has timestamps without a year; use --year YYYY", file=sys.stderr)
            return 2
        except OSError as error:
            print(f"cannot read {name}: {error}", file=sys.stderr)
            return 2
        if orphans:
            print(f"{name}: {orphans} lines before the first timestamp left out", file=sys.stderr)
        entries += found
    if not entries:
        print("no timestamps found", file=sys.stderr)
        return 1
    entries.sort(key=lambda entry: entry[0])
    try:
        wanted = re.compile(args.grep or "")
    except re.error as error:
        print(f"--grep is not a regular expression: {error}", file=sys.stderr)
        return 2
    last = None
    for at, source, text, more in entries:
        if (args.start and at < args.start) or (args.end and at > args.end) or not wanted.search(text):
            continue
        if last and (at - last).total_seconds() > args.gap * 60:
            print(f"   ... {(at - last).total_seconds() / 60:.0f} min without an entry")
        print(f"{at:%Y-%m-%dT%H:%M:%S.}{at.microsecond // 1000:03d}Z  {source}  {text}{f'  (+{more} lines)' if more else ''}")
        last = at
    return 0


if __name__ == "__main__":
    sys.exit(main())
