#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ucx_peers.sh PLUG-IN CARRIERS PEERS: the cases of every carrier over UCX's tcp, and two
# processes, one of which is killed.
set -eu
export LC_ALL=C UCX_TLS=tcp
plugin=$1 carriers=$2 peers=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -m 755 "$work/carriers"
cp "$plugin" "$work/carriers/libpsd-ucx.so"
chmod 644 "$work/carriers/libpsd-ucx.so"
"$carriers" ucx "$plugin"
PSD_CARRIER_DIR=$work/carriers "$peers"
