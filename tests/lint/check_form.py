#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The form of files: the licence line, comments, lengths. check_form.py [ROOT]

Functions past 60 lines and C files past 800 are told, functions past 100 are an
error. The licence line stands in one of the first three lines of everything
that has comments and that we wrote."""

import os
import re
import sys

from sources import (C_ENDINGS, finish, list_files, read_text, strip_all,
                     strip_comments)

LICENCE = "SPDX-License-Identifier: Apache-2.0"
LICENSED_ENDINGS = C_ENDINGS + (
    ".py", ".sh", ".map", ".yaml", ".sql", ".proto", ".service", ".socket",
    ".bash", ".zsh", ".fish", ".in", ".conf", ".1", ".5", "meson.build",
    "meson_options.txt")
# Inputs and expected outputs of tests are not ours to comment.
DATA_DIRS = ("tests/fuzz/corpus/", "tests/golden/", "data/")

FILE_LINES_TOLD = 800
FUNCTION_LINES_TOLD = 60
FUNCTION_LINES_MAX = 100


def wants_licence(path, text):
    if path.startswith(DATA_DIRS) and not path.endswith((".c", "meson.build")):
        return False
    return path.endswith(LICENSED_ENDINGS) or text.startswith("#!")


def check_licence(path, text):
    if wants_licence(path, text) and \
            not any(LICENCE in line for line in text.split("\n")[:3]):
        return [f"{path}:1: no line with {LICENCE}"]
    return []


def check_comments(path, text):
    # Strings may hold "//"; block comments may too.
    problems = []
    kept = strip_comments(text, keep_line_comments=True)
    bare = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', kept)
    for number, line in enumerate(bare.split("\n"), 1):
        if "//" in line:
            problems.append(f"{path}:{number}: // is a leftover; /* */ stays")
    return problems


def check_lengths(path, text, notes):
    problems = []
    lines = text.split("\n")
    if len(lines) - 1 > FILE_LINES_TOLD:
        notes.append(f"note: {path}:1: {len(lines) - 1} lines; is it one idea?")
    start = None
    # In our format only a function has its braces in the first column.
    for number, line in enumerate(strip_all(text).split("\n"), 1):
        if line == "{":
            start = number
        elif line == "}" and start is not None:
            length = number - start - 1
            place = f"{path}:{start}: function of {length} lines"
            if length > FUNCTION_LINES_MAX:
                problems.append(f"{place}; the limit is {FUNCTION_LINES_MAX}")
            elif length > FUNCTION_LINES_TOLD:
                notes.append(f"note: {place}; past {FUNCTION_LINES_TOLD} a "
                             "reader loses the thread")
            start = None
    return problems


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    problems = []
    notes = []
    for path in list_files(root):
        if os.path.getsize(os.path.join(root, path)) > 1 << 20:
            continue
        text = read_text(root, path)
        problems += check_licence(path, text)
        if path.endswith(C_ENDINGS):
            problems += check_comments(path, text)
            problems += check_lengths(path, text, notes)
    for note in notes:
        print(note)
    finish(problems)


if __name__ == "__main__":
    main()
