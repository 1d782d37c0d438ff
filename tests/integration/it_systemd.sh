#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The unit: systemd understands it, and its exposure is 1.5 at most.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
unit=$root/systemd/psd.service
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# `verify` wants the program to be there: the one just built stands for it, under
# a name without spaces.
ln -s "$PSD_PROGRAM" "$work/psd"
sed "s|/usr/bin/psd|$work/psd|" "$unit" >"$work/psd.service"
said=$(systemd-analyze verify --man=no "$work/psd.service" 2>&1) || {
    echo "FAIL verify: $said"
    exit 1
}
if [ -n "$said" ]; then
    echo "FAIL verify is not silent: $said"
    exit 1
fi
echo "ok verify"

if ! said=$(systemd-analyze security --offline=true --threshold=15 "$unit"); then
    echo "$said"
    echo "FAIL exposure is more than 1.5"
    exit 1
fi
echo "ok security: $(grep 'Overall exposure' <<<"$said")"

systemd-sysusers --dry-run "$root/systemd/psd.sysusers.conf" >/dev/null
echo "ok sysusers"

# libzmq aborts where it may not set a thread's policy. The last line that names
# the call, or its group, decides.
last=$(grep -E '^SystemCallFilter=.*(sched_setscheduler|@resources)' "$unit" |
    tail -1)
if [[ $last != SystemCallFilter=* || $last == SystemCallFilter=~* ]]; then
    echo "FAIL sched_setscheduler is not allowed: ${last:-no line names it}"
    exit 1
fi
echo "ok sched_setscheduler"
