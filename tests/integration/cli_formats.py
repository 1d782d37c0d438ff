#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Are the files what their format says? cli_formats.py DIR: every file
NUMBER.FORMAT.ok or NUMBER.FORMAT.error in it, beside NUMBER.FORMAT.words with
stderr. Prints what is wrong; exit code 1 when something is."""

import csv
import json
import os
import re
import sys

WAIT_LINE = re.compile(r"(pscli: )?\S+: no answer for [0-9.]+ s.*; waiting ")
problems = []


def tell(name, what):
    problems.append(f"{name}: {what}")


def check_doc(name, text):
    try:
        doc = json.loads(text)
    except ValueError as reason:
        tell(name, f"no JSON: {reason}: {text[:200]}")
        return None
    if not isinstance(doc, dict) or next(iter(doc), None) != "schema_version" \
            or doc["schema_version"] != 1:
        tell(name, f"does not begin with schema_version 1: {text[:100]}")
        return None
    return doc


def without_waits(words):
    """What is left without the lines that tell who does not answer yet; on a
    slow machine there are some."""
    return "".join(line for line in words.splitlines(keepends=True)
                   if not WAIT_LINE.match(line))


def check_error(name, form, text, words):
    words = without_waits(words)
    if form in ("json", "jsonl"):
        doc = check_doc(name, text)
        error = doc.get("error") if doc else None
        if words:
            tell(name, f"words beside the error: {words[:100]}")
        if not isinstance(error, dict) or \
                list(error) != ["code", "exit", "message", "hint", "details"]:
            tell(name, f"is no error object: {text[:200]}")
        elif not (error["code"].startswith("E") and error["message"] and
                  error["hint"] and isinstance(error["details"], dict)):
            tell(name, f"an error with empty fields: {text[:200]}")
    else:
        lines = words.splitlines()
        if text:
            tell(name, f"data beside the error: {text[:100]}")
        if len(lines) != 1 or not lines[0].startswith("pscli: E"):
            tell(name, f"no error line: {words[:200]}")


def check_data(name, form, text):
    lines = text.splitlines()
    if form == "json":
        check_doc(name, text)
        if len(lines) != 1:
            tell(name, "more than one line of json")
    elif form == "jsonl":
        for line in lines:
            check_doc(name, line)
    elif form in ("csv", "tsv"):
        rows = list(csv.reader(lines)) if form == "csv" else \
            [line.split("\t") for line in lines]
        if not rows:
            tell(name, "no titles")
        elif any(len(row) != len(rows[0]) for row in rows):
            tell(name, "rows of different length")
    elif form == "name":
        if any(" " in line or not line for line in lines):
            tell(name, f"no names: {text[:100]}")
    elif not text:
        tell(name, "nothing to see")
    if "\0" in text or any(line != line.rstrip() for line in lines
                           if form in ("table", "wide")):
        tell(name, "a byte 0, or blanks at a line's end")


def main():
    directory = sys.argv[1]
    names = [n for n in os.listdir(directory) if n.endswith((".ok", ".error"))]
    for name in sorted(names):
        _, form, kind = name.split(".")
        with open(os.path.join(directory, name), encoding="utf-8") as file:
            text = file.read()
        with open(os.path.join(directory, name.rsplit(".", 1)[0] + ".words"),
                  encoding="utf-8") as file:
            words = file.read()
        if kind == "error":
            check_error(name, form, text, words)
        else:
            check_data(name, form, text)
    for problem in problems:
        print(problem)
    print(f"{len(names)} outputs checked")
    return 1 if problems or not names else 0


if __name__ == "__main__":
    sys.exit(main())
