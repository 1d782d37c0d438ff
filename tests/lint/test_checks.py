#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A check that cannot fail proves nothing: makes a small good tree, in which
every check passes, breaks it in one place after the other, and wants the right
check to say the right words. test_checks.py LINT_DIR"""

import os
import shutil
import subprocess
import sys
import tempfile

SPDX = "/* SPDX-License-Identifier: Apache-2.0 */\n"
BANNED_H = SPDX + "#pragma GCC poison strcpy malloc exit usleep\n"
PUBLIC_H = SPDX + "#define PSD_EXPORT\nPSD_EXPORT int psd_one(void);\n"
MAP = SPDX + "LIBPSD_0 {\nglobal:\n    psd_one;\nlocal:\n    *;\n};\n"
LINALG_H = SPDX + "#define PSD_EXPORT\nPSD_EXPORT int psd_dot(void);\n"
LINALG_MAP = MAP.replace("psd_one", "psd_dot")
SERVER_H = LINALG_H.replace("psd_dot", "psd_embed")
SERVER_MAP = MAP.replace("psd_one", "psd_embed")
STATUS_H = SPDX + '#define MAP(X) X(OK, 0, "E0000", 0, "ok", "nothing")\n'
STATUS_LINE = "| E0000 | `OK` | 0 | 0 | ok | nothing |\n"
HELLO_BODY = "#include <psd.h>\n\nint main(void)\n{\n    return 0;\n}\n"
HELLO_C = SPDX + HELLO_BODY
LOOP = "static int work_through(int n)\n{\n    return n;\n}\n"
METRICS_DEF = SPDX + "".join(
    f'NODE(GAUGE, ALONE, ONE, a{i}, "psd_a{i}", "It is {i}.")\n' for i in range(40))
METRICS_LABELS = SPDX + "#define A(X) X(NODE, ps_a_t, \"\") X(ALONE, \"\")\n"
METRICS_ROWS = "".join(f"| `psd_a{i}` | gauge |  | It is {i}. |\n" for i in range(40))
TRUST_PAGE = (
    "# Security\n\n<!-- rights -->\n| object | verb | a |\n| --- | --- | --- |\n"
    "| b | c | yes |\n\n<!-- kinds -->\n| what | verb | object | kinds |\n"
    "| --- | --- | --- | --- |\n| requests of the control port | c | b | `d` |\n")

ENVIRONMENT_TABLES = ("| variable | default | what it sets |\n|---|---|---|\n"
                      "| `PSD_A` |  | a text |\n\n"
                      "| name | of | becomes | how |\n|---|---|---|---|\n"
                      "| `N` | f | `PSD_A` | as it is |\n")
GOOD = {
    "lib/base/banned.h": BANNED_H,
    "lib/base/one.h": SPDX + "typedef struct ps_one {\n    int x;\n} ps_one_t;\n"
                             "int ps_one(void);\n",
    "lib/base/one.c": SPDX + '#include "base/one.h"\n\n#include <string.h>\n\n'
                             '#include "psd/one.h"\n\n'
                             "int ps_one(void)\n{\n    return 1;\n}\n",
    "lib/include/psd/one.h": PUBLIC_H,
    "lib/client/libpsd.map": MAP,
    "lib/client/one.c": SPDX + '#include "psd/one.h"\n\n#include <time.h>\n\n'
                               '#include "base/one.h"\n\n'
                               "int psd_one(void)\n{\n"
                               "    return time(NULL) > 0 ? ps_one() : 0;\n}\n",
    "lib/server/config/config_keys.def": SPDX + 'KEY("listen.control", 1)\n'
                                     'KEY("shards", 2)\n',
    "conf/psd.yaml": "# SPDX-License-Identifier: Apache-2.0\n\n"
                     "# Where it listens.\nlisten:\n  # The address.\n"
                     "  control: x\n# How many.\n#shards: 2\n",
    "lib/base/env_settings.def": SPDX + 'SETTING("PSD_A", TEXT, 0, 0, "", "a text")\n',
    "lib/transport/environment/aliases.def": SPDX
                                             + 'ALIAS("f", "N", "PSD_A", TEXT, "", "")\n',
    "docs/environment.md": "# Variables\n\n" + ENVIRONMENT_TABLES,
    "tests/integration/it_environment.sh": "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n"
                                           "row f N PSD_A\n",
    "lib/model/tables/updaters.def": SPDX
                                     + 'UPDATER(A, 1, a, X, a, 1, "s", false, "`w`")\n'
                                     + 'PARAMETER(":", b, F, 0.1, POSITIVE)\nEND()\n',
    "docs/updaters.md": "# Updaters\n\n| `a` | `w` | `b` (0.1) | 1: s |\n",
    "lib/protocol/trust/trust_roles.def": SPDX + '#define PS_ROLE_MAP(X) X(A, 1, "a")\n'
    '#define PS_RIGHT_MAP(X, ANY, ALL) X(B, C, ANY(A))\n',
    "lib/protocol/trust/trust_kinds.def": SPDX + "#define PS_TRUST_OPS(X) X(d, C, B, E)\n",
    "docs/security.md": TRUST_PAGE,
    "lib/protocol/facts/families.def": METRICS_DEF,
    "lib/server/metrics/family.h": METRICS_LABELS,
    "docs/metrics.md": "# Metrics\n\n" + METRICS_ROWS,
    "share/prometheus/psd.rules.yml": "# SPDX-License-Identifier: Apache-2.0\n"
                                      "groups:\n  - expr: psd_a1 > 0\n",
    "share/grafana/psd.json": '{"expr": "psd_a2"}\n',
    "scripts/one.sh": "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n"
                      "echo one\n",
    "lib/include/psd/status.h": STATUS_H,
    "docs/errors.md": STATUS_LINE,
    "examples/hello/hello.c": HELLO_C,
    "README.md": "# psd\n\n```c\n" + HELLO_BODY + "```\n",
    "examples/train/train.c": HELLO_C,
    "docs/training.md": "# Training\n\n```c\n" + HELLO_BODY + "```\n",
    "examples/worker/worker.c": HELLO_C,
    "docs/api.md": "# Interface\n\n```c\n" + HELLO_BODY + "```\n",
    "examples/queue/queue.c": SPDX + "#include <psd.h>\n\n" + LOOP,
    "docs/quickstart.md": "# Quickstart\n\n```c\n" + LOOP + "```\n",
    "lib/include/psd_linalg.h": LINALG_H,
    "lib/linalg/libpsd_linalg.map": LINALG_MAP,
    "lib/include/psd_server.h": SERVER_H,
    "lib/server/libpsd_server.map": SERVER_MAP,
    ".clang-format": None,  # the real one
}


def lines(count):
    return "".join("    x++;\n" for _ in range(count))


def function(count):
    return (SPDX + "void ps_f(int x);\n\nvoid ps_f(int x)\n{\n"
            + lines(count) + "}\n")


def source(line):
    """A file of C with this line outside of functions."""
    return SPDX + line + "\n"


def call(expression):
    """A file of C with this expression in a function."""
    return (SPDX + "int ps_f(void);\n\nint ps_f(void)\n{\n    return "
            + expression + ";\n}\n")


# (check, path, new content, what it must say)
BREAKS = [
    ("readme", "README.md", "# psd\n", "README.md: no C block"),
    ("readme", "docs/training.md", "# psd\n", "docs/training.md: no C block"),
    ("readme", "docs/api.md", "# psd\n", "docs/api.md: no C block"),
    ("readme", "docs/quickstart.md", "# psd\n",
     "docs/quickstart.md: no C block with work_through"),
    ("statuses", "docs/errors.md", "# Errors\n", "missing: | E0000 | `OK`"),
    ("statuses", "docs/errors.md",
     STATUS_LINE + "| E9999 | `NO` | 9 | 9 | no | no |\n",
     "not in lib/include/psd/status.h: | E9999"),
    ("errors", "lib/include/psd/two.h",
     SPDX + "PSD_EXPORT int psd_two(int x, psd_error_t *err);\n",
     "lib/include/psd/two.h: psd_two has no definition in lib"),
    ("form", "lib/base/a.c", "int x;\n", "lib/base/a.c:1: no line with SPDX"),
    ("form", "scripts/a", "#!/bin/sh\necho\n", "scripts/a:1: no line"),
    ("form", "lib/base/a.c", source("int x; // y"), "a.c:2: // is a leftover"),
    ("form", "lib/base/a.c", function(101), "function of 101 lines; the limit"),
    ("docs", "README.md", GOOD["README.md"] + "`lib/base/gone.c`\n",
     "README.md:11: lib/base/gone.c is not there"),
    ("docs", "README.md", GOOD["README.md"] + "`psd_gone()`\n", "psd_gone is"),
    ("docs", "README.md", GOOD["README.md"] + "[x](docs/gone.md)\n", "gone.md is"),
    ("types", "lib/wire/a.h", source("typedef int ps_one_t;"),
     "ps_one_t is a type of lib/base/one.h and of lib/wire/a.h"),
    ("types", "lib/wire/a.c", source("struct ps_one {\n    int y;\n};"),
     "ps_one_t is a type of lib/base/one.h and of lib/wire/a.c"),
    ("rooms", "lib/base/a.c", source('#include "wire/x.h"'),
     "wire stands on a higher floor than base"),
    ("rooms", "lib/wire/a.c", source('#include "model/x.h"'),
     "model stands on the same floor as wire"),
    ("rooms", "daemon/a.c", source('#include "cli/x.h"'),
     "cli stands on the same floor as daemon"),
    ("rooms", "lib/protocol/core/a.c",
     source('#include "protocol/shard/shard.h"'),
     "shard of protocol stands no lower than its core"),
    ("rooms", "lib/protocol/core/a.c",
     source('#include "protocol/nowhere/a.h"'), "no room protocol/nowhere"),
    ("rooms", "lib/server/config/a.c", source('#include "server/server.h"'),
     "the top of server stands no lower than its config"),
    ("rooms", "examples/common/program/a.c",
     source('#include "../job/job.h"'),
     "job of common stands no lower than its program"),
    ("rooms", "lib/base/a.c", source('#include "one.h"'),
     'write it as "base/one.h"'),
    ("rooms", "lib/base/a.c", source('#include "nowhere/one.h"'),
     "there is no room nowhere"),
    ("rooms", "lib/new/a.c", source("int x;"), "no room new"),
    ("rooms", "lib/protocol/quorum/quorum.h", source("void ps_quorum_turn(int a);"),
     "quorum_none.c: does not define ps_quorum_turn"),
    ("rooms", "lib/include/psd/a.h", source('#include "base/one.h"'),
     "a public header includes only public ones"),
    ("rooms", "examples/lr/a.c", source('#include "base/text.h"'),
     "an example sees only the public headers"),
    ("rooms", "examples/lr/a.c", source('#include "client/x.h"'),
     "an example sees only the public headers"),
    ("rooms", "lib/storage/a.c", source("#include <zmq.h>"),
     "include of zmq.h: belongs only to server, transport"),
    ("rooms", "lib/client/a.c", source("#include <czmq.h>"), "belongs only to"),
    ("rooms", "cli/a.c", source("#include <sqlite3.h>"), "only to storage"),
    ("rooms", "lib/wire/a.c", source("#include <xxhash.h>"), "only to base"),
    ("rooms", "lib/client/a.c", source("#include <jansson.h>"), "only to cli"),
    ("rooms", "cli/a.c", source("#include <yaml.h>"), "only to daemon"),
    ("rooms", "cli/a.c", source("#include <curl/curl.h>"), "has no fence"),
    ("rooms", "lib/protocol/a.c", source("#include <pthread.h>"),
     "reaches outside, and protocol is pure"),
    ("rooms", "lib/protocol/a.c", call("rand()"), "rand: protocol is pure"),
    ("rooms", "lib/storage/a.c", call("time(0)"), "time: storage is told"),
    ("rooms", "lib/protocol/a.c", call("clock_gettime(0, 0)"), "is told the"),
    ("calls", "lib/base/a.c", call("strcpy(0, 0)"), "strcpy is banned"),
    ("calls", "cli/a.c", call("malloc(1)"), "malloc is banned"),
    ("calls", "daemon/a.c", call("exit(1)"), "exit is banned"),
    ("calls", "tests/unit/a.c", call("usleep(1)"), "usleep is banned"),
    ("calls", "lib/base/banned.h", SPDX, "lists nothing"),
    ("config", "lib/server/config/config_keys.def", SPDX + 'KEY("shards", 2)\n',
     "listen.control: in conf/psd.yaml, not in"),
    ("config", "lib/server/config/config_keys.def",
     GOOD["lib/server/config/config_keys.def"] + 'KEY("more", 3)\n',
     "more: in lib/server/config/config_keys.def, not in"),
    ("config", "conf/psd.yaml", GOOD["conf/psd.yaml"].replace("# How", "How"),
     "shards has no comment above it"),
    ("config", "conf/psd.yaml", None, "must both exist"),
    ("metrics", "docs/metrics.md", "# Metrics\n\n| `psd_a0` | gauge |  | It is 1. |\n",
     "docs/metrics.md: not the table that"),
    ("metrics", "docs/metrics.md", None, "docs/metrics.md does not exist"),
    ("metrics", "lib/protocol/facts/families.def",
     METRICS_DEF.replace("NODE(GAUGE", "NODE(COUNTER", 1), "_total is the end of counters"),
    ("metrics", "share/prometheus/psd.rules.yml",
     "# SPDX-License-Identifier: Apache-2.0\ngroups:\n  - expr: psd_b > 0\n",
     "psd_b is no metric of"),
    ("metrics", "share/grafana/psd.json", '{"expr": "psd_b"}\n', "psd_b is no metric of"),
    ("updaters", "docs/updaters.md",
     "# Updaters\n\n| `a` | `w` | `b` (0.2) | 1: s |\n",
     "docs/updaters.md: not the table of"),
    ("updaters", "docs/updaters.md", "# Updaters\n", "no table of updaters"),
    ("trust", "docs/security.md", TRUST_PAGE.replace("yes", "of all"),
     "docs/security.md: not the tables of"),
    ("trust", "docs/security.md", "# Security\n", "no place for the tables"),
    ("trust", "docs/security.md", None, "must all exist"),
    ("environment", "docs/environment.md",
     "# Variables\n\n" + ENVIRONMENT_TABLES.replace("a text", "a word"),
     "docs/environment.md: not the table of"),
    ("environment", "tests/integration/it_environment.sh",
     "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n",
     'N (f, PSD_A): no line "row f N PSD_A"'),
    ("format", "lib/base/a.c", source("int  x;"), "clang-format"),
    ("exports", "lib/client/libpsd.map", MAP.replace("psd_one;", ""),
     "psd_one: in the headers, not in lib/client/libpsd.map"),
    ("exports", "lib/client/libpsd.map", MAP.replace("one;", "one; psd_two;"),
     "psd_two: in lib/client/libpsd.map, not in the library"),
    ("exports", "lib/include/psd/one.h",
     PUBLIC_H + "PSD_EXPORT const char *\npsd_two(void);\n",
     "psd_two: in the headers, not in lib/client/libpsd.map"),
    ("exports", "lib/client/extra.c", call("1"),
     "ps_f: an exported name begins with psd_"),
    ("exports", "build/lib/libpsd.so", None, "build first"),
    ("exports", "build/lib/libpsd_linalg.so", None, "build first"),
    ("exports", "build/lib/libpsd_server.so", None, "build first"),
    ("exports", "lib/linalg/libpsd_linalg.map",
     LINALG_MAP.replace("psd_dot;", ""),
     "psd_dot: in the headers, not in lib/linalg/libpsd_linalg.map"),
    ("shellcheck", "scripts/a.sh", "#!/bin/sh\nrm $1\n", "SC2086"),
    ("shellcheck", "scripts/a", "#!/usr/bin/env bash\nrm $1\n", "SC2086"),
    ("codespell", "README.md", "t" "eh\n", "==> the"),
    ("cppcheck", "lib/base/a.c", call("*(int *)0"), "nullPointer"),
]


def write(root, path, content):
    full = os.path.join(root, path)
    if content is None:
        os.remove(full)
        return
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "w", encoding="utf-8") as file:
        file.write(content)


def build(root):
    """The library from everything in lib, without the map's help, so that a
    stray symbol leaves it."""
    sources = [os.path.join(directory, name)
               for directory, _, names in os.walk(os.path.join(root, "lib"))
               for name in names if name.endswith(".c")]
    os.makedirs(os.path.join(root, "build/lib"), exist_ok=True)
    hidden = ["-Dps_one=ps_one_", "-fvisibility=default"]
    script = os.path.join(root, "build/hide.map")
    write(root, "build/hide.map", "{ local: ps_one_; };\n")
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-w", *hidden,
         f"-I{root}/lib", f"-I{root}/lib/include",
         f"-Wl,--version-script={script}",
         "-o", f"{root}/build/lib/libpsd.so", *sources],
        check=True)
    for library, name in (("linalg", "psd_dot"), ("server", "psd_embed")):
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-x", "c", "-",
             "-o", f"{root}/build/lib/libpsd_{library}.so"],
            input=f"int {name}(void);\nint {name}(void)\n{{\n    return 1;\n}}\n",
            text=True, check=True)


def make_tree(lint_dir, root):
    shutil.copytree(lint_dir, os.path.join(root, "tests/lint"),
                    ignore=shutil.ignore_patterns("__pycache__",
                                                  "test_checks.py"))
    for path, content in GOOD.items():
        if content is None:
            shutil.copy(os.path.join(lint_dir, "../..", path), root)
        else:
            write(root, path, content)
    build(root)


def run_checks(root, *arguments):
    done = subprocess.run(
        ["bash", os.path.join(root, "tests/lint/check_all.sh"), *arguments],
        capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def try_break(root, check, path, content, words):
    """Breaks the good tree in this place, looks, and mends it."""
    full = os.path.join(root, path)
    good = None
    if os.path.exists(full):
        with open(full, "rb") as file:
            good = file.read()
    write(root, path, content)
    built = check == "exports" and path.endswith(".c")
    if built:
        build(root)
    code, output = run_checks(root, "--only", check)
    if good is None:
        os.remove(full)
    else:
        with open(full, "wb") as file:
            file.write(good)
    if built:
        build(root)
    if code != 0 and f"FAIL {check}" in output and words in output:
        return True
    print(f"not ok: {check} does not say {words!r} about {path}:\n{output}")
    return False


def main():
    lint_dir = os.path.abspath(sys.argv[1])
    n_failed = 0
    with tempfile.TemporaryDirectory(prefix="psd lint ") as root:
        make_tree(lint_dir, root)
        for case in BREAKS:
            n_failed += not try_break(root, *case)
        # The last, so that a place which was not mended shows.
        code, output = run_checks(root)
    if code != 0:
        print(f"not ok: the good tree does not pass:\n{output}")
        n_failed += 1
    print(f"{len(BREAKS) + 1 - n_failed} of {len(BREAKS) + 1} as they must be")
    sys.exit(1 if n_failed else 0)


if __name__ == "__main__":
    main()
