#!/usr/bin/env python3
"""Measure how late timers fire and how much work fits between them, or judge such measurements.

Reads one JSON object from standard input, prints a line a second, and answers one JSON object on the last line.
"""
import json
import sys
import time

TICK = 0.02


def sample(given):
    until = time.monotonic() + float(given["seconds"])
    lateness, work, second = [], 0, time.monotonic() + 1
    while (now := time.monotonic()) < until:
        wake = now + TICK
        while time.monotonic() < wake - TICK / 2:
            sum(range(200))
            work += 1
        time.sleep(max(0.0, wake - time.monotonic()))
        lateness.append((time.monotonic() - wake) * 1000)
        if time.monotonic() >= second:
            print(f"round {given.get('round') or 1}: {max(lateness):.1f} ms late at worst", flush=True)
            second += 1
    if not lateness:
        sys.exit("nothing measured: `seconds` has to be more than 0")
    lateness.sort()
    return {"late_ms": round(lateness[int(len(lateness) * 0.95)], 2), "work": round(work / float(given["seconds"]))}


def judge(given):
    late = given["late_ms"] if isinstance(given["late_ms"], list) else [given["late_ms"]]
    work = given["work"] if isinstance(given["work"], list) else [given["work"]]
    worst = max(late)
    word = "calm" if worst < 2 else "usable" if worst < 10 else "busy"
    spread = (max(work) - min(work)) / max(work) if max(work) else 0
    return {"verdict": f"{word}: {worst} ms late, work per second differs by {spread:.0%}", "worst_ms": worst}


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    print(json.dumps({"sample": sample, "judge": judge}[asked.pop("do")](asked)))
