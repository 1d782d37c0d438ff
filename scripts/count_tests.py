#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the cases in meson's testlog.json and prints "PASSED FAILED", then for
each test that is not OK a line, its own words and the end of the logs of its
nodes. A Criterion program counts for as many cases as it says that it ran,
anything else for one; a skipped test has not passed. Of a test that ran twice the
last run counts. count_tests.py TESTLOG

count_tests.py --unstarted TESTLOG: the names of tests whose program never began, as the
loader had no memory to map it."""

import json
import re
import sys

SYNTHESIS = re.compile(
    r"Synthesis: Tested: \D*(\d+)\D* \| Passing: \D*(\d+)\D* "
    r"\| Failing: \D*(\d+)\D* \| Crashing: \D*(\d+)")
LOGGED = re.compile(r"(\S+: )?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
UNSTARTED = re.compile(r"\S+: error while loading shared libraries: .*: Cannot allocate memory")
GOOD = {"OK", "EXPECTEDFAIL"}
SHOWN = 6000  # characters of a test that failed, of its words and of logs


def output_of(test):
    """What a test printed."""
    return (test.get("stdout") or "") + (test.get("stderr") or "")


def shown_of(test):
    """What is worth reading of what a test that failed printed."""
    words = []
    logs = []
    for line in output_of(test).splitlines(keepends=True):
        (logs if LOGGED.match(line) else words).append(line)
    return "".join(words)[-SHOWN:] + "".join(logs)[-SHOWN:]


def count_test(test):
    """Cases passed and failed of one meson test."""
    good = test["result"] in GOOD
    match = SYNTHESIS.search(output_of(test))
    if not match:
        return (1, 0) if good else (0, 1)
    passed = int(match.group(2))
    failed = int(match.group(3)) + int(match.group(4))
    # The program's word is not enough: sanitizers end it after its summary.
    return (passed, failed) if good else (passed, max(failed, 1))


def read_tests(path):
    """The tests of a log by their names."""
    tests = {}
    with open(path, encoding="utf-8") as log:
        for line in log:
            test = json.loads(line)
            tests[test["name"]] = test
    return tests


def main():
    if sys.argv[1] == "--unstarted":
        for name, test in read_tests(sys.argv[2]).items():
            if test["result"] not in GOOD and UNSTARTED.fullmatch(output_of(test).strip()):
                print(name.split(" / ")[-1])
        return
    passed = failed = 0
    wrong = []
    for test in read_tests(sys.argv[1]).values():
        good, bad = count_test(test)
        passed += good
        failed += bad
        if test["result"] not in GOOD:
            wrong.append(f"{test['result']} {test['name']}, "
                         f"{test['duration']:.0f} s:\n"
                         f"{shown_of(test)}")
    print(passed, failed)
    print("\n".join(wrong))


if __name__ == "__main__":
    main()
