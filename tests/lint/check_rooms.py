#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Floors and fences: who may include what, who may read the time, and what the
pure rooms must not touch. check_rooms.py [ROOT]"""

import os
import re
import sys

from sources import (C_ENDINGS, CODE_DIRS, finish, line_of, list_files,
                     read_text, strip_all, strip_comments)

# A room includes itself and what stands on a lower floor.
FLOORS = {
    "base": 0,
    "model": 1, "wire": 1,
    "protocol": 2,
    "transport": 3, "storage": 3,
    "client": 4, "data": 4, "linalg": 4, "mpi": 4,
    "train": 5,
    "server": 6,
    "daemon": 7, "cli": 7, "examples": 7,
}
# Rooms of rooms, with floors of their own; of those a file names both.
SUB_FLOORS = {
    "protocol": {
        "audit": 0, "facts": 0, "overlay": 0, "trust": 0,
        "core": 1, "relay": 1, "waiters": 1,
        "session": 2, "partition": 2, "registry": 2,
        "replica": 3, "placement": 3, "agent": 3, "quorum": 3,
        "admission": 4, "overseer": 4,
        "shard": 5,
    },
    "model": {"tables": 0, "updaters": 1, "rows": 2, "combine": 3, "store": 3},
    "wire": {"messages": 0, "records": 1, "filters": 1},
    "transport": {"environment": 0, "keys": 0, "threads": 0, "lane": 1, "sockets": 2, "discovery": 3},
    "data": {
        "proto": 0,
        "streams": 0,
        "text": 1, "records": 1,
        "sinks": 2,
        "formats": 3,
        "feed": 4,
    },
    "train": {
        "values": 0,
        "state": 1,
        "courier": 2,
        "blocks": 3, "setup": 3,
    },
    "client": {"slices": 0, "connection": 0, "requests": 1, "relay": 2, "job": 3},
    "storage": {"disk": 0, "audit": 1, "snapshot": 1, "registry": 1, "log": 2},
    "server": {
        "config": 0, "metrics": 0, "threads": 1, "quorum": 2, "shards": 2, "nodes": 3, "state": 4,
        "control": 5, "checkpoints": 6,
        "embed": 20,  # above what wires the others together
    },
    "daemon": {"page": 0, "http": 1},
    "cli": {
        "output": 0,
        "run": 1, "machine": 1,
        "launch": 2,
        "bench": 3, "cluster": 3, "jobs": 3, "tables": 3,
        "watch": 3,
        "options": 4,
    },
    "common": {"program": 0, "samples": 1, "job": 2},  # of the examples
}
# What still includes upwards. This list only gets shorter: a row that is not
# needed is an error.
UPWARD = {}
PROGRAMS = {"daemon", "cli", "examples"}
# The one header of ours that an example may include: the reader of options is
# compiled into it.
EXAMPLES_SEE = {"base/options.h"}
PURE = {"base", "model", "wire", "protocol"}

# Third-party headers, and the rooms that they belong to.
FENCES = [
    (r"zmq(_.*)?\.h", {"transport", "server"}),
    (r"czmq(_.*)?\.h|zsys\.h|zloop\.h|zmsg\.h", {"daemon"}),
    (r"mpi\.h", {"mpi"}),
    (r"jansson\.h", {"wire", "server", "cli"}),
    (r"sqlite3\.h", {"storage"}),
    (r"xx(hash|h3)\.h", {"base"}),
    (r"raft\.h|raft/.*", set()),
    (r"sodium\.h", set()),
    (r"(lz4|zstd).*\.h", {"wire", "storage", "data"}),
    (r"zlib\.h|protobuf-c/.*|.*\.pb-c\.h", {"data"}),
    (r"(cblas|lapacke|openblas.*|GraphBLAS|LAGraph.*)\.h|suitesparse/.*",
     {"linalg", "train", "examples"}),
    (r"yaml\.h", {"daemon"}),
    (r"microhttpd\.h", {"daemon"}),
    (r"curses\.h", {"cli"}),
    (r"systemd/.*", {"daemon"}),
    (r"psd(_\w+)?\.h", {"examples"}),  # as an installed library's
]
# Exceptions: the bench measures a raw pair of sockets beside psd; all of
# libraft is behind one file.
FENCE_EXCEPTIONS = {
    ("lib/protocol/audit/audit_chain.c", "sodium.h"),
    ("lib/protocol/quorum/proof.c", "sodium.h"),
    ("lib/protocol/relay/meet.c", "sodium.h"),
    ("lib/protocol/quorum/quorum_raft.h", "raft.h"),
    ("cli/machine/bench_zmq.c", "zmq.h"),
}
# Headers of C11, POSIX and Linux; any other needs a row in FENCES.
SYSTEM = re.compile(
    r"(assert|complex|ctype|errno|fenv|float|inttypes|limits|locale|math|"
    r"setjmp|signal|stdalign|stdarg|stdatomic|stdbool|stddef|stdint|stdio|"
    r"stdlib|stdnoreturn|string|strings|tgmath|threads|time|wchar|wctype|"
    r"dirent|dlfcn|fcntl|fnmatch|ftw|getopt|glob|grp|ifaddrs|langinfo|libgen|"
    r"malloc|netdb|poll|pthread|pwd|regex|sched|semaphore|spawn|syslog|"
    r"termios|unistd|immintrin|x86intrin|endian|byteswap)\.h"
    r"|(sys|arpa|net|netinet|linux|asm|sanitizer)/.*"
)
# What reaches outside: not for the pure rooms. The exceptions: the log sink
# writes; large tables ask the system for pages, which is only memory.
IMPURE_HEADERS = re.compile(
    r"(pthread|threads|fcntl|unistd|time|poll|signal|spawn|dirent|semaphore)"
    r"\.h|sys/(?!queue\.h).*|net.*/.*|arpa/.*"
)
IMPURE_EXCEPTIONS = {
    ("lib/base/log.c", "unistd.h"),
    ("lib/model/rows/pages.c", "sys/mman.h"),
    ("lib/model/rows/pages.c", "mmap"),
}
# A call, not a member of the same name (x->open).
IMPURE_CALLS = re.compile(
    r"(?<![\w.>])(fopen|fdopen|fread|fwrite|fprintf|printf|puts|perror|getenv|setenv|"
    r"rand|random|drand48|getrandom|getentropy|pthread_\w+|socket|mmap|"
    r"open|openat|unlink|rename|sleep|nanosleep)\s*\("
)
TIME_ROOMS = {"transport", "client", "mpi", "train", "server"} | PROGRAMS
TIME_CALLS = re.compile(
    r"(?<![\w.>])(clock_gettime|gettimeofday|timespec_get|time|clock|zclock_\w+)\s*\("
)
# Is a file younger than a tick? Its times are the wall clock's.
TIME_EXCEPTIONS = {("lib/data/feed/reader.c", "clock_gettime")}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]',
                     re.MULTILINE)

# What stands in for a room's file in a build without its library.
TWINS = {"lib/protocol/quorum/quorum.h": "lib/protocol/quorum/quorum_none.c"}


def room_of(path):
    parts = path.split("/")
    if parts[0] == "lib":
        return parts[1] if len(parts) > 2 else None
    return parts[0]


def sub_room_of(path):
    """"protocol", "session" of lib/protocol/session/x.c or of an include."""
    parts = re.sub(r"^lib/|^examples/(?=common/)", "", path).split("/")
    return (parts[0], parts[1]) if len(parts) > 2 else (parts[0], None)


def check_sub_floor(path, header):
    """A complaint about an include within a room of rooms, or None."""
    room, mine = sub_room_of(path)
    target_room, target = sub_room_of(header)
    floors = SUB_FLOORS.get(room)
    if floors is None or target_room != room or mine == target:
        return None
    floors = floors | {None: len(floors)}  # what wires the rooms together
    for name in (mine, target):
        if name not in floors:
            return f"there is no room {room}/{name}"
    if floors[target] < floors[mine] or path in UPWARD.get(header, ()):
        return None
    target = target or "the top"
    return f"{target} of {room} stands no lower than its {mine}"


def stale_rows(root):
    """Rows of UPWARD that nothing needs."""
    problems = []
    for header, paths in UPWARD.items():
        for path in paths:
            if not os.path.isfile(os.path.join(root, path)) or \
                    f'#include "{header}"' not in read_text(root, path):
                problems.append(f"{path}: no include of {header}: take its "
                                "row out of UPWARD")
    return problems


def is_public(header):
    return header.startswith("psd/") or re.fullmatch(r"psd(_\w+)?\.h", header)


def check_house(room, path, header):
    """A complaint about an include of ours, or None."""
    if is_public(header):
        return None
    if room == "include":
        return "a public header includes only public ones"
    if room == "examples" and re.match(r"\.\./|[^/]*$", header):
        return check_sub_floor(path, os.path.normpath(
            os.path.join(os.path.dirname(path), header)))
    if "/" not in header:
        return f'write it as "{room}/{header}"'
    target = header.split("/")[0]
    if room == "examples":
        if target in FLOORS and target != "examples" and \
                header not in EXAMPLES_SEE:
            return "an example sees only the public headers"
        return None
    if target == room:
        return check_sub_floor(path, header)
    if target not in FLOORS:
        return f"there is no room {target}"
    if FLOORS[target] > FLOORS[room]:
        return f"{target} stands on a higher floor than {room}"
    if FLOORS[target] == FLOORS[room]:
        return f"{target} stands on the same floor as {room}"
    return None


def check_foreign(room, path, header):
    """A complaint about an include of a system or third-party header."""
    for pattern, rooms in FENCES:
        if re.fullmatch(pattern, header):
            if (room not in rooms
                    and (path, header) not in FENCE_EXCEPTIONS):
                return f"belongs only to {', '.join(sorted(rooms))}"
            return None
    if not SYSTEM.fullmatch(header):
        return "has no fence: add a row to FENCES (and an ADR)"
    if (room in PURE and IMPURE_HEADERS.fullmatch(header)
            and (path, header) not in IMPURE_EXCEPTIONS):
        return f"reaches outside, and {room} is pure"
    return None


def check_file(root, path):
    text = read_text(root, path)
    room = room_of(path)
    problems = []
    if room is None or (room not in FLOORS and room != "include"):
        return [f"{path}: no room {room} in tests/lint/check_rooms.py"]
    for match in INCLUDE.finditer(strip_comments(text)):
        kind, header = match.groups()
        check = check_house if kind == '"' else check_foreign
        complaint = check(room, path, header)
        if complaint:
            problems.append(f"{path}:{line_of(text, match.start())}: "
                            f"include of {header}: {complaint}")
    bare = strip_all(text)
    if room not in TIME_ROOMS:
        for match in TIME_CALLS.finditer(bare):
            if (path, match.group(1)) in TIME_EXCEPTIONS:
                continue
            problems.append(f"{path}:{line_of(bare, match.start())}: "
                            f"{match.group(1)}: {room} is told the time")
    if room in PURE:
        for match in IMPURE_CALLS.finditer(bare):
            if (path, match.group(1)) in IMPURE_EXCEPTIONS:
                continue
            problems.append(f"{path}:{line_of(bare, match.start())}: "
                            f"{match.group(1)}: {room} is pure")
    return problems


def check_twin(root, header, twin):
    """A build without a library has all that the header promises."""
    function = re.compile(r"^(?!typedef|static)[\w *]*?\b(ps_\w+)\(", re.MULTILINE)
    if not os.path.isfile(os.path.join(root, header)):
        return []
    exists = os.path.isfile(os.path.join(root, twin))
    defined = function.findall(strip_all(read_text(root, twin))) if exists else []
    return [f"{twin}: does not define {name} of {header}"
            for name in function.findall(strip_all(read_text(root, header)))
            if name not in defined]


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    problems = []
    for path in list_files(root):
        if path.startswith(tuple(d + "/" for d in CODE_DIRS)) and \
                path.endswith(C_ENDINGS):
            problems += check_file(root, path)
    if os.path.isfile(os.path.join(root, "lib/protocol/meson.build")):
        problems += stale_rows(root)
    for header, twin in TWINS.items():
        problems += check_twin(root, header, twin)
    finish(problems)


if __name__ == "__main__":
    main()
