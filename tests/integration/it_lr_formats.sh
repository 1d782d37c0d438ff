#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# examples/lr reads one data set in four formats, packed, and as a directory of
# parts: under BSP the models have the same bytes, with one worker and with four.
# PSD_LR_PROGRAM comes from meson.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
data=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../data/agaricus" && pwd)
mkdir "$work/in" "$work/in/parts"
gzip -dc "$data/agaricus.train.libsvm.gz" >"$work/in/a.libsvm"
cp "$data/agaricus.train.libsvm.gz" "$work/in/a.libsvm.gz"
split -l 2000 "$work/in/a.libsvm" "$work/in/parts/part."
awk '{ line = ($1 > 0 ? 1 : -1) "; 0"
       for (i = 2; i <= NF; i++) line = line " " $i
       print line ";" }' "$work/in/a.libsvm" >"$work/in/a.ps"
# Names of digits only are their own index; the default namespace adds nothing.
awk '{ line = $1 " |"
       for (i = 2; i <= NF; i++) line = line " " $i
       print line }' "$work/in/a.libsvm" >"$work/in/a.vw"
# Columns count from 0, and zeros are as good as absent.
awk '{ for (i = 0; i < 127; i++) value[i] = 0
       for (i = 2; i <= NF; i++) { split($i, kv, ":"); value[kv[1]] = kv[2] }
       line = $1
       for (i = 0; i < 127; i++) line = line "," value[i]
       print line }' "$work/in/a.libsvm" >"$work/in/a.csv"

n_tables=0

# learn WORKERS INPUT OPTIONS...: trains anew; the model goes to $work/model.
learn() {
    local workers=$1
    local input=$2
    shift 2
    n_tables=$((n_tables + 1))
    expect 0 run -n "$workers" --max-delay 0 -- "$PSD_LR_PROGRAM" \
        --train "$work/in/$input" --table "t$n_tables" --constant no --epochs 2 \
        --save "$work/model" "$@"
}

# same WORKERS INPUT OPTIONS...: the model is that of the plain libsvm file.
same() {
    learn "$@"
    cmp "$work/first" "$work/model" ||
        fail "$2 with $1 workers gives another model"
}

cli_start
export PSD_ENDPOINT=$PSCLI_ENDPOINT
for workers in 1 4; do
    learn "$workers" a.libsvm
    mv "$work/model" "$work/first"
    [ "$(wc -l <"$work/first")" -gt 20 ] || fail "the model is empty"
    for input in a.ps a.vw a.csv; do
        same "$workers" "$input"
    done
done
for input in a.libsvm.gz parts 'parts/part.*'; do
    same 4 "$input"
done

# Parts of files by bytes: every sample is somebody's.
learn 3 a.libsvm --deal bytes
out_has 'train  6513 examples'

cli_finish
