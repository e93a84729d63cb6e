#!/usr/bin/env python3
"""Compare a wanted version with a changelog's newest one, and draft the announcement.

Reads one JSON object from standard input, answers one on standard output; a version that does not agree is
exit code 1 with both numbers on standard error.
"""
import json
import re
import sys

HEADING = re.compile(r"^#+\s.*?(\d+(?:\.\d+)+(?:-[0-9A-Za-z.-]+)?)")


def newest(given):
    version, notes = None, []
    for line in given["changelog"].splitlines():
        heading = HEADING.match(line)
        if heading and version:
            break
        if heading:
            version = heading.group(1)
        elif version and line.lstrip().startswith(("-", "*")):
            notes.append(line.lstrip("-* \t").strip())
    if not version:
        sys.exit("no version heading found; the newest one must be first, like `## 1.4.1`")
    return {"newest": version, "notes": notes}


def compare(given):
    if given["wanted"].removeprefix("v") != given["newest"]:
        sys.exit(f"expected version {given['wanted'].removeprefix('v')}, but the latest changelog entry is {given['newest']}")
    return {"agrees": True}


def draft(given):
    points = "\n".join(f"- {note}" for note in given["notes"]) or "- no notes"
    return {"announcement": f"Version {given['version']} is out.\n\n{points}"}


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    print(json.dumps({"newest": newest, "compare": compare, "draft": draft}[asked.pop("do")](asked)))
