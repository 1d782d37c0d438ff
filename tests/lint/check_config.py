#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every key of the configuration is in conf/psd.yaml and the other way round.
check_config.py [ROOT]

lib/server/config/config_keys.def has one row per key, whose first string is the key's
dotted path: X("listen.control", ...). conf/psd.yaml shows every key, set or
commented out as "#key: value" (prose has a space: "# text"), under a comment
that explains it."""

import os
import re
import sys

from sources import finish, read_text, strip_comments

KEYS = "lib/server/config/config_keys.def"
REFERENCE = "conf/psd.yaml"
KEY_LINE = re.compile(r"^( *)(#?)([A-Za-z_][A-Za-z0-9_]*):(.*)$")


def of_table(root):
    text = strip_comments(read_text(root, KEYS))
    return set(re.findall(r'^\s*[A-Z_]+\(\s*"([a-z0-9_.]+)"', text,
                          re.MULTILINE))


def of_reference(root, problems):
    """Dotted paths of the leaves of the reference, and what lacks words."""
    found = []  # (indent, name, has an explanation, line number)
    explained = False
    for number, line in enumerate(read_text(root, REFERENCE).split("\n"), 1):
        match = KEY_LINE.match(line)
        if match:
            found.append((len(match.group(1)), match.group(3), explained,
                          number))
            explained = False
        elif re.match(r"^\s*# \S", line):
            explained = True
        elif not line.strip():
            explained = False
    paths = set()
    stack = []
    for place, (indent, name, words, number) in enumerate(found):
        while stack and stack[-1][0] >= indent:
            stack.pop()
        stack.append((indent, name))
        is_group = place + 1 < len(found) and found[place + 1][0] > indent
        if is_group:
            continue
        paths.add(".".join(n for _, n in stack))
        if not words:
            problems.append(f"{REFERENCE}:{number}: {name} has no comment "
                            "above it")
    return paths


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    problems = []
    has = [os.path.exists(os.path.join(root, p)) for p in (KEYS, REFERENCE)]
    if not any(has):
        print("note: neither the key table nor the reference exists yet")
        finish([])
    if not all(has):
        finish([f"{REFERENCE} and {KEYS} must both exist"])
    table, reference = of_table(root), of_reference(root, problems)
    if not table:
        problems.append(f"{KEYS}: has no row")
    problems += [f"{key}: in {KEYS}, not in {REFERENCE}"
                 for key in sorted(table - reference)]
    problems += [f"{key}: in {REFERENCE}, not in {KEYS}"
                 for key in sorted(reference - table)]
    finish(problems)


if __name__ == "__main__":
    main()
