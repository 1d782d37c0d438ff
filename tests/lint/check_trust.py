#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/security.md are those that lib/protocol/trust/*.def make.
check_trust.py [--write] [ROOT]; --write writes them."""

import os
import re
import sys

from sources import finish, read_text, strip_comments

ROLES = "lib/protocol/trust/trust_roles.def"
KINDS = "lib/protocol/trust/trust_kinds.def"
PAGE = "docs/security.md"
LISTS = {  # of KINDS, and how a kind is called
    "PS_TRUST_OPS": "requests of the control port",
    "PS_TRUST_MESSAGES": "data messages to a shard",
    "PS_TRUST_NODE_MESSAGES": "messages between registry and nodes",
    "PS_TRUST_QUORUM_MESSAGES": "messages between members of the registry",
}


def rows_of(text, name):
    """The arguments of each X of the list `name`."""
    found = re.search(r"#define " + name + r"\(X[^)]*\)((?:.*\\\n)*.*\n)", text)
    if not found:
        return []
    calls = re.findall(r"\bX\(((?:[^()]|\([^()]*\))*)\)", found.group(1))
    return [[item.strip() for item in call.replace("\\\n", " ").split(",")]
            for call in calls]


def roles_table(roles, rights):
    names = [row[0] for row in roles]
    lines = ["| object | verb | " + " | ".join(n.lower() for n in names) + " |",
             "| --- | --- |" + " --- |" * len(names)]
    for thing, verb, who in rights:
        cells = ["yes" if f"ANY({n})" in who else
                 "of all" if f"ALL({n})" in who else "–" for n in names]
        lines.append(f"| {thing.lower()} | {verb.lower()} | " + " | ".join(cells) + " |")
    return lines


def kinds_table(kinds):
    lines = ["| what | verb | object | kinds |", "| --- | --- | --- | --- |"]
    for name, title in LISTS.items():
        groups = {}
        for kind, verb, thing, _, *note in rows_of(kinds, name):
            star = r"\*" if note == ["NOTED"] else ""
            groups.setdefault((verb.lower(), thing.lower()), []).append(f"`{kind}`{star}")
        lines += [f"| {title} | {verb} | {thing} | {', '.join(members)} |"
                  for (verb, thing), members in groups.items()]
    return lines


def put(page, mark, lines):
    """The page with the table behind the heading line `mark` replaced; None: it has no such line."""
    table = re.compile(r"(<!-- " + mark + r" -->\n)((?:\|.*\n)*)")
    if not table.search(page):
        return None
    return table.sub(lambda m: m.group(1) + "".join(l + "\n" for l in lines), page, 1)


def main():
    write = "--write" in sys.argv
    roots = [word for word in sys.argv[1:] if word != "--write"]
    root = roots[0] if roots else "."
    has = [os.path.exists(os.path.join(root, p)) for p in (ROLES, KINDS, PAGE)]
    if not any(has):
        finish([])
    if not all(has):
        finish([f"{ROLES}, {KINDS} and {PAGE} must all exist"])
    roles, kinds = (strip_comments(read_text(root, p)) for p in (ROLES, KINDS))
    page = read_text(root, PAGE)
    made = put(page, "rights", roles_table(rows_of(roles, "PS_ROLE_MAP"),
                                           rows_of(roles, "PS_RIGHT_MAP")))
    made = made and put(made, "kinds", kinds_table(kinds))
    if made is None:
        finish([f"{PAGE}: no place for the tables of rights and kinds"])
    if write:
        with open(os.path.join(root, PAGE), "w", encoding="utf-8") as file:
            file.write(made)
        finish([])
    finish([] if made == page else
           [f"{PAGE}: not the tables of {ROLES} and {KINDS}; check_trust.py --write "
            "writes them"])


if __name__ == "__main__":
    main()
