#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/environment.md has the tables that lib/base/env_settings.def and
lib/transport/environment/aliases.def make, and tests/integration/it_environment.sh has a
line "row FAMILY NAME SETTING" for each alias, whose effect it checks.
check_environment.py [--write] [ROOT]; --write writes the page's tables again."""

import os
import re
import sys

from sources import finish, read_text, strip_comments

SETTINGS = "lib/base/env_settings.def"
ALIASES = "lib/transport/environment/aliases.def"
PAGE = "docs/environment.md"
TEST = "tests/integration/it_environment.sh"
CALL = re.compile(r'^(SETTING|ALIAS)\(((?:"[^"]*"|[^"])*?)\)$', re.MULTILINE)
ITEM = re.compile(r'((?:"[^"]*"\s*)+|[^,"]+)(?:,|$)')
ROW = re.compile(r"^\s*row (\S+) (\S+) (\S+)$", re.MULTILINE)
TITLES = {"SETTING": "| variable | default | what it sets |\n|---|---|---|\n",
          "ALIAS": "| name | of | becomes | how |\n|---|---|---|---|\n"}
HOW = {
    "TEXT": "as it is", "LAST": "as it is", "HOST": "the host", "PORT": "the port",
    "INTERFACE": "the host: an interface's address", "SECONDS": "in ms", "WHEN": "when on: `%s`",
    "UNLESS": "when off: `%s`", "ZERO": "when 0: `%s`", "WORDS": "`%s`", "MORE": "one more",
    "NAMED": "`%s` and what it says", "NODE": "the node's %s", "FILE": "its lines `id ip:port`",
    "NOTHING": "no effect", "REFUSED": "refused",
}


def items_of(text):
    """The arguments of a macro, strings joined and without quotes."""
    return ["".join(re.findall(r'"([^"]*)"', item)) if '"' in item
            else item.strip() for item in ITEM.findall(text)]


def calls_of(root, path):
    return [items_of(arguments) for _, arguments in
            CALL.findall(strip_comments(read_text(root, path)))]


def table_of_settings(rows):
    text = ""
    for name, kind, least, most, fallback, words in rows:
        if kind == "WORDS":
            first, *others = fallback.split("|")
            fallback, words = first, words + "; or " + ", ".join(f"`{w}`" for w in others)
        shown = f"`{fallback}`" if fallback else ""
        text += f"| `{name}` | {shown} | {words} |\n"
    return text


def table_of_aliases(rows):
    text = ""
    for family, name, setting, how, detail, words in rows:
        said = HOW[how] % detail.replace("=!", " refused") if "%s" in HOW[how] else HOW[how]
        target = f"`{setting}`" if setting else ""
        text += f"| `{name}` | {family} | {target} | {said}{': ' if words else ''}{words} |\n"
    return text


def put(page, kind, table):
    """The page with this table in it; None: it has no place for one."""
    title = TITLES[kind]
    begin = page.find(title)
    if begin < 0:
        return None
    begin += len(title)
    end = begin
    while page.startswith("|", end):
        end = page.index("\n", end) + 1
    return page[:begin] + table + page[end:]


def main():
    write = "--write" in sys.argv
    roots = [word for word in sys.argv[1:] if word != "--write"]
    root = roots[0] if roots else "."
    paths = (SETTINGS, ALIASES, PAGE, TEST)
    has = [os.path.exists(os.path.join(root, p)) for p in paths]
    if not any(has):
        finish([])
    if not all(has):
        finish([f"{', '.join(paths)} must all exist"])
    aliases = calls_of(root, ALIASES)
    page = read_text(root, PAGE)
    problems = []
    for kind, table in (("SETTING", table_of_settings(calls_of(root, SETTINGS))),
                        ("ALIAS", table_of_aliases(aliases))):
        wanted = put(page, kind, table)
        if wanted is None:
            problems.append(f"{PAGE}: no table that begins with {TITLES[kind].splitlines()[0]}")
        elif write:
            page = wanted
        elif wanted != page:
            problems.append(f"{PAGE}: not the table of the .def file; run check_environment.py "
                            "--write")
    if write:
        with open(os.path.join(root, PAGE), "w", encoding="utf-8") as file:
            file.write(page)
    rows = {(family, name, setting or "-") for family, name, setting, *_ in aliases}
    tested = set(ROW.findall(read_text(root, TEST))) - {("-", "-", "-")}
    problems += [f"{ALIASES}: {name} ({family}, {setting}): no line \"row {family} {name} "
                 f"{setting}\" in {TEST}" for family, name, setting in sorted(rows - tested)]
    problems += [f"{TEST}: row {' '.join(row)} is not in {ALIASES}"
                 for row in sorted(tested - rows)]
    finish(problems)


if __name__ == "__main__":
    main()
