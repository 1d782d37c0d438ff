#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How large the code is, whatever its layout: C tokens without comments of all
.c, .h and .def files outside of tests/, by folder, and their sum. A token is a
literal, a word, or one other character.
count_tokens.py [--commit COMMIT] [ROOT]"""

import argparse
import collections
import re
import subprocess

from sources import C_ENDINGS, list_files, read_text

COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
TOKEN = re.compile(
    r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|\w+|[^\w\s]')


def count(text):
    return len(TOKEN.findall(COMMENT.sub(" ", text)))


def texts_of(root, commit):
    """(path, text) of each file, of the tree or of a commit."""
    if commit is None:
        paths = list_files(root)
    else:
        paths = subprocess.run(
            ["git", "-C", root, "ls-tree", "-r", "--name-only", commit],
            capture_output=True, text=True, check=True).stdout.splitlines()
    for path in paths:
        if not path.endswith(C_ENDINGS) or path.startswith("tests/"):
            continue
        if commit is None:
            yield path, read_text(root, path)
        else:
            yield path, subprocess.run(
                ["git", "-C", root, "show", f"{commit}:{path}"],
                capture_output=True, check=True).stdout.decode()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commit")
    parser.add_argument("root", nargs="?", default=".")
    arguments = parser.parse_args()
    folders = collections.Counter()
    for path, text in texts_of(arguments.root, arguments.commit):
        folders["/".join(path.split("/")[:2 if path.startswith("lib/") else 1])] += \
            count(text)
    for folder, n_tokens in sorted(folders.items()):
        print(f"{n_tokens:8} {folder}")
    print(f"{sum(folders.values()):8} in all")


if __name__ == "__main__":
    main()
