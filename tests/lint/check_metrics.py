#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The metrics of lib/protocol/facts/families.def are named as Prometheus wants,
docs/metrics.md has the table that it makes, and each metric that the rules and the
dashboard name exists. check_metrics.py [--write] [ROOT]; --write writes the table."""

import json
import os
import re
import sys

from sources import finish, read_text, strip_comments

LIST = "lib/protocol/facts/families.def"
LABELS = "lib/server/metrics/family.h"
PAGE = "docs/metrics.md"
RULES = "share/prometheus/psd.rules.yml"
DASHBOARD = "share/grafana/psd.json"
CALL = re.compile(r'^([A-Z]+)\((\w+), (\w+), (\w+), (\w+), "([^"]*)", "([^"]*)"\)$',
                  re.MULTILINE)
ROW = re.compile(r"^\| `psd_.*\n", re.MULTILINE)
NAME = re.compile(r"\bpsd_[a-z0-9_]+\b")
LEAST = 40
SUFFIXES = ("_bucket", "_sum", "_count")


def families_of(text):
    """(source, type, dim, unit, name, help) of each row."""
    return [(c[0], c[1], c[2], c[3], c[5], c[6])
            for c in CALL.findall(text) if not c[0].startswith("#")]


def labels_of(text):
    """The labels that a source and a dimension add."""
    of = dict(re.findall(r'X\((\w+), ps_\w+, "([^"]*)"\)', text))
    of.update({"by " + dim: label for dim, label
               in re.findall(r'X\((\w+), "([^"]*)"\)', text)})
    return of


def name_problems(families):
    problems = []
    names = [family[4] for family in families]
    for _, kind, _, unit, name, words in families:
        if not re.fullmatch(r"psd(_[a-z0-9]+)+", name):
            problems.append(f"{name}: not psd_ and words of a-z and 0-9")
        if name.endswith("_total") != (kind == "COUNTER"):
            problems.append(f"{name}: _total is the end of counters, and of no other")
        if unit in ("MS", "NS") and "_seconds" not in name:
            problems.append(f"{name}: durations and times end in _seconds")
        if not words.endswith("."):
            problems.append(f"{name}: its help is no sentence")
        if name.endswith(SUFFIXES):
            problems.append(f"{name}: ends like a part of a histogram")
    problems += [f"{name}: twice" for name in set(names) if names.count(name) > 1]
    if len(names) < LEAST:
        problems.append(f"{LIST}: {len(names)} metrics, {LEAST} at least")
    return problems


def rows_of(families, labels):
    rows = []
    for source, kind, dim, _, name, words in families:
        of = ", ".join(f"`{label}`" for part in (labels[source], labels["by " + dim])
                       for label in part.split(", ") if label)
        rows.append(f"| `{name}` | {kind.lower()} | {of} | {words} |\n")
    return "".join(rows)


def strings_of(value):
    if isinstance(value, dict):
        return [s for v in value.values() for s in strings_of(v)]
    if isinstance(value, list):
        return [s for v in value for s in strings_of(v)]
    return [value] if isinstance(value, str) else []


def unknown(path, text, names):
    problems = []
    for found in sorted(set(NAME.findall(text))):
        base = next((found[:-len(s)] for s in SUFFIXES
                     if found.endswith(s) and found[:-len(s)] in names), found)
        if base not in names:
            problems.append(f"{path}: {found} is no metric of {LIST}")
    return problems


def main():
    write = "--write" in sys.argv
    roots = [word for word in sys.argv[1:] if word != "--write"]
    root = roots[0] if roots else "."
    paths = (LIST, LABELS, PAGE, RULES, DASHBOARD)
    lacking = [p for p in paths if not os.path.exists(os.path.join(root, p))]
    if len(lacking) == len(paths):
        finish([])
    if lacking:
        finish([f"{path} does not exist" for path in lacking])
    families = families_of(strip_comments(read_text(root, LIST)))
    labels = labels_of(strip_comments(read_text(root, LABELS)))
    problems = name_problems(families)
    rows, page = rows_of(families, labels), read_text(root, PAGE)
    found = list(ROW.finditer(page))
    if not found:
        finish([f"{PAGE}: no table of metrics"])
    begin, end = found[0].start(), found[-1].end()
    if write:
        with open(os.path.join(root, PAGE), "w", encoding="utf-8") as file:
            file.write(page[:begin] + rows + page[end:])
    elif page[begin:end] != rows:
        problems.append(f"{PAGE}: not the table that {LIST} makes; "
                        "run tests/lint/check_metrics.py --write")
    names = {family[4] for family in families}
    exprs = "\n".join(re.findall(r"expr:(.*(?:\n {8,}.*)*)", read_text(root, RULES)))
    problems += unknown(RULES, exprs, names)
    problems += unknown(DASHBOARD, "\n".join(
        strings_of(json.loads(read_text(root, DASHBOARD)))), names)
    finish(problems)


if __name__ == "__main__":
    main()
