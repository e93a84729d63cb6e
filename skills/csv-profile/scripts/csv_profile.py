#!/usr/bin/env python3
"""Profile a CSV file column by column. Exit codes: 0 done, 1 no table in it, 2 usage or unreadable."""
import argparse
import collections
import csv
import datetime
import json
import re
import sys

INTEGER = re.compile(r"^[+-]?\d+$")
NUMBER = re.compile(r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
FLAGS = {"true", "false", "yes", "no", "y", "n"}


def type_of(cell):
    """The narrowest type of one cell. A leading zero makes an identifier, not a number."""
    if INTEGER.match(cell):
        return "text" if re.match(r"^[+-]?0\d", cell) else "integer"
    if NUMBER.match(cell):
        return "number"
    if cell.lower() in FLAGS:
        return "flag"
    try:
        datetime.datetime.fromisoformat(cell.replace("Z", "+00:00"))
        return "date"
    except ValueError:
        return "text"


class Column:
    def __init__(self, name):
        self.name, self.filled, self.empty = name, 0, 0
        self.values = collections.Counter()
        self.types, self.first = collections.Counter(), {}
        self.low = self.high = None

    def add(self, cell, row):
        cell = cell.strip()
        if not cell:
            self.empty += 1
            return
        self.filled += 1
        self.values[cell] += 1
        kind = type_of(cell)
        self.types[kind] += 1
        self.first.setdefault(kind, (row, cell))

    def kind(self):
        seen = set(self.types)
        if not seen:
            return "empty"
        if seen <= {"integer", "number"}:
            return "number" if "number" in seen else "integer"
        return seen.pop() if len(seen) == 1 else "text"

    def report(self):
        kind = self.kind()
        key = float if kind in ("integer", "number") else str
        values = list(self.values)
        out = {"name": self.name, "type": kind, "filled": self.filled, "empty": self.empty,
               "distinct": len(self.values), "min": min(values, key=key) if values else None,
               "max": max(values, key=key) if values else None, "top": self.values.most_common(3)}
        families = {"numbers": {"integer", "number"}, "dates": {"date"}, "flags": {"flag"}}
        for family, kinds in families.items():
            count = sum(self.types[name] for name in kinds)
            if kind == "text" and count >= 0.8 * self.filled > 0:
                row, cell = min(at for name, at in self.first.items() if name not in kinds)
                out["breaks"] = f"mostly {family}, but row {row} holds {cell!r}"
        return out


def profile(rows, header):
    columns = [Column(name.strip() or f"column {at}") for at, name in enumerate(header, 1)]
    remarks, seen, ragged, duplicates, count = [], set(), [], [], 0
    for number, row in rows:
        count += 1
        if len(row) != len(header):
            ragged.append(number)
        for column, cell in zip(columns, row + [""] * (len(header) - len(row))):
            column.add(cell, number)
        mark = hash(tuple(row))
        duplicates.extend([number] if mark in seen else [])
        seen.add(mark)
    names = collections.Counter(column.name for column in columns)
    remarks += [f"the header names {name!r} {n} times" for name, n in names.items() if n > 1]
    for what, found in (("more or fewer cells than the header", ragged), ("the same cells as an earlier row", duplicates)):
        if found:
            remarks.append(f"{len(found)} rows with {what}, first at row {found[0]}")
    reports = [column.report() for column in columns]
    remarks += [f"column {r['name']!r} is empty throughout" for r in reports if r["type"] == "empty"]
    remarks += [f"column {r['name']!r}: {r['breaks']}" for r in reports if "breaks" in r]
    return {"rows": count, "columns": reports, "remarks": remarks}


def markdown(result):
    print(f"{result['rows']} rows, {len(result['columns'])} columns\n")
    for remark in result["remarks"]:
        print(f"- {remark}")
    print("\n| column | type | filled | empty | distinct | smallest | largest | most frequent |")
    print("|---|---|--:|--:|--:|---|---|---|")
    for c in result["columns"]:
        top = ", ".join(f"{value} ×{n}" for value, n in c["top"])
        cells = [c["name"], c["type"], c["filled"], c["empty"], c["distinct"], c["min"], c["max"], top]
        shown = ("" if cell is None else str(cell).replace("|", "\\|").replace("\n", " ")[:40] for cell in cells)
        print("| " + " | ".join(shown) + " |")


def main():
    parser = argparse.ArgumentParser(description="Profile a CSV file column by column.")
    parser.add_argument("file")
    parser.add_argument("--delimiter", help="one character; found by itself when absent")
    parser.add_argument("--encoding", default="utf-8-sig")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    try:
        with open(args.file, encoding=args.encoding, newline="") as handle:
            delimiter = args.delimiter
            if not delimiter:
                line = handle.readline()
                delimiter = max(",;\t|", key=line.count)
                handle.seek(0)
            # Rows are numbered like a spreadsheet's: the header is row 1.
            rows = ((n, row) for n, row in enumerate(csv.reader(handle, delimiter=delimiter), 1) if any(row))
            _, header = next(rows, (0, []))
            if not header:
                print(f"{args.file}: no header, no rows", file=sys.stderr)
                return 1
            result = profile(rows, header)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        print(f"cannot read {args.file}: {error}; is it text? try --encoding latin-1", file=sys.stderr)
        return 2
    if args.json:
        json.dump(result, sys.stdout, indent=2, ensure_ascii=False)
        print()
    else:
        markdown(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
