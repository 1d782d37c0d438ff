#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a library exports, three times the same: its public headers' PSD_EXPORT,
its list (libpsd.map), and the built library.
check_exports.py LIBRARY [ROOT]     LIBRARY: …/libpsd.so, …/libpsd_linalg.so
or …/libpsd_server.so"""

import os
import re
import subprocess
import sys

from sources import finish, list_files, read_text, strip_comments

# Library -> its list, and the header that is its own; libpsd has the others.
LIBRARIES = {
    "libpsd_linalg.so": ("lib/linalg/libpsd_linalg.map", "psd_linalg.h"),
    "libpsd_server.so": ("lib/server/libpsd_server.map", "psd_server.h"),
    "libpsd.so": ("lib/client/libpsd.map", None),
}
OWN_HEADERS = {header for _, header in LIBRARIES.values() if header}


def of_headers(root, own):
    names = set()
    for path in list_files(root):
        header = path.removeprefix("lib/include/")
        if header == path or not path.endswith(".h"):
            continue
        if header == own or (own is None and header not in OWN_HEADERS):
            text = strip_comments(read_text(root, path))
            for match in re.finditer(r"^\s*PSD_EXPORT\b([^;{]*?)(\w+)\s*\(",
                                     text, re.MULTILINE):
                names.add(match.group(2))
    return names


def of_map(root, path):
    text = strip_comments(read_text(root, path))
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
    path, own = LIBRARIES[os.path.basename(library)]
    headers, listed = of_headers(root, own), of_map(root, path)
    built = of_library(library)
    problems = [f"{name}: an exported name begins with psd_"
                for name in sorted(built) if not name.startswith("psd_")]
    problems += compare(headers, "the headers", listed, path)
    problems += compare(listed, path, headers, "the headers as PSD_EXPORT")
    problems += compare(listed, path, built, "the library")
    problems += compare(built, "the library", listed, path)
    finish(problems)


if __name__ == "__main__":
    main()
