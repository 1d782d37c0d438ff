#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A compiler that drops a prefetch says nothing, and all is only slower. So each
file of lib/ that asks the processor ahead must have the instructions for it: at
least as many as its text has calls.
check_prefetch.py BUILD [ROOT]     BUILD: a meson build directory, built"""

import glob
import os
import re
import subprocess
import sys

from sources import finish, list_files, read_text, strip_all

CALL = re.compile(r"\b(?:__builtin|ps(?:_\w+)?)_prefetch(?:_\w+)?\s*\(")
INSTRUCTION = re.compile(r"\t(?:prefetch|prfm)")  # x86, arm


def object_of(build, path):
    room, name = path.split("/")[-2:]
    found = glob.glob(os.path.join(build, "lib", "**", f"*{room}_{name}.o"),
                      recursive=True)
    return found[0] if found else None


def count(binary):
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", binary],
                          capture_output=True, text=True, check=True).stdout
    return len(INSTRUCTION.findall(text))


def main():
    build = sys.argv[1]
    root = sys.argv[2] if len(sys.argv) > 2 else "."
    problems = []
    for path in list_files(root):
        if not path.startswith("lib/") or not path.endswith(".c"):
            continue
        calls = len(CALL.findall(strip_all(read_text(root, path))))
        if calls == 0:
            continue
        binary = object_of(build, path)
        if binary is None:
            problems.append(f"{path}: no object below {build}/lib: build first")
            continue
        asked = count(binary)
        if asked < calls:
            problems.append(f"{path}: {calls} calls ask ahead, {asked} "
                            "instructions do; see lib/base/prefetch.h")
    finish(problems)


if __name__ == "__main__":
    main()
