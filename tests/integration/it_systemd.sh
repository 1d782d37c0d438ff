#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The unit: systemd understands it, and its exposure is under 3.0.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
unit=$root/systemd/psd.service
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# `verify` wants the program to be there: the one just built stands for it, under
# a name without spaces.
ln -s "$PSD_PROGRAM" "$work/psd"
sed "s|/usr/bin/psd|$work/psd|" "$unit" >"$work/psd.service"
said=$(systemd-analyze verify "$work/psd.service" 2>&1) || {
    echo "FAIL verify: $said"
    exit 1
}
if [ -n "$said" ]; then
    echo "FAIL verify is not silent: $said"
    exit 1
fi
echo "ok verify"

if ! said=$(systemd-analyze security --offline=true --threshold=30 "$unit"); then
    echo "$said"
    echo "FAIL exposure is 3.0 or more"
    exit 1
fi
echo "ok security: $(grep 'Overall exposure' <<<"$said")"

systemd-sysusers --dry-run "$root/systemd/psd.sysusers.conf" >/dev/null
echo "ok sysusers"
systemd-tmpfiles --create --dry-run "$root/systemd/psd.tmpfiles.conf" \
    >/dev/null 2>&1 || grep -qE '^d /var/lib/psd 0700 psd psd -$' \
    "$root/systemd/psd.tmpfiles.conf"
echo "ok tmpfiles"
