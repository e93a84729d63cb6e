#!/usr/bin/env python3
"""Scan what a run hands over: a text, or every text inside a JSON value, the names of its fields included.

Reads `{"content": …}` from standard input, answers `{"control", "reason", "findings"}`; never prints a value.
"""
import json
import sys

sys.dont_write_bytecode = True
from secret_scan import ALLOW, scan  # noqa: E402


def found(place, text, only=None):
    return [
        {"file": place, "line": number, "rule": rule, "shown": shown}
        for number, line in enumerate(text.splitlines(), 1)
        if ALLOW not in line
        for rule, shown in scan(line)
        if only in (None, rule)
    ]


def look(value, place="target"):
    if isinstance(value, str):
        yield from found(place, value)
    elif isinstance(value, dict):
        for number, (name, part) in enumerate(value.items(), 1):
            in_name = found(f"{place}, name of field {number}", name)
            yield from in_name
            # A place is printed: a name that holds a secret is not part of it.
            inner = f"{place}.(field {number})" if in_name else f"{place}.{name}"
            in_part = list(look(part, inner))
            if isinstance(part, str) and not in_part and ALLOW not in part:
                # What only its name makes a secret, as `password = "…"` is in a text.
                in_part = found(inner, f'{name}: "{part}"', only="assigned-secret")
            yield from in_part
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from look(part, f"{place}[{number}]")


findings = list(look(json.load(sys.stdin)["content"]))
count = len(findings)
print(json.dumps({
    "control": "pause" if findings else "none",
    "reason": f"{count} finding{'' if count == 1 else 's'}",
    "findings": findings,
}))
