# SPDX-License-Identifier: Apache-2.0
"""What lr_reference, bcd_reference, lr_cost and workers_cost have in common: the
data sets with the settings that the examples' pages recommend, a psd to train
against, and how busy others are meanwhile."""

import gzip
import json
import lzma
import os
import resource
import shutil
import subprocess
import sys
import time

# Equal steps, and all epochs; lr_optimum runs what ends by itself.
L2 = ["--objective", "l2:1", "--updater", "adagrad", "--tolerance", "0"]
FTRL = ["--updater", "ftrl"]
MUCH = 0.2  # processors; with one that is not free both sides share the other
# With the references: F and AUC at the optimum (L2, C = 1), the best AUC of any
# penalty; "l1" is the optimum of F with |w|_1.
SETS = {
    "agaricus": {
        "files": "agaricus/agaricus.{}.libsvm.gz",
        "l2": "--alpha 0.5 --beta 5 --minibatch 50 --epochs 120",
        "ftrl": "--alpha 0.1 --minibatch 100 --epochs 5",
        "optimum": 98.5136, "auc": 1.0, "best": 1.0, "l1": 78.8649,
    },
    "criteo-10k": {
        "files": "criteo-10k/criteo.{}.libsvm.gz",
        "l2": "--alpha 0.2 --beta 1 --minibatch 100 --epochs 60",
        "ftrl": "--alpha 0.05 --minibatch 100 --epochs 5",
        "optimum": 1763.345, "auc": 0.7101, "best": 0.7458,
    },
    "imdb-bow": {
        "files": "imdb-bow/imdb.{}.libsvm.gz",
        "l2": "--alpha 0.2 --beta 5 --minibatch 50 --epochs 100",
        "ftrl": "--alpha 0.05 --minibatch 200 --epochs 5",
        "optimum": 1884.287, "auc": 0.9339, "best": 0.9472,
        "l1": 3899.974,
    },
    "imdb-bigram": {
        "files": "imdb-bigram/imdb-bigram.{}.libsvm.xz",
        "l2": "--alpha 0.2 --beta 5 --minibatch 25 --epochs 100",
        "optimum": 787.624, "auc": 0.9590, "l1": 3207.46,
    },
    "vw-0001": {
        "files": "vw-samples/0001.{}.vw.gz",
        "options": "--format vw --constant no",
        "l2": "--alpha 0.2 --minibatch 10 --epochs 100",
        "optimum": 111.547, "auc": 0.9576,
    },
}


def unpack_set(data, name, directory):
    """Paths of the unpacked training and test file of a set."""
    files = []
    for part in ("train", "test"):
        path = os.path.join(data, SETS[name]["files"].format(part))
        plain, ending = os.path.splitext(os.path.basename(path))
        files.append(os.path.join(directory, plain))
        opener = lzma.open if ending == ".xz" else gzip.open
        with opener(path, "rb") as packed, open(files[-1], "wb") as target:
            shutil.copyfileobj(packed, target)
    return files


class Daemon:
    """A psd of our own on a free loopback port."""

    def __init__(self, build, directory, options=()):
        # Each opens the file for itself; it is read when something is wrong.
        self.log = os.path.join(directory, "psd.log")
        data = os.path.join(directory, "data") # psd takes none with other files
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [os.path.join(build, "daemon", "psd"), "--data-dir", data,
                 "--listen", "tcp://127.0.0.1:0", *options],
                stdout=log, stderr=log)
        self.endpoint = self.wait(os.path.join(data, "endpoints.json"))

    def wait(self, path):
        for _ in range(300):
            if self.process.poll() is not None:
                break
            try:
                with open(path, encoding="utf-8") as file:
                    return json.load(file)["control"]
            except (OSError, ValueError):
                time.sleep(0.05)
        self.end()
        with open(self.log, encoding="utf-8") as log:
            sys.exit("psd did not get ready:\n" + log.read())

    def end(self):
        self.process.terminate()
        self.process.wait(30)


def busy_s():
    """Seconds that the machine's processors have worked, for whomever; also those
    that the host took from a virtual machine."""
    with open("/proc/stat", encoding="ascii") as file:
        numbers = [int(word) for word in file.readline().split()[1:]]
    user, nice, system, _, _, irq, soft, steal = numbers[:8]
    return (user + nice + system + irq + soft + steal) / os.sysconf(
        "SC_CLK_TCK")


def ours_s(daemon):
    """Seconds of that which were the daemon's, the programs' and this one's."""
    with open(f"/proc/{daemon.process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    used = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return used + sum(sum(resource.getrusage(who)[:2]) for who in
                      (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


class Others:
    """How many processors others have kept busy meanwhile."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.start = (time.monotonic(), busy_s(), ours_s(daemon))

    def share(self):
        passed, busy, ours = (end - start for end, start in zip(
            (time.monotonic(), busy_s(), ours_s(self.daemon)), self.start))
        return max(0.0, (busy - ours) / passed)
