#!/usr/bin/env python3
"""The steps of an invoice's intake: read, check, book, receipt.

Reads one JSON object from standard input, answers one on standard output; what goes wrong is said on
standard error with exit code 1.
"""
import csv
import hashlib
import json
import os
import sys
from decimal import Decimal, InvalidOperation


def amount(text, line):
    try:
        return Decimal(text.strip())
    except InvalidOperation:
        sys.exit(f"line {line}: {text.strip()!r} is not an amount; expected e.g. 18.40")


def read(given):
    supplier, items, stated = "unknown", [], None
    for number, line in enumerate(given["text"].splitlines(), 1):
        parts = [part.strip() for part in line.split(";")]
        if line.lower().startswith("supplier:"):
            supplier = line.split(":", 1)[1].strip() or supplier
        elif len(parts) == 2 and parts[0].lower() == "total":
            stated = amount(parts[1], number)
        elif len(parts) == 3:
            quantity, price = amount(parts[1], number), amount(parts[2], number)
            items.append({"text": parts[0], "quantity": float(quantity), "price": float(price)})
    if not items:
        sys.exit("no line item found; a line item is a line `description; quantity; price`")
    print(f"{len(items)} line item{'s' * (len(items) != 1)} of {supplier}", file=sys.stderr)
    return {"supplier": supplier, "items": items, "stated": None if stated is None else float(stated)}


def check(given):
    total = sum(Decimal(str(p["quantity"])) * Decimal(str(p["price"])) for p in given["items"])
    stated = given.get("stated")
    if stated is not None and Decimal(str(stated)) != total:
        difference = Decimal(str(stated)) - total
        sys.exit(f"the line items add up to {total}, the invoice says {stated}: {difference:+} too much or too little")
    print(f"adds up to {total}", file=sys.stderr)
    return {"total": float(total)}


def book(given):
    # The key is the same for every attempt of this step, so that a repeated booking has the same number.
    key = os.environ.get("SKILLS_IDEMPOTENCY_KEY") or json.dumps(given, sort_keys=True)
    entry = "B-" + hashlib.sha256(key.encode()).hexdigest()[:8]
    with open("ledger.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["entry", "supplier", "amount", "items"])
        writer.writerow([entry, given["supplier"], f"{given['amount']:.2f}", len(given["items"])])
    print(f"booked as {entry}", file=sys.stderr)
    return {"entry": entry}


def receipt(given):
    return {"summary": f"{given['amount']:.2f} to {given['supplier']}, booked as {given['entry']}"}


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    steps = {"read": read, "check": check, "book": book, "receipt": receipt}
    print(json.dumps(steps[asked.pop("do")](asked)))
