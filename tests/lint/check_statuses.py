#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every status has its line in docs/errors.md, word for word, and the other way
round; no number and no code stands twice. check_statuses.py [ROOT]"""
import pathlib
import re
import sys

HEADER = "lib/include/psd/status.h"
PAGE = "docs/errors.md"
TEXT = r'"((?:[^"\\]|\\.)*)"'
ROW = re.compile(
    r"X\(\s*(\w+),\s*(\d+),\s*\"(E\d+)\",\s*(\d+),\s*" + TEXT + r",\s*" + TEXT + r"\)"
)


def rows_of_header(text):
    joined = text.replace("\\\n", "\n")
    for name, number, code, end, words, hint in ROW.findall(joined):
        hint = hint.replace('\\"', '"')
        yield f"| {code} | `{name}` | {number} | {end} | {words} | {hint} |"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    wanted = list(rows_of_header((root / HEADER).read_text(encoding="utf-8")))
    page = (root / PAGE).read_text(encoding="utf-8")
    there = [line for line in page.splitlines() if line.startswith("| E")]
    problems = []
    for line in wanted:
        if line not in there:
            problems.append(f"{PAGE}: missing: {line}")
    for line in there:
        if line not in wanted:
            problems.append(f"{PAGE}: not in {HEADER}: {line}")
    for place, what in ((1, "code"), (3, "number")):
        seen = set()
        for line in wanted:
            value = line.split(" | ")[0 if place == 1 else 2]
            if value in seen:
                problems.append(f"{HEADER}: {what} {value} stands twice")
            seen.add(value)
    if not wanted:
        problems.append(f"{HEADER}: no status found")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
