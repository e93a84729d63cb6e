#!/usr/bin/env python3
"""Scan files for secrets; answers a control signal as JSON and never prints a value.

Exit codes: 0 nothing found, 1 findings, 2 usage or unreadable.
"""
import argparse
import collections
import json
import math
import re
import sys

RULES = [
    ("private-key", re.compile(r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----")),
    ("cloud-access-key", re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b")),
    ("forge-token", re.compile(r"\b(?:gh[opsr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}|glpat-[A-Za-z0-9_-]{20,})")),
    ("chat-token", re.compile(r"\bxox[abeprs]-[A-Za-z0-9-]{20,}")),
    ("web-token", re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}")),
    ("url-password", re.compile(r"\b[a-z][a-z0-9+.-]{0,30}://[^\s:/@]+:(?P<value>[^\s/@]{4,})@[\w.-]+")),
    ("assigned-secret", re.compile(
        r"(?i)(?:password|passwd|secret|token|api[_-]?key)[\"']?\s*[:=]\s*[\"'](?P<value>[^\"'\s]{12,})[\"']")),
]
PLACEHOLDER = re.compile(r"^[<${%*x.]|\*\*\*|^(?:password|changeme|example|placeholder)", re.IGNORECASE)
ALLOW = "secret-scan: allow"


def entropy(text):
    """Shannon entropy in bits a character."""
    counts = collections.Counter(text).values()
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts)


def scan(line):
    for rule, pattern in RULES:
        for match in pattern.finditer(line):
            named = "value" in pattern.groupindex
            value = match.group("value") if named else match.group(0)
            if named and PLACEHOLDER.search(value):
                continue
            if rule == "assigned-secret" and entropy(value) < 3.5:
                continue
            yield rule, f"{value[:4]}…({len(value)})"


def main():
    parser = argparse.ArgumentParser(description="Scan files for secrets.")
    parser.add_argument("files", nargs="+", help="- reads stdin")
    args = parser.parse_args()
    findings = []
    for name in args.files:
        try:
            handle = sys.stdin if name == "-" else open(name, encoding="utf-8", errors="replace")
            with handle:
                for number, line in enumerate(handle, 1):
                    if ALLOW not in line:
                        findings += [{"file": name, "line": number, "rule": rule, "shown": shown}
                                     for rule, shown in scan(line)]
        except OSError as error:
            print(f"cannot read {name}: {error}", file=sys.stderr)
            return 2
    count = len(findings)
    reason = "nothing found" if not count else f"{count} finding{'s' if count > 1 else ''}"
    answer = {"control": "pause" if count else "none", "reason": reason, "findings": findings}
    print(json.dumps(answer, ensure_ascii=False))
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
