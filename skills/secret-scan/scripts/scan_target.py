#!/usr/bin/env python3
"""Scan what a run hands over: a text, or every text inside a JSON value.

Reads `{"content": …}` from standard input, answers `{"control", "reason", "findings"}`; never prints a value.
"""
import json
import sys

sys.dont_write_bytecode = True
from secret_scan import ALLOW, scan  # noqa: E402


def texts(value, path="target"):
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from texts(part, f"{path}.{key}")
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from texts(part, f"{path}[{number}]")


findings = []
for place, text in texts(json.load(sys.stdin)["content"]):
    for number, line in enumerate(text.splitlines(), 1):
        if ALLOW not in line:
            findings += [{"file": place, "line": number, "rule": rule, "shown": shown} for rule, shown in scan(line)]
count = len(findings)
print(json.dumps({
    "control": "pause" if findings else "none",
    "reason": f"{count} finding{'' if count == 1 else 's'}",
    "findings": findings,
}))
