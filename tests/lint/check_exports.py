#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What libpsd exports, three times the same: the public headers' PSD_EXPORT,
the list lib/client/libpsd.map, and the built library.
check_exports.py LIBRARY [ROOT]"""

import re
import subprocess
import sys

from sources import finish, list_files, read_text, strip_comments

MAP = "lib/client/libpsd.map"


def of_headers(root):
    names = set()
    for path in list_files(root):
        if path.startswith("lib/include/") and path.endswith(".h"):
            text = strip_comments(read_text(root, path))
            for match in re.finditer(r"^\s*PSD_EXPORT\b([^;{]*?)(\w+)\s*\(",
                                     text, re.MULTILINE):
                names.add(match.group(2))
    return names


def of_map(root):
    text = strip_comments(read_text(root, MAP))
    exported = text.split("global:")[1].split("local:")[0]
    return {n.strip() for n in exported.split(";") if n.strip()}


def of_library(library):
    listed = subprocess.run(["nm", "-D", "--defined-only", library],
                            capture_output=True, text=True, check=True)
    names = set()
    for line in listed.stdout.splitlines():
        _, kind, name = line.split()
        if kind != "A":  # A: the version's own name
            names.add(name.split("@")[0])
    return names


def compare(left, left_name, right, right_name):
    return [f"{name}: in {left_name}, not in {right_name}"
            for name in sorted(left - right)]


def main():
    library = sys.argv[1]
    root = sys.argv[2] if len(sys.argv) > 2 else "."
    headers, listed = of_headers(root), of_map(root)
    built = of_library(library)
    problems = [f"{name}: an exported name begins with psd_"
                for name in sorted(built) if not name.startswith("psd_")]
    problems += compare(headers, "the headers", listed, MAP)
    problems += compare(listed, MAP, headers, "the headers as PSD_EXPORT")
    problems += compare(listed, MAP, built, "the library")
    problems += compare(built, "the library", listed, MAP)
    finish(problems)


if __name__ == "__main__":
    main()
