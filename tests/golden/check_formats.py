#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The numbers of lib/wire/messages/formats.h and of the wire's version stand for the
bytes that the golden files show: formats.txt has a sum of these for each
number. Bytes that change without their number fail here.
check_formats.py ROOT"""
import hashlib
import pathlib
import re
import sys

# number: where it is defined, and the golden files that it stands for. Nodes
# tell each other records, and messages of their own beside those of clients;
# so do the relays of workers. What HELLO and WELCOME agree on by a bit has no
# number: other bytes take another bit.
BETWEEN_NODES = ("append", "appended", "peer", "rows", "taken")
OF_RELAYS = ("bundle", "meet", "relayed", "rows_on", "want")
NUMBERS = {
    "PS_VERSION": "lib/wire/messages/message.h",
    "PS_NODE_FORMAT": "lib/wire/messages/formats.h",
    "PS_OVERLAY_FORMAT": "lib/wire/messages/formats.h",
    "PS_DISK_FORMAT": "lib/wire/messages/formats.h",
    "PS_COMMAND_VERSION": "lib/protocol/registry/command_code.h",
    "PS_QUORUM_FORMAT": "lib/protocol/quorum/quorum_message.h",
}


def stands_for(number, name):
    of_nodes = re.match(rf"message_({'|'.join(BETWEEN_NODES)})[_.]", name)
    of_relays = re.match(rf"message_({'|'.join(OF_RELAYS)})[_.]", name)
    of_nodes = of_nodes and not of_relays
    if number == "PS_OVERLAY_FORMAT":
        return bool(of_relays)
    if number == "PS_VERSION":
        return (name.startswith("message_") and not of_nodes
                and not of_relays and not name.endswith("_times.hex"))
    if number == "PS_COMMAND_VERSION":
        return name.startswith("command_")
    if number == "PS_QUORUM_FORMAT":
        return name.startswith("quorum_")
    if number == "PS_NODE_FORMAT":
        return bool(of_nodes) or name.startswith(("record_", "node_message_"))
    return name.startswith(("record_", "storage_"))


def sum_of(number, golden):
    digest = hashlib.sha256()
    n_files = 0
    for path in sorted(golden.glob("*.hex")):
        if stands_for(number, path.name):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
            n_files += 1
    if n_files == 0:
        sys.exit(f"{golden}: no golden file for {number}")
    return digest.hexdigest()[:16]


def main():
    root = pathlib.Path(sys.argv[1])
    golden = root / "tests" / "golden"
    told = [tuple(line.split())
            for line in (golden / "formats.txt").read_text().splitlines()
            if line and not line.startswith("#")]
    n_bad = 0
    for number, header in NUMBERS.items():
        found = re.search(rf"#define {number} (\d+)",
                          (root / header).read_text())
        if found is None:
            sys.exit(f"{header}: no {number}")
        row = (number, found[1], sum_of(number, golden))
        if row not in told:
            print(f"{number} {found[1]} does not stand for the bytes in "
                  f"tests/golden, sum {row[2]}: raise it in {header}, and add "
                  f"the line \"{' '.join(row)}\" to tests/golden/formats.txt")
            n_bad += 1
    doubled = {row[:2] for row in told
               if sum(other[:2] == row[:2] for other in told) > 1}
    for row in sorted(doubled):
        print(f"formats.txt: {' '.join(row)} has two sums")
        n_bad += 1
    return 1 if n_bad else 0


if __name__ == "__main__":
    sys.exit(main())
