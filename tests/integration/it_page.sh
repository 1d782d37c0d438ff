#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The page and /api/v1: nothing without the token but an empty page; with it the
# documents of pscli -o json; the page names no other host, and fits into its size.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"

cli_start
http=$(sed 's/.*"http":"http:\/\/\([^"]*\)".*/\1/' "$work/data/endpoints.json")

# get PATH [HEADER [METHOD]]: the head and the body of the answer.
get() {
    exec 3<>"/dev/tcp/${http%:*}/${http##*:}"
    printf '%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s\r\n' "${3:-GET}" "$1" \
        "${host:-$http}" "${2:+$2$'\r\n'}" >&3
    cat <&3 >"$work/answer"
    exec 3<&-
    sed '/^\r$/,$d' "$work/answer" | tr -d '\r' >"$work/head"
    sed '1,/^\r$/d' "$work/answer" >"$work/body"
    n_checked=$((n_checked + 1))
}

# status CODE PATH [HEADER [METHOD]]
status() {
    local want=$1
    shift
    get "$@"
    grep -q "^HTTP/1.1 $want " "$work/head" || fail "$1: $(head -1 "$work/head"), not $want"
}

# Of the last answer: no browser keeps it, guesses what it is, or names its address to others.
guarded() {
    for header in 'X-Content-Type-Options: nosniff' 'Referrer-Policy: no-referrer' \
        'Cache-Control: no-store'; do
        grep -qix "$header" "$work/head" || fail "no $header"
    done
}

expect 0 table create secret_table --rows 1000 --partitions 4
expect 0 push secret_table 1=0.5
expect 0 pull secret_table 1
expect 0 checkpoint create secret_checkpoint

# ---- without a token ----
for path in cluster tables tables/secret_table tables/none checkpoints nothing; do
    status 401 "/api/v1/$path"
    ! grep -qi 'secret' "$work/answer" || fail "$path without a token names something"
done
grep -q '^WWW-Authenticate: Bearer ' "$work/head" || fail "no WWW-Authenticate"
status 401 /api/v1/tables "Authorization: Bearer $(printf '0%.0s' {1..64})"
status 401 /api/v1/tables "Authorization: Bearer "
status 200 /
grep -q "^Content-Security-Policy: default-src 'none'; script-src 'self';" "$work/head" ||
    fail "the page has no policy"
grep -q '^Content-Type: text/html; charset=utf-8$' "$work/head" || fail "the page is no HTML"
guarded
size=$(wc -c <"$work/body")
! grep -Eq 'secret|https?:' "$work/body" || fail "the page names a host"
status 200 /psd.js
size=$((size + $(wc -c <"$work/body")))
[ $size -le 300000 ] || fail "the page has $size bytes"
# Of uPlot, addresses stand in comments only.
! grep -E 'https?:' "$work/body" | grep -v '^[[:space:]]*\(//\|\*\)' | grep -v '[[:space:]]//' ||
    fail "the script names a host"
# Not by a name that another site gave this address.
for path in / /psd.js /metrics /healthz /readyz /api/v1/tables; do
    host=psd.example:${http##*:} status 403 $path
done
host=localhost status 200 /metrics
status 405 / "" POST
status 200 / "" HEAD
[ ! -s "$work/body" ] || fail "HEAD has a body"

# ---- with it ----
n_checked=$((n_checked + 1))
[ "$(stat -c %a "$work/data/http.token")" = 600 ] || fail "the token is not for its owner alone"
expect 0 page --data-dir "$work/data"
link=$(cat "$work/out")
token=${link##*#token=}
n_checked=$((n_checked + 1))
[ "$link" = "http://$http/#token=$(cat "$work/data/http.token")" ] || fail "pscli page: $link"
expect 0 page --data-dir "$work/data" -o json
out_has "^\{\"schema_version\":1,\"url\":\"http://$http/#token=[0-9a-f]{64}\",\"node\":\"$(hostname)\"\}$"
expect 3 page --data-dir "$work/none"
err_has 'no psd has started in '
auth="Authorization: Bearer $token"

# same PATH COMMAND...: keeps both documents, for one comparison of all.
n_same=0
same() {
    status 200 "/api/v1/$1" "$auth"
    mv "$work/body" "$work/same-$n_same.api"
    shift
    expect 0 "$@" -o json
    mv "$work/out" "$work/same-$n_same.cli"
    n_same=$((n_same + 1))
}

same cluster cluster status
guarded
same nodes node list
same "nodes/$(hostname)" node inspect "$(hostname)"
same tables table list
same tables/secret_table table inspect secret_table
same jobs job list
same clocks clock list
same checkpoints checkpoint list
same settings cluster settings
same 'events?last=3' cluster events -n 3
python3 - "$work" $n_same <<'PYTHON' || fail "/api/v1 is not what pscli -o json is"
import json
import sys

# Times, and what the questions themselves count.
MOVES = {"uptime_s", "last_seen_s", "sessions", "tail_bytes", "bytes"}


def strip(value):
    if isinstance(value, dict):
        return {k: strip(v) for k, v in value.items() if k not in MOVES}
    if isinstance(value, list):
        return [strip(item) for item in value]
    # Beyond 2^63 the one has digits, the other a number.
    return int(value) if isinstance(value, str) and value.isdigit() else value


bad = 0
for i in range(int(sys.argv[2])):
    a, b = (strip(json.load(open(f"{sys.argv[1]}/same-{i}.{end}"))) for end in ("api", "cli"))
    if a != b:
        bad = 1
        print(json.dumps(a, sort_keys=True), json.dumps(b, sort_keys=True), sep="\n")
sys.exit(bad)
PYTHON
status 404 /api/v1/tables/none "$auth"
grep -q '^{"error":{"code":"E2003"\|"code":"E2003"' "$work/body" || fail "$(cat "$work/body")"
status 404 /api/v1/jobs/none "$auth"
status 400 /api/v1/tables/a%22b "$auth"
status 400 '/api/v1/events?last=many' "$auth"
status 404 /api/v1/table_drop "$auth"
status 405 /api/v1/tables "$auth" POST
status 200 /api/v1/tables "Authorization: Basic $(printf 'x:%s' "$token" | base64 -w 0)"

# ---- pscli beside it: a bundle without secrets, yaml, templates ----
expect 0 support-bundle --timeout 60s --to "$work/bundle.tar" --data-dir "$work/data"
out_has '^wrote '
expect 0 support-bundle --timeout 60s --to "$work/bundle.tar.gz" --data-dir "$work/data"
tar xzf "$work/bundle.tar.gz" -C "$work" || fail "tar does not take the bundle"
n_checked=$((n_checked + 4))
for file in cluster.json nodes.json "nodes/$(hostname).json" tables.json jobs.json settings.json \
    events.json registry.json clocks.json checkpoints.json metrics.txt healthz.txt readyz.txt \
    host/versions.txt host/psd_limits host/psd_mounts left_out.json; do
    [ -s "$work/psd-support/$file" ] || fail "the bundle has no $file"
done
grep -q '"left_out":\[\]' "$work/psd-support/left_out.json" || fail "something is left out"
[ "$(stat -c %a "$work/bundle.tar.gz")" = 600 ] || fail "others can read the bundle"
python3 - "$work/data" "$work/bundle.tar" <<'PYTHON' || fail "the bundle has a secret"
import json
import os
import sys

data = sys.argv[1]
secrets = [open(os.path.join(data, "http.token"), "rb").read().strip()]
secrets.append(json.load(open(os.path.join(data, "member.json")))["secret"].encode())
bundle = open(sys.argv[2], "rb").read()
sys.exit(any(secret in bundle for secret in secrets))
PYTHON
# The psd of a directory gets no token for what needs none, and no file of another place.
python3 - "$PSCLI_PROGRAM" "$work" <<'PYTHON' || fail "the bundle shows its token, or follows links"
import http.server
import json
import os
import subprocess
import sys
import threading

pscli, work = sys.argv[1:]
asked = {}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        asked[self.path] = self.headers.get("Authorization")
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"x\n")

    def log_message(self, *_):
        pass


def run(*command):
    return subprocess.run((pscli, *command, "--data-dir", place), capture_output=True, text=True)


place = os.path.join(work, "fake")
token = os.path.join(place, "http.token")
os.mkdir(place, 0o700)
with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with open(os.path.join(place, "endpoints.json"), "w") as file:
        json.dump({"node": "n", "http": "http://127.0.0.1:%d" % server.server_port}, file)
    os.symlink(os.path.join(work, "data", "http.token"), token)
    linked = run("page")
    os.unlink(token)
    os.mkfifo(token)
    fifo = run("page")
    os.unlink(token)
    with open(token, "w") as file:
        file.write("0" * 64 + "\n")
    made = run("support-bundle", "--to", os.path.join(work, "fake.tar"))
    server.shutdown()
print(linked, fifo, made, asked, sep="\n")
sys.exit(not (linked.returncode != 0 and "is a symbolic link" in linked.stderr
              and fifo.returncode != 0 and "owner" in fifo.stderr and made.returncode == 0
              and asked == {"/metrics": None, "/healthz": None, "/readyz": None}))
PYTHON
expect 2 support-bundle
err_has 'support-bundle: --to FILE is required|--to FILE is required'
expect 0 node list -o yaml
out_has '^schema_version: 1$'
out_has '^  - name: '
python3 -c 'import sys, yaml; yaml.safe_load(sys.stdin)' <"$work/out" 2>"$work/err" ||
    grep -q 'No module named' "$work/err" || fail "node list -o yaml does not parse"
expect 0 table list -o template --template '{name} {partitions|n_partitions}\t{bytes.values}'
out_has '^secret_table 4'
expect 2 table list -o template
err_has 'need each other'
expect 2 table list --template '{name}'
err_has 'need each other'
expect 2 table list -o template --template '{name'
err_has 'wants a member'
expect 2 table drop secret_table -o yaml --yes
err_has 'for commands that only show'
expect 0 table inspect secret_table -o name

# ---- the next start ----
kill "$psd_pid"
wait "$psd_pid" || fail "psd ended with $?"
chmod 0644 "$work/data/http.token"
n_checked=$((n_checked + 2))
! "$PSD_PROGRAM" --data-dir "$work/data" --listen tcp://127.0.0.1:0 2>"$work/err" ||
    fail "psd takes a token that others can read"
err_has 'http.token: others than its owner may use it'
chmod 0600 "$work/data/http.token"
# ---- beyond loopback ----
PSD_HTTP_LISTEN=0.0.0.0:0 PSD_SECURITY_ALLOW_PLAINTEXT=true cli_start
expect 0 page --data-dir "$work/data"
[ "$(sed "s|.*=||" "$work/out")" = "$token" ] || fail "the token is another one"
http=$(sed 's/.*"http":"http:\/\/\([^"]*\)".*/\1/' "$work/data/endpoints.json")
grep -q "^http://$(hostname):${http##*:}/#token=" "$work/out" || fail "pscli page: $(cat "$work/out")"
for path in / /psd.js /metrics /api/v1/tables /none; do
    status 401 $path
    grep -q '^WWW-Authenticate: Basic ' "$work/head" || fail "$path: no browser asks for the token"
done
status 200 / "$auth"
host=psd.example status 200 /metrics "$auth"
status 200 /healthz
expect 0 support-bundle --timeout 60s --to "$work/beyond.tar" --data-dir "$work/data"
tar xOf "$work/beyond.tar" psd-support/metrics.txt | grep '^psd_build_info' >/dev/null ||
    fail "the bundle has no metrics"
n_checked=$((n_checked + 1))
cli_finish
