#!/usr/bin/env python3
"""Closing the books: collect entries by account, write the statement.

Reads one JSON object from standard input, answers one on standard output.
"""
import json
import sys
from decimal import Decimal, InvalidOperation


def collect(given):
    accounts = {}
    for number, line in enumerate(given["entries"].splitlines(), 1):
        if not line.strip():
            continue
        account, _, text = line.partition(";")
        try:
            accounts[account.strip()] = accounts.get(account.strip(), Decimal(0)) + Decimal(text.strip())
        except InvalidOperation:
            sys.exit(f"line {number}: {text.strip()!r} is not an amount; expected `account; amount`")
    print(f"{len(accounts)} account{'s' * (len(accounts) != 1)}", file=sys.stderr)
    return {"accounts": {name: float(sum_) for name, sum_ in sorted(accounts.items())},
            "balance": float(sum(accounts.values(), Decimal(0)))}


def report(given):
    payload = given.get("closed_by")
    by = payload.get("by") if isinstance(payload, dict) else payload
    lines = [f"Statement {given['period']}"]
    lines += [f"{name:<20} {amount:>12.2f}" for name, amount in given["accounts"].items()]
    lines.append(f"{'balance':<20} {given['balance']:>12.2f}")
    if by:
        lines.append(f"declared closed by {by}")
    return {"statement": "\n".join(lines)}


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    print(json.dumps({"collect": collect, "report": report}[asked.pop("do")](asked)))
