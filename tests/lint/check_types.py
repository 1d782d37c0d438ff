#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each type name denotes one type: no two headers define the same one, and no
source has one of its own that a header has. check_types.py [ROOT]"""

import collections
import os
import re
import sys

from sources import finish, read_text, strip_comments

ROOMS = ("lib", "daemon", "cli", "examples")
DEFINED = re.compile(r"\}\s*(ps\w*_t)\s*;"
                     r"|^typedef\s+[^;{}()]+?[\s*](ps\w*_t)\s*(?:;|\()",
                     re.MULTILINE)
BODY = re.compile(r"^(?:struct|enum|union)\s+(ps\w*)\s*\{", re.MULTILINE)
AHEAD = re.compile(r"^typedef\s+(?:struct|enum|union)\s+(\w+)\s+\1_t\s*;",
                   re.MULTILINE)


def types_of(text):
    """Names that the text defines, not those that it only names ahead; and
    those of which it has the body."""
    text = strip_comments(text)
    ahead = {match.group(1) + "_t" for match in AHEAD.finditer(text)}
    bodies = {name + "_t" for name in BODY.findall(text)}
    return {one or other for one, other in DEFINED.findall(text)} - ahead, bodies


def main(root):
    places = collections.defaultdict(list)
    hidden = set()  # sources may have bodies of their own for one name
    for room in ROOMS:
        for where, _, names in os.walk(os.path.join(root, room)):
            for name in names:
                path = os.path.relpath(os.path.join(where, name), root)
                if not path.endswith((".c", ".h")):
                    continue
                defined, bodies = types_of(read_text(root, path))
                for found in defined | bodies:
                    places[found].append(path)
                hidden |= bodies if path.endswith(".c") else set()
    finish([f"{found} is a type of {' and of '.join(sorted(paths))}"
            for found, paths in sorted(places.items())
            if len(paths) > 1 and not
            (found in hidden and all(p.endswith(".c") for p in paths))])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ".")
