# SPDX-License-Identifier: Apache-2.0
"""What the checks share: which files are ours, and C text without comments.
sources.py c|scripts|prose prints the paths of one kind, one a line."""

import os
import re
import subprocess
import sys

C_ENDINGS = (".c", ".h", ".def")
CODE_DIRS = ("lib", "daemon", "cli", "examples")

_TOKEN = re.compile(
    r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'',
    re.DOTALL,
)


def list_files(root):
    """Paths of our files below root, relative to it: what git tracks or would
    track; without git, everything but builds and hidden directories."""
    found = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "--cached", "--others",
         "--exclude-standard"],
        capture_output=True,
        check=False,
    )
    if found.returncode == 0:
        paths = found.stdout.decode().split("\0")
    else:
        paths = []
        for directory, names, files in os.walk(root):
            names[:] = [n for n in names
                        if not n.startswith((".", "build", "__pycache__"))]
            paths += [os.path.relpath(os.path.join(directory, f), root)
                      for f in files]
    return sorted(p for p in set(paths)
                  if p and os.path.isfile(os.path.join(root, p)))


def read_text(root, path):
    with open(os.path.join(root, path), encoding="utf-8",
              errors="replace") as file:
        return file.read()


def blank(match):
    """Spaces in place of a token; line breaks stay, so lines keep numbers."""
    return re.sub(r"[^\n]", " ", match.group(0))


def strip_comments(text, keep_line_comments=False):
    """Text with comments blanked; strings stay."""
    def replace(match):
        token = match.group(0)
        if token.startswith("/*"):
            return blank(match)
        if token.startswith("//") and not keep_line_comments:
            return blank(match)
        return token
    return _TOKEN.sub(replace, text)


def strip_all(text):
    """Text with comments, strings and characters blanked."""
    return _TOKEN.sub(blank, text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def finish(problems):
    """Prints problems, one a line, and ends the program."""
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)


def is_script(path):
    first = read_text(".", path).split("\n", 1)[0]
    return path.endswith(".sh") or (first.startswith("#!")
                                    and first.endswith("sh"))


def is_prose(path):
    """What people read: all but data, the licence, and what others wrote."""
    return path != "LICENSE" and not path.startswith(
        ("daemon/page/uplot/", "data/", "tests/fuzz/corpus/", "tests/golden/"))


KINDS = {
    "c": lambda path: path.endswith((".c", ".h")),
    "scripts": is_script,
    "prose": is_prose,
}

if __name__ == "__main__":
    for name in filter(KINDS[sys.argv[1]], list_files(".")):
        print(name)
