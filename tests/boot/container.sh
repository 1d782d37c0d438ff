#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Boots the root in a container and runs the parts of inside.sh in it. Runs in
# mount and pid namespaces of its own (see boot.sh, which makes them), so that
# nothing here is cleaned up by hand: container.sh WORK TARBALL CGROUP
set -u
export LC_ALL=C.UTF-8

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$1
tarball=$2
cgroup=$3
root=$work/root

make_room "$root" # boot.sh's
tar -C "$root" --numeric-owner -xf "$tarball"
mkdir -p "$root/root/boot"
cp -r "$work/first" "$work/second" "$root/root"
cp "$here/checks.sh" "$here/inside.sh" "$here/threads.sh" \
    "$work/thread_stop" "$root/root/boot"
# nspawn keeps locks there.
mount -t tmpfs tmpfs /run

# join_group: a control group of ours for the container, so that two containers
# do not meet in the one we are in. Of version 2, and of 1 where systemd's own
# hierarchy is all that it wants.
join_group() {
    local parent
    for parent in /sys/fs/cgroup /sys/fs/cgroup/unified \
        /sys/fs/cgroup/systemd; do
        if [ -w "$parent/cgroup.procs" ] && mkdir -p "$parent/$cgroup"; then
            echo "$BASHPID" >"$parent/$cgroup/cgroup.procs" || return
        fi
    done
}

spawned=
init=

# Boots it; init is the id of its first process then.
start() {
    local i
    (
        join_group && exec systemd-nspawn --quiet --boot --register=no \
            --keep-unit --private-network --machine="$cgroup" \
            --directory="$root" --console=pipe </dev/null >>"$work/console" 2>&1
    ) &
    spawned=$!
    for ((i = 0; i < 1200; i++)); do
        init=$(cat "/proc/$spawned/task/$spawned/children" 2>/dev/null)
        init=${init%% *}
        # "degraded" is a container's fault, not ours.
        case $([ -z "$init" ] || inside systemctl is-system-running \
            2>/dev/null) in
        running | degraded) return 0 ;;
        esac
        [ -d "/proc/$spawned" ] || break
        sleep 0.1
    done
    tail -20 "$work/console"
    echo "FAIL the container boots"
    return 1
}

# inside COMMAND...
inside() {
    nsenter --target "$init" --mount --uts --ipc --net --pid --cgroup \
        --root --wd env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
        LC_ALL=C.UTF-8 PSD_BOOT_SLACK="$PSD_BOOT_SLACK" \
        PSD_BOOT_SHIPPED="$PSD_BOOT_SHIPPED" "$@"
}

# part NAME: fails when the rest makes no sense.
part() {
    local start=$SECONDS end
    inside bash /root/boot/inside.sh "$1" >"$work/part" 2>&1
    end=$(grep "^done $1 " "$work/part")
    grep -v '^done ' "$work/part"
    [ -n "$end" ] || echo "FAIL part $1 did not end"
    echo "-- $1: $((SECONDS - start)) s"
    [ -n "$end" ] && [ "$end" != "done $1 3" ]
}

start || exit 0
echo "ok the container boots"
part fresh && part starts && part kills && part reload && part format &&
    part groups && part threads ||
    exit 0
part before_reboot
inside systemctl reboot
# nspawn says by this status that the system wants to be booted again.
wait "$spawned"
status=$?
if [ $status -eq 133 ]; then
    echo "ok the container reboots"
else
    echo "FAIL the container reboots: status $status"
fi
start || exit 0
part after_reboot && part upgrade && part removal && part purge
inside systemctl poweroff
wait "$spawned"
