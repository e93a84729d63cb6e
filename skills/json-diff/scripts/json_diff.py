#!/usr/bin/env python3
"""Compare two JSON documents by structure. Exit codes: 0 equal, 1 different, 2 unreadable or usage."""
import argparse
import collections
import fnmatch
import json
import sys


def kind(value):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    return {str: "string", list: "array", dict: "object"}[type(value)]


def step(path, key):
    """One more reference token, escaped as RFC 6901 says."""
    return f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}"


def canonical(value):
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def differences(a, b, path, unordered):
    if kind(a) != kind(b):
        yield "!", path, a, b
    elif isinstance(a, dict):
        for key in sorted(set(a) | set(b)):
            where = step(path, key)
            if key not in b:
                yield "-", where, a[key], None
            elif key not in a:
                yield "+", where, None, b[key]
            else:
                yield from differences(a[key], b[key], where, unordered)
    elif isinstance(a, list) and unordered:
        left, right = collections.Counter(map(canonical, a)), collections.Counter(map(canonical, b))
        for text in (left - right).elements():
            yield "-", path + "/*", json.loads(text), None
        for text in (right - left).elements():
            yield "+", path + "/*", None, json.loads(text)
    elif isinstance(a, list):
        for at in range(max(len(a), len(b))):
            where = step(path, at)
            if at >= len(b):
                yield "-", where, a[at], None
            elif at >= len(a):
                yield "+", where, None, b[at]
            else:
                yield from differences(a[at], b[at], where, unordered)
    elif a != b:
        yield "~", path, a, b


def shown(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


def load(name):
    try:
        with open(name, encoding="utf-8-sig") as handle:
            return json.load(handle)
    except (OSError, ValueError) as error:
        print(f"cannot read {name}: {error}", file=sys.stderr)
        sys.exit(2)


def main():
    parser = argparse.ArgumentParser(description="Compare two JSON documents by structure.")
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--ignore", action="append", default=[], metavar="POINTER", help="leave paths out; * and ? allowed")
    parser.add_argument("--unordered", action="store_true", help="compare arrays as bags")
    args = parser.parse_args()
    found = 0
    for mark, path, a, b in differences(load(args.before), load(args.after), "", args.unordered):
        if any(fnmatch.fnmatchcase(path, pattern) for pattern in args.ignore):
            continue
        found += 1
        text = {"+": lambda: shown(b), "-": lambda: shown(a), "!": lambda: f"{kind(a)} -> {kind(b)}",
                "~": lambda: f"{shown(a)} -> {shown(b)}"}[mark]()
        print(f"{mark} {path or '/'}   {text}")
    print(f"{found} differences" if found else "equal", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
