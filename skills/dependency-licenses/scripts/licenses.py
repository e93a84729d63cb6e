#!/usr/bin/env python3
"""List the licenses of a project's dependencies and judge them by an allow list.

Exit codes: 0 all allowed, 1 denied or unknown ones, 2 usage or unreadable.
"""
import argparse
import collections
import json
import re
import sys

ALLOWED = ("MIT MIT-0 Apache-2.0 BSD-2-Clause BSD-3-Clause ISC Zlib 0BSD Unlicense CC0-1.0 BSL-1.0 "
           "Unicode-3.0 Unicode-DFS-2016 PSF-2.0 Python-2.0").split()
# What packages write where an SPDX id is due.
ALIASES = {"apache 2.0": "Apache-2.0", "apache license 2.0": "Apache-2.0", "apache software license": "Apache-2.0",
           "apache license, version 2.0": "Apache-2.0", "mit license": "MIT", "the mit license": "MIT",
           "bsd license": "BSD-3-Clause", "bsd": "BSD-3-Clause", "isc license (iscl)": "ISC", "isc license": "ISC",
           "bsd 3-clause license": "BSD-3-Clause", "modified bsd license": "BSD-3-Clause",
           "python software foundation license": "PSF-2.0", "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0"}


class Expression:
    """Recursive descent over SPDX expressions: OR binds weakest, then AND, then WITH."""

    def __init__(self, text, allowed):
        text = re.sub(r"\s*/\s*", " OR ", text)  # the old Cargo way of writing OR
        self.words, self.at, self.allowed = re.findall(r"[()]|[^\s()]+", text), 0, allowed

    def peek(self):
        return self.words[self.at] if self.at < len(self.words) else ""

    def take(self):
        self.at += 1
        return self.words[self.at - 1] if self.at <= len(self.words) else ""

    def whole(self):
        verdict = self.either()
        if self.peek():
            raise ValueError(self.peek())
        return verdict

    def either(self):
        verdict = self.both()
        while self.peek().upper() == "OR":
            self.take()
            verdict = self.both() or verdict
        return verdict

    def both(self):
        verdict = self.one()
        while self.peek().upper() == "AND":
            self.take()
            verdict = self.one() and verdict
        return verdict

    def one(self):
        word = self.take()
        if word == "(":
            verdict = self.either()
            if self.take() != ")":
                raise ValueError("unclosed (")
            return verdict
        if not word or word == ")" or word.upper() in ("AND", "OR", "WITH"):
            raise ValueError(word)
        verdict = word.lower() in self.allowed
        if self.peek().upper() == "WITH":
            self.take()
            # An exception only ever adds permissions, so it never turns an allowed license into a denied one.
            verdict = f"{word} with {self.take()}".lower() in self.allowed or verdict
        return verdict


def judge(license_text, allowed):
    text = (license_text or "").strip()
    text = ALIASES.get(text.lower(), text)
    if not text or text.upper() in ("UNKNOWN", "UNLICENSED", "NOASSERTION") or text.upper().startswith("SEE LICENSE"):
        return text or "none stated", "unknown"
    try:
        return text, "allowed" if Expression(text, allowed).whole() else "denied"
    except ValueError:
        return text.splitlines()[0][:60], "unknown"


def cargo(document):
    members = set(document.get("workspace_members", []))
    for package in document["packages"]:
        if package["id"] not in members:
            name = package.get("license") or (package.get("license_file") and "SEE LICENSE")
            yield package["name"], package["version"], name


def npm(document):
    if "packages" not in document:
        raise ValueError("a lock file of npm 7 or newer is needed (it has a `packages` table)")
    for path, package in document["packages"].items():
        if path and not package.get("link"):
            name = package.get("name") or path.rsplit("node_modules/", 1)[-1]
            yield name, package.get("version", "?"), package.get("license")


def python():
    from importlib import metadata
    for found in metadata.distributions():
        info = found.metadata
        stated = info.get("License-Expression") or info.get("License")
        classes = [c.rsplit("::", 1)[-1].strip() for c in info.get_all("Classifier", []) if c.startswith("License ::")]
        # Many packages put their whole license text into the field: then the classifier is the better source.
        if (not stated or "\n" in stated) and classes:
            stated = classes[0]
        yield info.get("Name", "?"), info.get("Version", "?"), stated


def main():
    parser = argparse.ArgumentParser(description="List and judge the licenses of dependencies.",
                                     epilog="allowed by default: " + ", ".join(ALLOWED))
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--cargo", metavar="FILE", help="output of cargo metadata; - reads stdin")
    source.add_argument("--npm", metavar="FILE", help="package-lock.json")
    source.add_argument("--python", action="store_true", help="packages installed for this interpreter")
    parser.add_argument("--allow", help="comma-separated SPDX ids, in place of the default")
    args = parser.parse_args()
    allowed = {name.strip().lower() for name in (args.allow.split(",") if args.allow else ALLOWED)}
    try:
        if args.python:
            packages = list(python())
        else:
            name = args.cargo or args.npm
            text = sys.stdin.read() if name == "-" else open(name, encoding="utf-8").read()
            packages = list((cargo if args.cargo else npm)(json.loads(text)))
    except (OSError, ValueError, KeyError) as error:
        print(f"cannot read the package list: {error}", file=sys.stderr)
        return 2
    groups, counts = collections.defaultdict(list), collections.Counter()
    for name, version, stated in sorted(set(packages), key=str):
        text, verdict = judge(stated, allowed)
        groups[(("denied", "unknown", "allowed").index(verdict), verdict, text)].append(f"{name} {version}")
        counts[verdict] += 1
    for (_, verdict, text), names in sorted(groups.items()):
        print(f"{verdict:8} {text} ({len(names)}): {', '.join(names)}")
    print(", ".join(f"{counts[v]} {v}" for v in ("allowed", "denied", "unknown")), file=sys.stderr)
    return 1 if counts["denied"] or counts["unknown"] else 0


if __name__ == "__main__":
    sys.exit(main())
