# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
# What the tests of psd-lr share: its data, and runs that are refused. Source it after
# cli_lib.sh. PSD_LR_PROGRAM comes from meson.
data=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../data/agaricus" && pwd)
train=$work/train.libsvm
test=$work/test.libsvm
gzip -dc "$data/agaricus.train.libsvm.gz" >"$train"
gzip -dc "$data/agaricus.test.libsvm.gz" >"$test"

# lr ARGS...: as run of cli_lib.
lr() {
    rc=0
    "$PSD_LR_PROGRAM" "$@" >"$work/out" 2>"$work/err" </dev/null || rc=$?
    n_checked=$((n_checked + 1))
}

# refused CODE PATTERN ARGS...: nothing on stdout, one line on stderr that has
# the pattern, that exit code.
refused() {
    local want=$1
    local pattern=$2
    shift 2
    lr "$@"
    if [ "$rc" -ne "$want" ] || [ -s "$work/out" ] ||
        ! err_is_one_line ||
        ! grep -q "^psd-lr: E[0-9]* .*$pattern" "$work/err"; then
        fail "psd-lr $*: exit code $rc, not $want; or not: $pattern"
        show
    fi
}
