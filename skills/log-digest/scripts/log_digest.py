#!/usr/bin/env python3
"""Digest a log: errors by message, slow requests, lines by host, one host, and the page that joins them.

Reads one JSON object from standard input, answers one on standard output.
"""
import collections
import json
import re
import sys

LINE = re.compile(r"^(?P<time>\S+)\s+(?P<host>\S+)\s+(?P<level>[A-Z]+)\s+(?P<message>.*)$")
TOOK = re.compile(r"\btook=(\d+)")


def log_of(given):
    """The attached file, where there is one; else the log that was given."""
    target = given.get("target")
    if not isinstance(target, dict):
        return given["log"]
    content = target.get("content")
    if not isinstance(content, str) or target.get("encoding", "text") != "text":
        name, form = target.get("name", "the attached file"), target.get("encoding", "no text")
        sys.exit(f"{name} is not a text log ({form}): attach a text file with one event per line")
    return content


def counted(count, noun):
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def events(given):
    log = log_of(given)
    lines = [line for line in log.splitlines() if line.strip()]
    found = [match.groupdict() for match in map(LINE.match, lines) if match]
    if len(found) < len(lines):
        print(f"{counted(len(lines) - len(found), 'line')} in a different format ignored", file=sys.stderr)
    return found


def errors(given):
    counts = collections.Counter(e["message"] for e in events(given) if e["level"] in ("ERROR", "FATAL"))
    return {"errors": [{"message": message, "times": times} for message, times in counts.most_common(10)]}


def slow(given):
    timed = [(int(t.group(1)), e) for e in events(given) for t in [TOOK.search(e["message"])] if t]
    timed.sort(key=lambda pair: -pair[0])
    return {"slow": [{"ms": ms, "host": e["host"], "what": TOOK.sub("", e["message"]).strip()}
                     for ms, e in timed[:5]]}


def sources(given):
    return {"sources": sorted({e["host"] for e in events(given)})}


def host(given):
    mine = [e for e in events(given) if e["host"] == given["host"]]
    bad = sum(e["level"] in ("ERROR", "FATAL") for e in mine)
    size = f"{given['host']}: {counted(len(mine), 'line')}"
    print(size, file=sys.stderr)
    return {"line": f"{size}, {counted(bad, 'error')}, last at {mine[-1]['time']}"}


def digest(given):
    hosts = given["hosts"] if isinstance(given["hosts"], list) else [given["hosts"]]
    page = ["Errors"] + [f"  {e['times']:>4} x {e['message']}" for e in given["errors"]]
    page += ["Slowest"] + [f"  {s['ms']:>6} ms  {s['host']}  {s['what']}" for s in given["slow"]]
    page += ["Hosts"] + [f"  {line}" for line in hosts]
    return {"digest": "\n".join(page)}


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    steps = {"errors": errors, "slow": slow, "sources": sources, "host": host, "digest": digest}
    print(json.dumps(steps[asked.pop("do")](asked)))
