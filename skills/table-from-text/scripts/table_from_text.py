#!/usr/bin/env python3
"""Turn a plain-text table into CSV. Reads a file or stdin, writes CSV (RFC 4180) to stdout.

Exit codes: 0 done, 1 the text is not a regular table, 2 usage.
"""
import argparse
import csv
import io
import re
import sys

BARS = "|\u2502\u2503\u2551"
FOOTER = re.compile(r"^\(?\d+ rows?( in set.*)?\)?$")
RULER = re.compile(r"^[\s\-=+|:\u2500-\u257f]+$")


def is_ruler(line):
    """A line made of nothing but rulers and corners, with at least one ruler stroke."""
    return bool(RULER.match(line)) and bool(re.search(r"[-=\u2500\u2501\u2550]", line))


def guess(lines):
    body = [line for line in lines if not is_ruler(line)]
    if body and sum(any(b in line for b in BARS) for line in body) == len(body):
        return "pipes"
    # Only the header is asked: a quoted cell further down may hold a line break.
    if body and "\t" in body[0]:
        return "tabs"
    return "columns"


def pipes(lines):
    for number, line in lines:
        if is_ruler(line):
            continue
        for bar in BARS[1:]:
            line = line.replace(bar, "|")
        text = line.strip()
        text = text[1:] if text.startswith("|") else text
        if text.endswith("|") and not text.endswith("\\|"):
            text = text[:-1]
        cells = re.split(r"(?<!\\)\|", text)
        yield number, [cell.strip().replace("\\|", "|") for cell in cells]


def tabs(lines):
    """Clipboard form: quoted cells may hold tabs and line breaks, so the csv reader takes the whole text."""
    text = "\n".join(line for _, line in lines)
    reader = csv.reader(io.StringIO(text), delimiter="\t")
    first = lines[0][0]
    previous = 0
    for row in reader:
        yield first + previous, [cell.strip() for cell in row]
        previous = reader.line_num


def columns(lines, min_gap):
    kept = [(number, line.expandtabs(8)) for number, line in lines if not is_ruler(line)]
    width = max((len(line) for _, line in kept), default=0)
    blank = [all(at >= len(line) or line[at] == " " for _, line in kept) for at in range(width)]
    borders, start = [], None
    for at in range(width + 1):
        if at < width and blank[at]:
            start = at if start is None else start
        elif start is not None:
            if start > 0 and at < width and at - start >= min_gap:
                borders.append(start)
            start = None
    edges = [0] + borders + [width]
    for number, line in kept:
        yield number, [line[a:b].strip() for a, b in zip(edges, edges[1:])]


def main():
    parser = argparse.ArgumentParser(description="Turn a plain-text table into CSV.")
    parser.add_argument("file", nargs="?", default="-", help="text file; - or nothing reads stdin")
    parser.add_argument("--form", choices=["auto", "pipes", "tabs", "columns"], default="auto")
    parser.add_argument("--min-gap", type=int, default=2, metavar="N", help="blank positions that make a border (2)")
    parser.add_argument("--pad", action="store_true", help="fill short rows with empty cells instead of stopping")
    args = parser.parse_args()

    try:
        text = sys.stdin.read() if args.file == "-" else open(args.file, encoding="utf-8-sig").read()
    except (OSError, UnicodeDecodeError) as error:
        print(f"cannot read {args.file}: {error}", file=sys.stderr)
        return 2
    lines = [(n, line) for n, line in enumerate(text.splitlines(), 1)
             if line.strip() and not FOOTER.match(line.strip())]
    if not lines:
        print("no table: the input has no text", file=sys.stderr)
        return 1

    form = guess([line for _, line in lines]) if args.form == "auto" else args.form
    if form == "columns":
        rows = list(columns(lines, max(1, args.min_gap)))
    else:
        rows = list(pipes(lines) if form == "pipes" else tabs(lines))
    want = len(rows[0][1]) if rows else 0
    if want < 2:
        print(f"no table: read as {form}, but there is only one column; try --form or --min-gap 1", file=sys.stderr)
        return 1
    for number, row in rows:
        if len(row) < want and args.pad:
            row.extend([""] * (want - len(row)))
        elif len(row) != want:
            print(f"line {number}: {len(row)} cells where the header has {want}; read as {form}", file=sys.stderr)
            return 1

    writer = csv.writer(sys.stdout, lineterminator="\r\n")
    writer.writerows(row for _, row in rows)
    print(f"{form}: {len(rows) - 1} rows, {want} columns", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
