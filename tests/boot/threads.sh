#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Stops every thread of the unit psd, one after the other, and looks whether
# `pscli cluster status` names it and systemd starts psd again.
#   threads.sh STOPPER SECONDS [WITHIN_MS]
#   STOPPER    tests/support/thread_stop
#   SECONDS    for so long each is stopped; more than what the unit's watchdog
#              takes (WatchdogSec and a quarter of it, and a start)
#   WITHIN_MS  pscli answers; 1000
# As root, where that systemd is. Prints "ok …" and "FAIL …", then "N of N
# threads".
set -u
export LC_ALL=C.UTF-8
stopper=$1
seconds=$2
within_ms=${3:-1000}

main_pid() {
    systemctl show psd --property MainPID --value
}

now_ms() {
    echo $(($(date +%s%N) / 1000000))
}

# wait_healthy: a psd is there that says so.
wait_healthy() {
    for _ in {1..600}; do
        pscli cluster status >/dev/null 2>&1 && return 0
        sleep 0.05
    done
    echo "FAIL psd is not healthy"
    return 1
}

# The name that psd gives a thread; the first one has the program's.
name_of() {
    if [ "$2" = "$1" ]; then
        echo control
    else
        cat "/proc/$1/task/$2/comm"
    fi
}

# check_named NAME: the best of three answers counts, as others use the machine.
check_named() {
    local began said code took best=
    for _ in 1 2 3; do
        began=$(now_ms)
        said=$(pscli cluster status 2>&1)
        code=$?
        took=$(($(now_ms) - began))
        if [ $code -ne 1 ] || ! grep -q "thread $1 has not turned" <<<"$said"; then
            echo "FAIL thread $1: exit code $code after $took ms: $said"
            return 1
        fi
        [ -n "$best" ] && [ "$best" -le $took ] || best=$took
        [ "$best" -gt "$within_ms" ] || break
    done
    if [ "$best" -gt "$within_ms" ]; then
        echo "FAIL thread $1: named after $best ms"
        return 1
    fi
    echo "ok thread $1 is named after $best ms"
}

# is_new PID: another psd than that runs.
is_new() {
    local now
    now=$(main_pid)
    [ "$now" != "$1" ] && [ "$now" -gt 0 ] && systemctl is-active --quiet psd
}

# stop_one NUMBER: the thread at that place among those of the psd that runs.
stop_one() {
    local pid tid name holder since failed=0
    pid=$(main_pid)
    tid=$(find "/proc/$pid/task" -mindepth 1 -maxdepth 1 -printf '%f\n' |
        sort -n | sed -n "$1p")
    name=$(name_of "$pid" "$tid")
    exec 7< <(exec "$stopper" "$tid" "$seconds")
    holder=$!
    read -r -u 7 said
    if [ "$said" != stopped ]; then
        echo "FAIL thread $name cannot be stopped"
        return 1
    fi
    since=$(now_ms)
    check_named "$name" || failed=1
    # The stopper ends when the thread is gone; the unit starts a little later.
    wait $holder
    until is_new "$pid" || [ "$(now_ms)" -ge $((since + seconds * 1000)) ]; do
        sleep 0.05
    done
    if ! is_new "$pid"; then
        echo "FAIL thread $name: psd was not started again in $seconds s"
        failed=1
    else
        echo "ok thread $name: started again"
    fi
    wait_healthy && return $failed
}

wait_healthy || exit 1
n=$(find "/proc/$(main_pid)/task" -mindepth 1 -maxdepth 1 | wc -l)
n_done=0
for ((i = 1; i <= n; i++)); do
    stop_one "$i" && n_done=$((n_done + 1))
done
echo "$n_done of $n threads"
[ "$n_done" -eq "$n" ]
