#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what has to be built for the tests of some of meson's suites, a target
of ninja in each line. test_targets.py BUILD SUITE..."""

import json
import os
import subprocess
import sys


def introspect(build, what):
    """What meson knows of a build."""
    return json.loads(subprocess.check_output(
        ["meson", "introspect", build, "--" + what]))


def main():
    build = sys.argv[1]
    suites = set(sys.argv[2:])
    needed = {target for test in introspect(build, "tests")
              if suites & {suite.split(":")[-1] for suite in test["suite"]}
              for target in test["depends"]}
    files = [name for target in introspect(build, "targets")
             if target["id"] in needed for name in target["filename"]]
    for name in sorted(files):
        print(os.path.relpath(name, build))
    return 0 if files else 1


if __name__ == "__main__":
    sys.exit(main())
