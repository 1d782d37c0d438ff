# SPDX-License-Identifier: Apache-2.0
"""What tests/bench/upgrade stands on: clusters of psd on this host, of more than
one build, and pscli to talk to them; waits with a deadline; the score."""

import concurrent.futures
import csv
import io
import json
import os
import select
import signal
import subprocess
import time

# A busy machine makes no node silent and loses no worker.
CALM = {"PSD_CLUSTER_SUSPECT_AFTER": "3000", "PSD_WORKERS_LOST_AFTER_MS": "60000",
        "PSCLI_TIMEOUT": "100s", "LC_ALL": "C"}


class GaveUp(Exception):
    """A scenario cannot go on."""


class Limit:
    """An event comes sooner, also on a busy machine."""

    seconds = 150


def each(function, items):
    """All at once: a busy machine makes each call slow, not many of them."""
    items = list(items)
    with concurrent.futures.ThreadPoolExecutor(max(len(items), 1)) as pool:
        return list(pool.map(function, items))


class Score:
    def __init__(self):
        self.scenario = ""
        self.n_passed = 0
        self.n_failed = 0

    def check(self, good, text, why=""):
        self.n_passed += bool(good)
        self.n_failed += not good
        print(f"{'ok  ' if good else 'FAIL'} {self.scenario}: {text}", flush=True)
        if not good and why:
            print("     " + str(why).strip().replace("\n", "\n     "), flush=True)
        return good

    def note(self, text):
        print(f"note {self.scenario}: {text}", flush=True)


def wait_for(what, condition):
    """Until it holds; asks again 20 ms after each no."""
    end = time.monotonic() + Limit.seconds
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() >= end:
            raise GaveUp(f"gave up after {Limit.seconds} s: {what}")
        select.select([], [], [], 0.02)


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""


class Build:
    def __init__(self, path):
        self.path = os.path.abspath(path)

    def file(self, name):
        return os.path.join(self.path, name)


class Node:
    """One data directory and the psd that runs on it."""

    def __init__(self, cluster, name):
        self.cluster = cluster
        self.name = name
        self.data = os.path.join(cluster.work, name)
        self.log = self.data + ".log"
        self.port = 0
        self.process = None
        self.n_before = 0  # characters of the log that earlier lives wrote

    def start(self, build, join="", settings=None):
        """Does not wait."""
        ready = os.path.join(self.data, "endpoints.json")
        if os.path.exists(ready):
            os.remove(ready)
        self.listen()
        env = {**self.cluster.env, **(settings or {}), "PSD_NODE_NAME": self.name}
        command = [build.file("daemon/psd"), "--data-dir", self.data,
                   "--listen", f"tcp://127.0.0.1:{self.port}"]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                command + (["--join", join] if join else []), env=env,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def listen(self):
        """said() is what it writes from here."""
        self.n_before = len(read(self.log))

    def said(self):
        """What this life wrote."""
        return read(self.log)[self.n_before:]

    def has_ended(self):
        return self.process is None or self.process.poll() is not None

    def endpoint(self):
        text = read(os.path.join(self.data, "endpoints.json"))
        return json.loads(text)["control"] if text.endswith("}\n") or \
            text.endswith("}") else ""

    def settle(self):
        """Until it serves (then its endpoint) or has ended (then "")."""
        wait_for(f"{self.name} neither serves nor ends",
                 lambda: self.endpoint() or self.has_ended())
        endpoint = "" if self.has_ended() else self.endpoint()
        if endpoint:
            self.port = int(endpoint.rsplit(":", 1)[1])
        return endpoint

    def end(self, how=signal.SIGTERM):
        if self.process is not None:
            if self.process.poll() is None:
                self.process.send_signal(how)
            try:
                self.process.wait(Limit.seconds)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None


class Cluster:
    """Nodes n0, n1, … of which n0 has the registry, and tools to talk to them."""

    def __init__(self, score, work, build, settings=None):
        self.score = score
        self.work = work
        self.build = build  # the one whose tools talk
        self.nodes = {}
        self.endpoint = ""
        self.others = []  # programs that end with the cluster
        self.env = {key: value for key, value in os.environ.items()
                    if not key.startswith(("PSD_", "PSCLI_"))}
        self.env.update(CALM, HOME=work, XDG_CONFIG_HOME=os.path.join(work, "config"),
                        PSD_CHECKPOINT_DIR=os.path.join(work, "checkpoints"),
                        **(settings or {}))

    def node(self, name):
        return self.nodes.setdefault(name, Node(self, name))

    def start(self, name, build, settings=None):
        """Until it serves."""
        node = self.node(name)
        node.start(build, "" if name == "n0" else self.endpoint, settings)
        endpoint = node.settle()
        if not endpoint:
            raise GaveUp(f"{name} did not start:\n{node.said()[-2000:]}")
        if name == "n0":
            self.endpoint = endpoint
            self.build = build

    def start_all(self, build, names, settings=None):
        for name in names:
            self.start(name, build, settings)
        self.wait_healthy()

    def end(self, how=signal.SIGTERM):
        """All nodes, at once."""
        for node in self.nodes.values():
            if not node.has_ended():
                node.process.send_signal(how)
        for node in self.nodes.values():
            node.end(how)

    def end_others(self):
        for process in self.others:
            if process.poll() is None:
                process.kill()
            process.wait()
        self.others = []

    # ---- pscli ----

    def environment(self):
        return {**self.env, "PSCLI_ENDPOINT": self.endpoint}

    def run(self, *words, text="", build=None):
        return subprocess.run(
            [(build or self.build).file("cli/pscli"), *words], input=text,
            env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            encoding="utf-8", timeout=2 * Limit.seconds, check=False)

    def must(self, *words, text=""):
        done = self.run(*words, text=text)
        if done.returncode != 0:
            raise GaveUp(f"pscli {' '.join(words)}: exit code {done.returncode}\n"
                         + done.stderr)
        return done.stdout

    def status(self):
        done = self.run("cluster", "status", "-o", "json")
        return json.loads(done.stdout) if '"nodes"' in done.stdout else None

    def take_loss(self):
        """Of tables whose rows are lost with the memory; of level disk none is."""
        for table in ("memory", "replica"):
            done = self.run("table", "inspect", table, "-o", "json")
            if done.returncode == 0 and \
                    json.loads(done.stdout)["table"].get("rows_lost"):
                self.run("table", "ack", table)

    def wait_healthy(self):
        n_up = sum(not node.has_ended() for node in self.nodes.values())

        def is_healthy():
            status = self.status()
            if not status or n_up > sum(node["state"] == "up"
                                        for node in status["nodes"]):
                return False
            if not status["cluster"]["healthy"]:
                self.take_loss()
            return status["cluster"]["healthy"]
        try:
            wait_for("the cluster is not healthy", is_healthy)
        except GaveUp as why:
            raise GaveUp(f"{why}\n{self.run('cluster', 'status').stdout}") from why

    def pull(self, table):
        """{row: values as text}; rows that are all zero are left out."""
        lines = csv.reader(io.StringIO(
            self.must("pull", table, "all", "-o", "csv")))
        next(lines)
        return {int(line[0]): line[1:] for line in lines
                if any(float(value) for value in line[1:])}
