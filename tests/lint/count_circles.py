#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Circles of calls between object files, as nm shows them: the largest of each
room, those across rooms of a room, and names that a lower room takes from a
higher one. Limits that are there today only go down. count_circles.py [-v] BUILD"""

import argparse
import collections
import glob
import os
import re
import subprocess
import sys

from check_rooms import SUB_FLOORS

# Room -> files of its largest circle, at most.
LARGEST = {
    "base": 1, "model": 2, "wire": 3, "protocol": 8, "transport": 4,
    "storage": 1, "client": 3, "data": 10, "linalg": 2, "train": 2,
    "server": 3, "daemon": 1, "cli": 6,
}
# Room -> names that go upwards within it, at most.
UPWARD = {}
SYMBOL = re.compile(r"^\S* +([A-Za-z]) (\w+)$", re.MULTILINE)


def objects_of(build, room):
    """Path of a source below its room -> its object."""
    home = room if room in ("daemon", "cli") else f"lib/{room}"
    where = f"{build}/{os.path.dirname(home) or room}/libps_{room}.a.p"
    found = {}
    for path in glob.glob(f"{home}/**/*.c", recursive=True):
        name = os.path.relpath(path, os.path.dirname(home) or room)
        built = f"{where}/{name.replace('/', '_')}.o"
        if os.path.exists(built):
            found[os.path.relpath(path, home)] = built
    return found


def calls_between(objects):
    """Source -> {source that it calls: the names}."""
    owner = {}
    wants = {}
    for source, path in objects.items():
        text = subprocess.run(["nm", path], capture_output=True, text=True,
                              check=True).stdout
        wants[source] = set()
        for kind, name in SYMBOL.findall(text):
            if kind in "TDRBV":
                owner[name] = source
            elif kind == "U":
                wants[source].add(name)
    calls = collections.defaultdict(lambda: collections.defaultdict(set))
    for source, names in wants.items():
        for name in names:
            if owner.get(name, source) != source:
                calls[source][owner[name]].add(name)
    return calls


def circles(nodes, calls):
    """Sets of nodes that all reach each other (Tarjan), larger than one."""
    number, low, stack, on, found = {}, {}, [], set(), []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        on.add(node)
        for other in calls[node]:
            if other not in number:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on:
                low[node] = min(low[node], number[other])
        if low[node] == number[node]:
            circle = set()
            while node not in circle:
                circle.add(stack.pop())
            on.difference_update(circle)
            if len(circle) > 1:
                found.append(circle)

    for node in nodes:
        if node not in number:
            visit(node)
    return sorted(found, key=len, reverse=True)


def upward_names(room, calls):
    floors = SUB_FLOORS.get(room, {})
    names = set()
    for source, targets in calls.items():
        for target, used in targets.items():
            mine, other = source.split("/")[0], target.split("/")[0]
            if mine != other and mine in floors and other in floors and \
                    floors[other] >= floors[mine]:
                names |= used
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-v", action="store_true")
    parser.add_argument("build")
    arguments = parser.parse_args()
    sys.setrecursionlimit(10000)
    problems = []
    for room in ("base", "model", "wire", "protocol", "transport", "storage",
                 "client", "data", "linalg", "train", "server", "daemon", "cli"):
        objects = objects_of(arguments.build, room)
        if not objects:
            problems.append(f"no objects of {room} in {arguments.build}")
            continue
        calls = calls_between(objects)
        found = circles(list(objects), calls)
        largest = len(found[0]) if found else 1
        upward = upward_names(room, calls)
        across = [c for c in found if len({s.split("/")[0] for s in c}) > 1]
        print(f"{room}: {len(objects)} objects, largest circle {largest}, "
              f"{len(across)} across its rooms, {len(upward)} names upwards")
        if arguments.v:
            for circle in found:
                print("   ", " ".join(sorted(circle)))
            print("   ", " ".join(sorted(upward)))
        if largest > LARGEST.get(room, largest):
            problems.append(f"{room}: a circle of {largest} files; the limit "
                            f"is {LARGEST[room]}")
        if len(upward) > UPWARD.get(room, 0):
            problems.append(f"{room}: {len(upward)} names go upwards; the "
                            f"limit is {UPWARD.get(room, 0)}")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
