#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# PSD_ENDPOINT=mpi: on two hosts, with two ranks on each: the bits of one host over MPI alone,
# with no connection of psd's own, and over MPI among the ranks and tcp.
# shellcheck disable=SC2154 # net is of hosts_start
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
# shellcheck source-path=SCRIPTDIR source=launch_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/launch_lib.sh"
# shellcheck source-path=SCRIPTDIR source=mpi_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/mpi_lib.sh"
[ "$(id -u)" -eq 0 ] || skip "hosts of their own need root"
mpi_carrier
hosts_start
export TMPDIR=$work/tmp
printf '#!/bin/sh\nexec ssh -F %s "$@"\n' "$ssh_f" >"$work/agent"
chmod +x "$work/agent"

# by_hosts PROGRAM...: four ranks, which speak over tcp on one host, too.
by_hosts() {
    by_mpi 4 --host "$net.2:2,$net.3:2" --mca plm_rsh_agent "$work/agent" \
        --mca oob_tcp_if_include "$net.0/24" --mca btl tcp,self \
        --mca btl_tcp_if_include "$net.0/24" "$@"
}

lr_data
PSD_TRANSPORT=mpi by_hosts "$PSD_LR_PROGRAM" --train "$work/train" --epochs 2 \
    --save "$work/mpi.txt"
wants 0 psd-lr on two hosts over MPI
! grep -v '^warn ' "$err_file" || fail "psd-lr on two hosts: more than that on stderr"
cmp -s "$work/local.txt" "$work/mpi.txt" || fail "on two hosts over MPI the model has other bits"

# Relays of workers have names of their own on both hosts, too.
PSD_OVERLAY=tree PSD_TRANSPORT=mpi by_hosts -x PSD_OVERLAY "$PSD_LR_PROGRAM" --train "$work/train" \
    --epochs 2 --save "$work/tree.txt"
wants 0 psd-lr on two hosts over MPI, with an overlay
! grep -E 'overlay_|relay_' "$err_file" || fail "the workers on two hosts have no overlay"

PSD_TRANSPORT=mpi by_hosts "$RANK_BYTES"
wants 0 rank_bytes on two hosts
[ "$(grep -c '^node-[ab]: 0 connections, 0 unix sockets$' "$out_file")" -eq 2 ] || {
    fail "psd has connections of its own between ranks"
    show
}
[ "$(grep -c '^carrier: at least what was pushed, at least what was pulled$' "$out_file")" -eq 4 ] || {
    fail "the carrier has not carried what was moved"
    show
}

# Where they listen, others reach them.
by_hosts "$PSD_HELLO_PROGRAM"
[ "$rc" -ne 0 ] || fail "servers listen beyond their hosts in the clear, unasked"
err_has 'listen.endpoints has tcp:.*security.allow_plaintext: true'
for transport in auto mpi,auto; do
    PSD_TRANSPORT=$transport PSD_SECURITY_ALLOW_PLAINTEXT=true \
        by_hosts -x PSD_SECURITY_ALLOW_PLAINTEXT "$PSD_LR_PROGRAM" --train "$work/train" --epochs 2 \
        --save "$work/$transport.txt"
    wants 0 psd-lr on two hosts over "$transport"
    cmp -s "$work/local.txt" "$work/$transport.txt" ||
        fail "on two hosts over $transport the model has other bits"
done
cli_finish
