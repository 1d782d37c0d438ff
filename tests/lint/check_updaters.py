#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of docs/updaters.md is the one that lib/model/tables/updaters.def
makes. check_updaters.py [--write] [ROOT]; --write writes it anew."""

import os
import re
import sys

from sources import finish, read_text, strip_comments

LIST = "lib/model/tables/updaters.def"
PAGE = "docs/updaters.md"
ROW = re.compile(r"^\| `(?!plugin)\w.*\n", re.MULTILINE)
CALL = re.compile(r'^(UPDATER|PARAMETER)\(((?:"[^"]*"|[^"])*?)\)$',
                  re.MULTILINE)
ITEM = re.compile(r'((?:"[^"]*"\s*)+|[^,"]+)(?:,|$)')
NOTES = {"WORKERS": ", up to 255"}  # PS_UPDATER_WORKERS_MAX


def items_of(text):
    """The arguments of a macro, strings joined and without quotes."""
    return ["".join(re.findall(r'"([^"]*)"', item)) if '"' in item
            else item.strip() for item in ITEM.findall(text)]


def rows_of(text):
    """The rows of the table, one an updater."""
    rows = []
    for macro, arguments in CALL.findall(strip_comments(text)):
        items = items_of(arguments)
        if macro == "UPDATER":
            _, _, name, _, _, arrays, state, _, rule = items
            if arrays != "0":
                state = f"{arrays}: {state}"
            rows.append((name, rule, [], state or "0"))
        else:
            _, setting, _, fallback, bound = items
            rows[-1][2].append(
                f"`{setting}` ({fallback}{NOTES.get(bound, '')})")
    return "".join(
        f"| `{name}` | {rule} |{''.join(' ' + s for s in settings)} "
        f"| {state} |\n" for name, rule, settings, state in rows)


def main():
    write = "--write" in sys.argv
    roots = [word for word in sys.argv[1:] if word != "--write"]
    root = roots[0] if roots else "."
    has = [os.path.exists(os.path.join(root, p)) for p in (LIST, PAGE)]
    if not any(has):
        finish([])
    if not all(has):
        finish([f"{PAGE} and {LIST} must both exist"])
    rows, page = rows_of(read_text(root, LIST)), read_text(root, PAGE)
    found = list(ROW.finditer(page))
    if not found:
        finish([f"{PAGE}: no table of updaters"])
    begin, end = found[0].start(), found[-1].end()
    if write:
        with open(os.path.join(root, PAGE), "w", encoding="utf-8") as file:
            file.write(page[:begin] + rows + page[end:])
        finish([])
    finish([] if page[begin:end] == rows else
           [f"{PAGE}: not the table of {LIST}; check_updaters.py --write "
            "writes it"])


if __name__ == "__main__":
    main()
