#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016 # words for other shells
# pscli run --launcher ssh on two hosts: the bits of local workers, words of any kind, exit
# codes, nothing left after kill -9, restarts, and one line for what is wrong.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
# shellcheck source-path=SCRIPTDIR source=launch_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/launch_lib.sh"
[ "$(id -u)" -eq 0 ] || skip "hosts of their own need root"
hosts_start
export TMPDIR=$work/tmp
open_psd
by_ssh=(--launcher ssh --ssh "ssh -F $ssh_f")
both=("${by_ssh[@]}" --hosts "$net.2:2,$net.3:2")
mark=$work/held_by_ssh
touch "$mark"

# A private psd for other hosts is open to all: only when that is asked for.
expect 2 run --endpoint tcp://127.0.0.1:1 "${both[@]}" -n 4 --servers 1 -- true
err_has "would listen at $net.1, .*PSD_SECURITY_ALLOW_PLAINTEXT=true"
lr_data
PSD_SECURITY_ALLOW_PLAINTEXT=true lr_as_local "${both[@]}" --servers 2
err_has "the private psd listens at $net.1: all who reach it"
# Nodes in the workers, which listen at the addresses of their hosts.
PSD_SECURITY_ALLOW_PLAINTEXT=true lr_as_local "${both[@]}" --servers embed

# Which host, which rank, and words that a shell could change.
cat >"$work/words" <<'SH'
#!/bin/sh
echo "$PSD_WORKER/$PSD_WORKERS $(hostname) $#"
printf '<%s>' "$@"
echo
SH
chmod +x "$work/words"
expect 0 run "${both[@]}" -n 4 -- "$work/words" 'a b' "it's" '"$HOME"' $'two\nlines' '' '*'
for rank in 0 1 2 3; do
    out_has "^\\[$rank\\] $rank/4 node-$([ $rank -lt 2 ] && echo a || echo b) 6$"
    out_has "^\\[$rank\\] <a b><it's><\"\\\$HOME\"><two$"
    out_has "^\\[$rank\\] lines><><\\*>$"
done

# A name that only ssh knows, with a psd that all reach.
expect 0 run "${by_ssh[@]}" --hosts alias-a -n 1 -- hostname
out_has '^\[0\] node-a$'

# Exit codes, of programs and of signals.
expect 7 run "${both[@]}" -n 2 -- sh -c '[ $PSD_WORKER = 1 ] || exit 0; exit 7'
expect 137 run "${both[@]}" -n 2 -o json -- sh -c '[ $PSD_WORKER = 1 ] || exit 0; kill -9 $$'
out_has '"worker":1,"exit":137,"signal":9'
expect 127 run "${both[@]}" -n 1 -- "$work/nothing"
err_has "$work/nothing cannot be started: No such file"

# Workers that wait; each has the mark in its command line, as its helper has.
start_holding() {
    "$PSCLI_PROGRAM" run "${both[@]}" -n 4 -- sh -c 'echo on; exec tail -f "$0"' "$mark" \
        >"$work/out" 2>"$work/err" </dev/null &
    run_pid=$!
    all_on() {
        [ "$(grep -c on "$work/out")" -eq 4 ]
    }
    wait_for all_on || fail "the workers do not start"
}
start_holding
kill -9 "$run_pid"
wait "$run_pid" 2>/dev/null
wait_for none_left "$mark" || fail "workers outlive pscli: $(marks_of "$mark")"
start_holding
child=$(pgrep -P "$run_pid" -f "ssh .*${net//./\\.}\\.3" | head -1)
[ -n "$child" ] || fail "pscli has no ssh to $net.3: $(pgrep -a -P "$run_pid")"
kill -9 "$child"
three_left() {
    [ "$(pgrep -cxf "tail -f $mark")" -eq 3 ] && grep -q 'ended without' "$work/err"
}
wait_for three_left || fail "a worker outlives its ssh: $(marks_of "$mark")"
err_has "worker [23]: $net.3 ended without a report of it"
kill -TERM "$run_pid"
rc=0
wait "$run_pid" || rc=$?
[ "$rc" -eq 143 ] || fail "run ended by SIGTERM: $rc"
wait_for none_left "$mark" || fail "workers outlive SIGTERM: $(marks_of "$mark")"

# A worker that fails is started again, with its rank.
expect 0 run "${both[@]}" -n 2 --restart 2 -- sh -c '
    [ $PSD_WORKER = 1 ] || exit 0
    echo x >>"$0"
    [ "$(wc -l <"$0")" -gt 2 ] || kill -9 $$' "$work/tries"
err_has 'worker 1 was killed by signal 9 .*starting it again \(2 of 2\)'

# Ready to paste.
expect 0 run "${both[@]}" -n 4 --dry-run -- "$work/words" "it's"
[ "$(wc -l <"$work/out")" -eq 4 ] || fail "--dry-run shows not one command a worker"
sed -n 3p "$work/out" >"$work/paste"
[ "$(sh "$work/paste" </dev/null | head -1)" = "2/4 node-b 1" ] ||
    fail "the command of --dry-run does not run"

# mpirun on the same hosts, by the same ssh.
if command -v mpirun >/dev/null; then
    printf '#!/bin/sh\nexec ssh -F %s "$@"\n' "$ssh_f" >"$work/agent"
    chmod +x "$work/agent"
    expect 0 run --launcher mpi --hosts "$net.2:1,$net.3:1" -n 2 --mpi \
        "--mca plm_rsh_agent $work/agent --mca oob_tcp_if_include $net.0/24" -- "$work/words"
    out_has '^\[0\] 0/2 node-a 0$'
    out_has '^\[1\] 1/2 node-b 0$'
fi

# One line each.
one_line() {
    err_is_one_line || {
        fail "not one line"
        show
    }
}
expect 2 run "${by_ssh[@]}" -n 3 --hosts "$net.2:2" -- true
err_has 'have 2 slots for 3 workers'
one_line
expect 2 run "${by_ssh[@]}" -n 3 --hosts "$net.2,$net.2" -- true
err_has "host $net.2 is there twice"
one_line
expect 1 run --job j "${by_ssh[@]}" --hosts no-such-host.invalid -- true
err_has 'host no-such-host.invalid: '
one_line
expect 2 run --launcher ssh -- true
err_has 'needs --hosts'
expect 1 run --job j "${by_ssh[@]}" -n 2 --hosts "$net.2,$net.1" -- true
err_has "host $net.1: .*([Rr]efused|denied|reset)"
begun=$EPOCHREALTIME
expect 1 run --job j "${by_ssh[@]}" -n 2 --hosts "$net.2,$net.9" -- true
err_has "host $net.9: .*([Nn]o route|timed out|unreachable)"
one_line
awk -v a="$begun" -v b="$EPOCHREALTIME" \
    'BEGIN { print "a host without sshd was named in " b - a " s" }'
printf '# hosts\n%s slots=1\n%s:1 # the other\n' "$net.2" "$net.3" >"$work/hostfile"
expect 0 run "${by_ssh[@]}" -n 2 --hostfile "$work/hostfile" -- sh -c 'hostname'
out_has '^\[1\] node-b$'
cli_finish
