#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Banned calls: the words that lib/base/banned.h poisons, looked for in the
code of lib, daemon, cli, examples and tests. check_calls.py [ROOT]"""

import re
import sys

from sources import (CODE_DIRS, C_ENDINGS, finish, line_of, list_files,
                     read_text, strip_all)

LIST = "lib/base/banned.h"
# Memory passes one door in the code that ships; a job and a test may do as
# they like.
MEMORY = {"malloc", "calloc", "realloc", "strdup", "strndup", "asprintf",
          "vasprintf"}
# Word -> paths (a prefix) where it is allowed.
ALLOWED = {
    "realloc": ["lib/base/alloc_resize.c"],
    "exit": ["daemon/main.c", "cli/main.c", "tests/"],
    "usleep": ["tests/bench/"],
}


def read_list(root):
    words = []
    for line in read_text(root, LIST).splitlines():
        match = re.match(r"#pragma GCC poison (.*)", line)
        if match:
            words += match.group(1).split()
    return words


def allowed(word, path):
    if word in MEMORY and path.startswith(("examples/", "tests/")):
        return True
    return any(path.startswith(p) for p in ALLOWED.get(word, []))


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    words = read_list(root)
    problems = [] if words else [f"{LIST}: lists nothing"]
    # Not members (x->exit) and not parts of longer words.
    pattern = re.compile(r"(?<![\w.>])(" + "|".join(words) + r")\s*\(")
    for path in list_files(root):
        if path == LIST or not path.endswith(C_ENDINGS) or \
                not path.startswith(tuple(d + "/" for d in CODE_DIRS)
                                    + ("tests/",)):
            continue
        bare = strip_all(read_text(root, path))
        for match in pattern.finditer(bare):
            if not allowed(match.group(1), path):
                problems.append(f"{path}:{line_of(bare, match.start())}: "
                                f"{match.group(1)} is banned, see {LIST}")
    finish(problems)


if __name__ == "__main__":
    main()
