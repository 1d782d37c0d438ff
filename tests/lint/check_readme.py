#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs in README.md and in pages of docs are those that the tests compile
and run: each page has a C block with the text of its program behind the head
comment. A function that a page shows is the program's. check_readme.py [ROOT]"""
import pathlib
import re
import sys

PROGRAMS = {
    "README.md": "examples/hello/hello.c",
    "docs/api.md": "examples/worker/worker.c",
    "docs/training.md": "examples/train/train.c",
}

FUNCTIONS = {"docs/quickstart.md": ("examples/queue/queue.c", "work_through")}


def is_told(root, page, program):
    text = (root / page).read_text(encoding="utf-8")
    source = (root / program).read_text(encoding="utf-8")
    blocks = re.findall(r"```c\n(.*?)```", text, flags=re.DOTALL)
    if source[source.index("#include"):] in blocks:
        return True
    print(f"{page}: no C block with the text of {program}")
    return False


def is_shown(root, page, program, name):
    text = (root / page).read_text(encoding="utf-8")
    source = (root / program).read_text(encoding="utf-8")
    function = re.search(rf"^\w[^\n]*\b{name}\(.*?^}}\n", source,
                         flags=re.DOTALL | re.MULTILINE)
    if function and f"```c\n{function.group()}```" in text:
        return True
    print(f"{page}: no C block with {name} of {program}")
    return False


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    told = [is_told(root, *row) for row in PROGRAMS.items()]
    told += [is_shown(root, page, *row) for page, row in FUNCTIONS.items()]
    return 0 if all(told) else 1


if __name__ == "__main__":
    sys.exit(main())
