#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program in README.md is the one that the tests compile and run: its C
block is examples/hello/hello.c behind the head comment. check_readme.py [ROOT]"""
import pathlib
import re
import sys

PAGE = "README.md"
PROGRAM = "examples/hello/hello.c"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    page = (root / PAGE).read_text(encoding="utf-8")
    program = (root / PROGRAM).read_text(encoding="utf-8")
    blocks = re.findall(r"```c\n(.*?)```", page, flags=re.DOTALL)
    wanted = program[program.index("#include"):]
    if wanted in blocks:
        return 0
    print(f"{PAGE}: no C block with the text of {PROGRAM}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
