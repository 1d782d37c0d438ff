#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One program as scheduler, two servers and two workers, started in any order and without
# ranks, as ps-lite's local.sh does it: all end with 0, the sums are right, nothing is left.
# ROLE_PROGRAM comes from meson.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
# shellcheck source-path=SCRIPTDIR source=roles_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/roles_lib.sh"

roles_run "worker server scheduler worker server" "$ROLE_PROGRAM"
for name in "${names[@]}"; do
    roles_ended "$name" 0
done
sort "$work/worker-0.out" "$work/worker-1.out" >"$work/out"
out_is "$(printf 'worker 0 sum 2\nworker 1 sum 2')"
[ -z "$(ls "$TMPDIR")" ] || fail "left in TMPDIR: $(ls "$TMPDIR")"
# Words that are wrong.
DMLC_ROLE=master "$ROLE_PROGRAM" 2>"$work/err" && fail "a role that is none"
err_has 'DMLC_ROLE is "master"; allowed: worker, server, scheduler'
env -u DMLC_PS_ROOT_PORT DMLC_ROLE=server "$ROLE_PROGRAM" 2>"$work/err" && fail "half an address"
err_has 'DMLC_PS_ROOT_URI is set, and DMLC_PS_ROOT_PORT is not'
PSD_ALIASES=dmtk ps_role=default "$ROLE_PROGRAM" 2>"$work/err" && fail "both at once"
err_has 'ps_role is "both": .* only alone'
PSD_ALIASES=dmtk ps_role=none "$ROLE_PROGRAM" || fail "none"
cli_finish
