#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prometheus reads what psd shows, and the alerts: promtool has no word against
# either, and each alert fires for what it is made for.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"

root=$(dirname "${BASH_SOURCE[0]}")/../..

if ! command -v promtool >/dev/null; then
    echo "promtool is missing: scripts/deps installs it"
    exit 1
fi
cli_start
http=$(sed 's/.*"http":"http:\/\/\([^"]*\)".*/\1/' "$work/data/endpoints.json")

# get PATH: the body of the answer.
get() {
    exec 3<>"/dev/tcp/${http%:*}/${http##*:}"
    printf 'GET %s HTTP/1.0\r\n\r\n' "$1" >&3
    sed '1,/^\r$/d' <&3
    exec 3<&-
}

expect 0 table create w --rows 1000 --ack disk
expect 0 push w 1=0.5
expect 0 pull w 1
get /metrics >"$work/metrics"
n_checked=$((n_checked + 4))
promtool check metrics <"$work/metrics" >"$work/out" 2>&1 ||
    fail "promtool check metrics: $(cat "$work/out")"
grep -q '^psd_pushes_total{' "$work/metrics" || fail "no psd_pushes_total"
promtool check rules "$root/share/prometheus/psd.rules.yml" >"$work/out" 2>&1 ||
    fail "promtool check rules: $(cat "$work/out")"
promtool test rules "$root/tests/integration/psd.rules_test.yml" >"$work/out" 2>&1 ||
    fail "promtool test rules: $(cat "$work/out")"
# Each alert is tested to fire.
sed -n 's/^ *- alert: //p' "$root/share/prometheus/psd.rules.yml" | while read -r alert; do
    grep -q "alertname: $alert\$" "$root/tests/integration/psd.rules_test.yml" || echo "$alert"
done >"$work/untested"
n_checked=$((n_checked + 1))
[ ! -s "$work/untested" ] || fail "alerts without a test: $(cat "$work/untested")"
# Names only when told.
n_checked=$((n_checked + 1))
! grep -q 'name="w"' "$work/metrics" || fail "/metrics names a table"
cli_finish
