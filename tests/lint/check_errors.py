#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every public function that is given an error empties it first, so that no old
text survives a call: its body begins with psd_error_clear(err), or with a
function whose name ends in enter(..., err), within FIRST lines.
check_errors.py [ROOT]"""
import pathlib
import re
import sys

HEADERS = "lib/include"
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
DECLARED = re.compile(
    r"PSD_EXPORT\b[^;{}]*?\b(psd_\w+)\s*\(([^;]*?psd_error_t \*err)\)\s*;")
# Not before `err` itself is worked on.
EXCEPTIONS = {"psd_error_set", "psd_error_wrap"}
FIRST = 8
EMPTIES = re.compile(r"\b(psd_error_clear\(err\)|\w*enter\([^;]*\berr\))")


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    sources = [(path, path.read_text(encoding="utf-8"))
               for path in sorted(root.glob("lib/**/*.c"))]
    problems = []
    for header in sorted(root.glob(HEADERS + "/**/*.h")):
        text = COMMENT.sub("", header.read_text(encoding="utf-8"))
        for name, _ in DECLARED.findall(text):
            if name in EXCEPTIONS:
                continue
            body = None
            for path, source in sources:
                found = re.search(
                    r"^\w[^\n]*\b" + name + r"\([^{;]*\)\n\{\n", source,
                    re.MULTILINE)
                if found:
                    body = source[found.end():].splitlines()[:FIRST]
                    where = path.relative_to(root)
                    break
            if body is None:
                problems.append(f"{header.relative_to(root)}: {name} has no "
                                "definition in lib")
            elif not EMPTIES.search("\n".join(body)):
                problems.append(f"{where}: {name} does not empty err first")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
