#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016 # words for other shells
# pscli run --servers embed: workers that are nodes themselves. The bits of a psd beside them,
# programs without a job, the registry that takes no tables, a rank that is killed, what is
# refused, and nothing left.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
# shellcheck source-path=SCRIPTDIR source=launch_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/launch_lib.sh"
export TMPDIR=$work
embed=(--servers embed --psd "$PSD_PROGRAM")

lr_data
train=("$PSD_LR_PROGRAM" --train "$work/train" --epochs 2 --save)
expect 0 run "${embed[@]}" -n 4 -- "${train[@]}" "$work/embed.txt"
cmp -s "$work/local.txt" "$work/embed.txt" || fail "on nodes in workers the model has other bits"
err_has '^4 workers serve; their registry starts here$'

# A program that joins no job: nobody leaves before the others have done. The first two are
# nodes, the third is none; pscli's own node takes no tables. pscli in a worker asks their
# cluster.
expect 0 run --servers embed:2 --psd "$PSD_PROGRAM" -n 3 -- sh -c '"$PSD_HELLO_PROGRAM" || exit
    [ $PSD_WORKER != 0 ] || exec "$PSCLI_PROGRAM" node list --columns state,primary,replica'
[ "$(grep -Ec '^\[[0-2]\] [0-9.]+ [0-9.]+ [0-9.]+$' "$work/out")" -eq 3 ] ||
    fail "psd-hello: $(cat "$work/out")"

[ "$(grep -c '^\[0\] \(up\|down\|suspect\) ' "$work/out")" -eq 2 ] || fail "not two nodes"
out_has '^\[0\] draining +0 +0$'

# A rank is killed after 20 acknowledged pushes, rank 0 too; copies go on, and every push
# counts once.
killed() {
    expect 137 run "${embed[@]}" "$@" 40 20
    [ "$(grep -c '^\[[0-2]\] all rows are 100$' "$work/out")" -eq 2 ] || {
        fail "$*: not all pushes of the killed rank and the others, or some twice"
        show
    }
}
killed -n 3 -- "$RANK_SUMS" 0
if command -v mpirun >/dev/null; then
    killed --launcher mpi --oversubscribe -n 3 -- "$RANK_SUMS" 1
fi

# A rank that exits without psd_leave: it waits for the others, which do not wait for it. What
# the environment says for a psd is not for the nodes: ranks share no directory and no name, and
# the registry stays where it is.
mkdir "$work/one"
export PSD_DATA_DIR=$work/one PSD_RUNTIME_DIR=$work/one PSD_NODE_NAME=one PSD_REGISTRY_VOTERS=3
PSD_WORKERS_LOST_AFTER_MS=8000 expect 0 run "${embed[@]}" -n 3 -- "$RANK_SUMS" 1 40 -20
unset PSD_DATA_DIR PSD_RUNTIME_DIR PSD_NODE_NAME PSD_REGISTRY_VOTERS
[ "$(grep -c '^\[[0-2]\] all rows are 100$' "$work/out")" -eq 2 ] || {
    fail "a rank that did not leave: not all pushes"
    show
}
[ -z "$(ls -A "$work/one")" ] || fail "nodes took the directory of the environment"

# One line each.
expect 2 run --servers embed:4 -n 3 -- true
err_has 'servers is "embed:4"; allowed: embed, embed:M with M of 1\.\.3 \(--workers\)'
expect 2 run --servers embedded -n 3 -- true
err_has 'servers is "embedded"; allowed: embed, embed:M with M of 1\.\.3'
expect 2 run --servers -1 -n 3 -- true
err_has 'servers is "-1"; allowed: 0\.\.4096, embed, embed:M'
expect 2 run "${embed[@]}" --endpoint tcp://127.0.0.1:1 -- true
err_has '--servers embed with --endpoint: the workers are a cluster of their own'
expect 2 run --servers embed --launcher kubernetes --dry-run -- true
err_has '--servers embed with launcher kubernetes; allowed with: local, ssh, mpi, slurm'
PSD_ENDPOINT=embed: expect 2 run -- true
err_has 'give --servers embed, or unset PSD_ENDPOINT'
expect 0 run --servers embed --dry-run -n 2 -o json -- true
out_has '"endpoint":"embed:"'
expect 0 run --servers embed:1 --launcher ssh --hosts a --dry-run -n 2 -- true
out_has 'PSD_ENDPOINT=embed:tcp://.*PSD_SERVERS=1'

# A worker that fails before it connects: the others wait for it no longer than for a psd.
PSD_TIMEOUT_MS=10000 expect 3 run "${embed[@]}" -n 2 -- sh -c \
    '[ $PSD_WORKER = 0 ] || exit 3; exec "$PSD_HELLO_PROGRAM"'
[ -z "$(find "$work" -name 'psd-embed-*' -o -name 'pscli-run-*')" ] || fail "directories are left"
cli_finish
