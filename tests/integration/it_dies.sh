#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The commands under "When it dies" in docs/quickstart.md, word for word: a
# worker, the node, and everything at once is killed. Every slice is counted
# once; after the third exactly those are trained that were left; and what was
# learnt is as good as without a death. Only the address of psd is the test's.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
psd='' run='' # of the commands
slices=40
epochs=5

# The n-th block of the section, from 0.
block() {
    python3 - "$root/docs/quickstart.md" "$1" <<'END'
import re, sys
text = open(sys.argv[1], encoding="utf-8").read()
section = text.split("\n## When it dies\n")[1].split("\n## ")[0]
print(re.findall(r"```sh\n(.*?)```", section, flags=re.DOTALL)[int(sys.argv[2])])
END
}

# Programs as a user has them.
mkdir "$work/bin"
ln -s "$PSD_PROGRAM" "$work/bin/psd"
ln -s "$PSCLI_PROGRAM" "$work/bin/pscli"
ln -s "$PSD_QUEUE_PROGRAM" "$work/bin/psd-queue"
export PATH=$work/bin:$PATH
gunzip -c "$root/data/agaricus/agaricus.train.libsvm.gz" >"$work/samples"
cd "$work" || exit 1
port=$(python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
export PSD_LISTEN_ENDPOINTS=tcp://127.0.0.1:$port
export PSD_ENDPOINT=$PSD_LISTEN_ENDPOINTS PSCLI_ENDPOINT=$PSD_LISTEN_ENDPOINTS
export PSCLI_TIMEOUT=60s PSD_WORKERS_LOST_AFTER_MS=10000

# death N: its commands; psd stays that of cli_end.
death() {
    eval "$(block "$1")" >"out.$1" 2>"err.$1"
    last=$?
    psd_pid=$psd
    n_checked=$((n_checked + 1))
}

# counted FILE...: the slices that were counted, sorted.
counted() {
    sed -n 's/^\[[0-9]\] slice \([0-9]*\) of epoch \([0-9]*\)$/\2 \1/p' "$@" | sort
}

all_slices() {
    for ((e = 1; e <= epochs; e++)); do
        for ((s = 0; s < slices; s++)); do
            echo "$e $s"
        done
    done | sort
}

# How many samples are right in one more epoch, per mille: what was learnt.
judge() {
    pscli run -n 1 --job "judge-$1" -- psd-queue samples $slices 1 >judge.log ||
        fail "$1 cannot be judged"
    right=$(sed -n 's/.*samples, \([01]\)\.\([0-9]\{3\}\).*/\1\2/p' judge.log)
    right=$((10#${right:-0}))
}

again() {
    pscli table drop weights --yes >/dev/null 2>&1 || fail "the table cannot be dropped"
    pscli table create weights --keys hash --ack disk >/dev/null 2>&1 ||
        fail "the table cannot be made"
}

# is_as_good NAME: as the undisturbed run, but for noise.
is_as_good() {
    judge "$1"
    [ "$right" -ge $((undisturbed - 5)) ] ||
        fail "$1: $right of 1000 are right, $undisturbed undisturbed"
}

death 0
[ "$last" -eq 0 ] || fail "psd does not begin: $(cat err.0)"
pscli run -n 4 --job none -- psd-queue samples $slices $epochs >none.log ||
    fail "the undisturbed run"
[ "$(counted none.log)" = "$(all_slices)" ] || fail "the undisturbed run's slices"
judge none
undisturbed=$right
[ "$undisturbed" -ge 980 ] || fail "nothing is learnt: $undisturbed of 1000"

again
death 1
wait "$run" || fail "the run whose worker was killed has failed: $(cat err.1)"
grep -q 'was killed by signal 9' out.1 || fail "why does not say it: $(cat out.1)"
grep -q ' true$' out.1 || fail "job one is not over: $(cat out.1)"
# The one that died may have said nothing of a slice that was counted.
[ "$(counted one.log | uniq -d)" = "" ] || fail "job one: slices counted twice"
is_as_good one

again
death 2
wait "$run" || fail "the run whose node was killed has failed: $(cat err.2)"
grep -q ' true$' out.2 || fail "job two is not over: $(cat out.2)"
[ "$(counted two.log)" = "$(all_slices)" ] || fail "job two: slices: $(cat two.log)"
is_as_good two

again
death 3
[ "$last" -eq 0 ] || fail "the job does not go on: $(cat err.3 rest.log)"
python3 - store/checkpoints/noon/manifest.json >left <<'END'
import json, sys
queue = json.loads(open(sys.argv[1]).readline())["jobs"][0]["queues"][0]
done = set()
for first, n in zip(queue["done"][::2], queue["done"][1::2]):
    done.update(range(first, first + n))
for epoch in range(queue["epoch"], queue["epochs"] + 1):
    for slice in range(queue["slices"]):
        if epoch > queue["epoch"] or slice not in done:
            print(epoch, slice)
END
[ -s left ] || fail "nothing was left to do"
[ "$(counted rest.log)" = "$(sort left)" ] ||
    fail "not exactly those that were left: $(diff <(counted rest.log) <(sort left))"
is_as_good three

# Once more, to an end that the queue did not have; and what is refused.
expect 2 checkpoint resume noon
err_has '--job is missing'
expect 5 checkpoint resume noon --job one
err_has 'has no job "one"'
expect 2 checkpoint resume noon --job three
err_has 'needs --yes'
expect 0 checkpoint resume noon --job three --epochs 6 --workers 2 --yes
expect 0 run -n 2 --job three -- psd-queue samples $slices 6
counted out | sed '/^6 /d' | cmp -s - <(sort left) ||
    fail "with more epochs others were trained than were left"
[ "$(counted out | grep -c '^6 ')" -eq $slices ] || fail "epoch 6 is missing"
expect 3 run -n 1 --job empty --allow-lost 1 -- sh -c 'exit 3'
err_has 'job empty: job does not exist'
cli_finish
