#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What README.md and docs/ name is there: paths and links, files by their name
alone, functions and macros of ours. docs/adr/ tells of its day, and is left out.
check_docs.py [ROOT]"""

import fnmatch
import os
import re
import sys

from sources import (C_ENDINGS, finish, line_of, list_files, read_text,
                     strip_comments)

SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
ROOTS = ("lib", "daemon", "cli", "examples", "tests", "scripts", "docs", "conf",
         "debian", "systemd")
PATH = re.compile(r"(?:%s)/[\w.*/-]*" % "|".join(ROOTS))
FILE = re.compile(r"[\w*-]+\.(?:c|h|def|py|sh)")
NAME = re.compile(r"(?<!\w)(?:ps|psd|PS|PSD)_\w+(?=\(|\b)")
# Names of plans and of what others define.
EXCEPTIONS = {"psd_updater_plugin"}


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def list_pages(paths):
    return [p for p in paths
            if p == "README.md" or fnmatch.fnmatch(p, "docs/*.md")
            and not p.startswith("docs/adr/")]


def parents_of(path):
    while os.path.dirname(path):
        path = os.path.dirname(path)
        yield path


def exists(path, paths, dirs):
    path = path.rstrip("/")
    if "*" in path:
        return any(fnmatch.fnmatch(p, path) for p in paths)
    # A program has the name of its source, or of the first part of several.
    return path in paths or path in dirs or any(
        p.startswith((path + ".", path + "_")) for p in paths)


def look(page, text, tree):
    paths, dirs, names, words = tree
    problems = []

    def complain(at, what):
        problems.append(f"{page}:{line_of(text, at)}: {what} is not there")

    for match in SPAN.finditer(FENCE.sub(blank, text)):
        span = match.group(1)
        if PATH.fullmatch(span):
            if not exists(span, paths, dirs):
                complain(match.start(), span)
        elif FILE.fullmatch(span):
            if not fnmatch.filter(names, span):
                complain(match.start(), span)
        else:
            for name in NAME.findall(span):
                if name not in words and name not in EXCEPTIONS and \
                        not name.endswith("_"):  # psd_train_*
                    complain(match.start(), name)
    for match in LINK.finditer(FENCE.sub(blank, text)):
        target = match.group(1)
        if "://" in target or target.startswith("mailto:"):
            continue
        target = os.path.normpath(os.path.join(os.path.dirname(page), target))
        if not exists(target, paths, dirs):
            complain(match.start(), target)
    return problems


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    paths = set(list_files(root))
    dirs = {parent for path in paths for parent in parents_of(path)}
    words = set()
    for path in paths:
        if path.endswith(C_ENDINGS + (".map", ".sh")):
            words |= set(re.findall(r"\w+", strip_comments(read_text(root, path))))
    tree = (paths, dirs, {os.path.basename(p) for p in paths}, words)
    problems = []
    for page in list_pages(sorted(paths)):
        problems += look(page, read_text(root, page), tree)
    finish(problems)


if __name__ == "__main__":
    main()
