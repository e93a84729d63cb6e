#!/usr/bin/env python3
"""Check the order and form of a changelog. Exit codes: 0 clean, 1 findings, 2 unreadable or usage."""
import argparse
import datetime
import re
import sys

HEADING = re.compile(r"^## +\[?(?P<version>[^\]\s]+)\]?(?: +[-\u2013\u2014] +(?P<date>\S+))?(?P<yanked> +\[YANKED\])?\s*$")
VERSION = re.compile(r"^v?(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+\S+)?$")
CATEGORIES = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def order(version):
    """Semantic versioning's precedence: a pre-release comes before its release, numbers before words."""
    match = VERSION.match(version)
    if not match:
        return None
    numbers = tuple(int(part) for part in match.groups()[:3])
    if match.group(4) is None:
        return numbers, (1,)
    parts = tuple((0, int(p), "") if p.isdigit() else (1, 0, p) for p in match.group(4).split("."))
    return numbers, (0, parts)


def check(lines, wanted):
    sections, fenced = [], False
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        if fenced:
            continue
        if line.startswith("## "):
            sections.append({"line": number, "text": line.strip(), "entries": 0, "categories": []})
        elif sections and line.startswith("### "):
            sections[-1]["categories"].append([number, line[4:].strip(), 0])
        elif sections and re.match(r"^\s*([-*+]|\d+\.) +\S", line):
            sections[-1]["entries"] += 1
            if sections[-1]["categories"]:
                sections[-1]["categories"][-1][2] += 1
    if not sections:
        yield 1, "no version headings (`## [1.0.0] - 2025-01-31`)"
    seen, last_version, last_date, dated = {}, None, None, set()
    for at, section in enumerate(sections):
        line, match = section["line"], HEADING.match(section["text"])
        if not match:
            yield line, f"heading is not a version: {section['text']!r}"
            continue
        version, date = match.group("version"), match.group("date")
        unreleased = version.lower() == "unreleased"
        if unreleased and at != 0:
            yield line, "Unreleased must be the first section"
        if version in seen:
            yield line, f"{version} has a section already, in line {seen[version]}"
        seen.setdefault(version, line)
        for number, name, entries in section["categories"]:
            if name not in CATEGORIES:
                yield number, f"unknown category {name!r}; known: {', '.join(sorted(CATEGORIES))}"
            if entries == 0:
                yield number, f"{name} has no entries"
        if unreleased:
            continue
        if section["entries"] == 0 and not match.group("yanked"):
            yield line, f"{version} has no entries"
        key = order(version)
        if key is None:
            yield line, f"{version} is not a semantic version (MAJOR.MINOR.PATCH)"
        else:
            if last_version and key >= last_version[0]:
                yield line, f"{version} is below {last_version[1]}; expected newest first"
            last_version = (key, version)
            removed = [n for n, name, _ in section["categories"] if name == "Removed"]
            if removed and key[0][2] > 0 and key[1] == (1,):
                yield removed[0], f"{version} is a patch version, yet something was removed"
        if date is None:
            yield line, f"{version} has no date"
            continue
        try:
            day = datetime.date.fromisoformat(date)
        except ValueError:
            yield line, f"{date!r} is not a date (YYYY-MM-DD)"
            continue
        dated.add(version.lstrip("v"))
        if last_date and day > last_date:
            yield line, f"{version} is dated {day}, after the version above it"
        last_date = day
    if wanted and wanted.lstrip("v") not in dated:
        yield 1, f"no dated section for version {wanted}"


def main():
    parser = argparse.ArgumentParser(description="Check the order and form of a changelog.")
    parser.add_argument("file", nargs="?", default="CHANGELOG.md")
    parser.add_argument("--version", help="a version that must have a dated section")
    args = parser.parse_args()
    try:
        with open(args.file, encoding="utf-8-sig") as handle:
            lines = handle.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        print(f"cannot read {args.file}: {error}", file=sys.stderr)
        return 2
    findings = sorted(check(lines, args.version))
    for number, message in findings:
        print(f"{args.file}:{number}: {message}")
    print(f"{len(findings)} findings" if findings else "in order", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
