#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The packages in a Debian 12 that systemd has booted; what scripts/test boot
# runs. As root: tests/boot/boot.sh BUILDS
#   --may   only whether one may be booted here
#   BUILDS  a directory for the packages, and for a tarball of the root that is
#           made once (network is needed for that, and only for that)
# In the environment:
#   PSD_BOOT_STRICT=1  times are held to their limits; otherwise, on a machine
#                      that others use, to three times as much
#   PSD_BOOT_SHIPPED=1 each thread is also stopped for 45 s under the watchdog
#                      that the unit comes with; 10 minutes more
#   PSD_BOOT_UNIT      a file that takes the place of psd.service
#   PSD_BOOT_MIRROR    where Debian is; http://deb.debian.org/debian
# Prints "ok …" and "FAIL …", and in the end "N passed, N failed". Exit status 77,
# and why: no container can be booted here, as within most others. All runs in
# namespaces of its own: when it ends, however that is, its processes and mounts
# are gone.
set -euo pipefail
export LC_ALL=C.UTF-8
umask 022

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ $# -ne 1 ] || [ "$(id -u)" -ne 0 ]; then
    echo "usage, as root: tests/boot/boot.sh BUILDS | --may" >&2
    exit 2
fi

# may_boot: what systemd-nspawn and debootstrap do is allowed.
may_boot() {
    local group
    if ! unshare --mount --propagation private --pid --fork --mount-proc \
        sh -c 'mount -t tmpfs tmpfs /mnt && mknod /mnt/null c 1 3'; then
        echo "mounts and devices are forbidden here"
        return 1
    fi
    for group in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/systemd
    do
        if [ -e "$group/cgroup.procs" ] && mkdir "$group/psd-boot-may"; then
            rmdir "$group/psd-boot-may"
            return 0
        fi
    done 2>/dev/null
    echo "no control group can be made here"
    return 1
}
may_boot || exit 77
if [ "$1" = --may ]; then
    echo "a container may be booted here"
    exit 0
fi

mkdir -p "$1/boot"
boot=$(cd "$1/boot" && pwd)
mirror=${PSD_BOOT_MIRROR:-http://deb.debian.org/debian}
work=$boot/work
cgroup=psd-boot-$$

# One at a time in one place; what a killed one has left is removed.
exec 8>"$boot/lock"
if ! flock --nonblock 8; then
    echo "tests/boot/boot.sh: another one runs in $boot" >&2
    exit 1
fi

clean_up() {
    local directory
    if [ -n "${child:-}" ]; then
        kill -KILL "$child" 2>/dev/null || :
        wait "$child" 2>/dev/null || :
    fi
    rm -rf --one-file-system "$work"
    # Groups of this run, and of one before that was killed. Processes take a
    # moment to die.
    for directory in /sys/fs/cgroup/psd-boot-* /sys/fs/cgroup/*/psd-boot-*; do
        for _ in 1 2 3 4 5 6 7 8 9 10; do
            [ -d "$directory" ] || break
            find "$directory" -depth -type d -exec rmdir {} + 2>/dev/null ||
                sleep 0.2
        done
    done
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM
clean_up
mkdir -p "$work/first" "$work/second" "$work/root"

"$here/../../scripts/packages" --if-changed "$boot/packages" >"$work/said" || {
    cat "$work/said"
    exit 1
}
cp "$boot"/packages/*.deb "$work/first"

# repack DEB VERSION INTO: the same package as another version.
repack() {
    local files=$work/repack name old
    rm -rf "$files"
    dpkg-deb --raw-extract "$1" "$files"
    name=$(dpkg-deb --field "$1" Package)
    old=$(dpkg-deb --field "$1" Version)
    sed -i -E "s/^Version: .*/Version: $2/; s/\(= ${old//./\\.}\)/(= $2)/g" \
        "$files/DEBIAN/control"
    if [ "$name" = psd ] && [ -n "${PSD_BOOT_UNIT:-}" ]; then
        cp "$PSD_BOOT_UNIT" "$files/lib/systemd/system/psd.service"
    fi
    {
        printf 'psd (%s) unstable; urgency=medium\n\n  * Packed again.\n\n' "$2"
        printf ' -- psd maintainers <maintainers@psd.example>  %s\n\n' \
            "$(date -R)"
        zcat "$files/usr/share/doc/$name/changelog.gz"
    } | gzip -9n >"$work/changelog.gz"
    mv "$work/changelog.gz" "$files/usr/share/doc/$name/changelog.gz"
    (cd "$files" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' |
        xargs -0 md5sum >DEBIAN/md5sums)
    dpkg-deb --root-owner-group -Zgzip -z1 --build "$files" \
        "$3/${name}_$2.deb" >/dev/null
    rm -rf "$files"
}

version=$(dpkg-deb --field "$boot"/packages/psd_*.deb Version)
for deb in "$boot"/packages/*.deb; do
    repack "$deb" "$version+2" "$work/second"
done
if [ -n "${PSD_BOOT_UNIT:-}" ]; then
    rm "$work"/first/*.deb
    for deb in "$boot"/packages/*.deb; do
        repack "$deb" "$version" "$work/first"
    done
fi

# isolated COMMAND...: in mount and pid namespaces of its own, in the
# background; its end, and ours, is that of all of its processes.
isolated() {
    unshare --mount --propagation private --pid --fork --kill-child=KILL \
        --mount-proc "$@" &
    child=$!
}

# make_room DIRECTORY: in memory where there is enough: a disk that others use
# stands still for seconds now and then, and dpkg flushes every file. Else in
# place, where devices and programs may be forbidden.
make_room() {
    if [ "$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo)" -ge 4194304 ]
    then
        mount -t tmpfs -o size=2g,mode=755 tmpfs "$1"
    else
        mount --bind "$1" "$1" && mount -o remount,bind,dev,exec,suid "$1"
    fi
}
export -f make_room

# The root, with what apt will want, in a tarball that is kept until packages
# depend on something else.
make_root() {
    local root=$work/root
    make_room "$root" || return
    debootstrap --variant=minbase \
        --include=systemd,systemd-sysv,dbus,init-system-helpers \
        bookworm "$root" "$mirror" || return
    # No service is to start while it is only a directory.
    mkdir "$root/root/first"
    cp "$boot"/packages/*.deb "$root/root/first"
    chroot "$root" sh -c 'apt-get clean &&
        apt-get --yes --download-only install /root/first/*.deb' || return
    rm -r "$root/root/first"
    : >"$root/etc/resolv.conf"
    rm -f "$root/etc/machine-id" "$root/etc/hostname"
    tar -C "$root" --one-file-system --numeric-owner --exclude=./dev/* \
        --exclude=./proc/* --exclude=./sys/* -cf "$work/root.tar" .
}

wants=$({
    sed -n '/^make_root/,/^}/p' "$here/boot.sh"
    for deb in "$boot"/packages/*.deb; do
        dpkg-deb --field "$deb" Depends Recommends | sed "s/ (= [^)]*)//g"
    done
} | sha256sum | cut -c1-16)
if [ ! -s "$boot/root-$wants.tar" ]; then
    rm -f "$boot"/root-*.tar
    export -f make_root
    export work boot mirror
    isolated bash -c make_root >"$boot/root.log" 2>&1
    wait "$child" || {
        tail -20 "$boot/root.log"
        echo "no Debian root could be made; see $boot/root.log"
        exit 1
    }
    child=
    rm -rf --one-file-system "$work/root"
    mkdir "$work/root"
    mv "$work/root.tar" "$boot/root-$wants.tar"
fi

gcc -std=c11 -D_GNU_SOURCE -static -I"$here/.." -o "$work/thread_stop" \
    "$here/../support/thread_stop.c"

slack=3
[ "${PSD_BOOT_STRICT:-}" != 1 ] || slack=1
export PSD_BOOT_SLACK=$slack PSD_BOOT_SHIPPED=${PSD_BOOT_SHIPPED:-}
isolated bash "$here/container.sh" "$work" "$boot/root-$wants.tar" "$cgroup" \
    >"$work/out" 2>&1
# Signals end a wait, but not a program in the foreground.
tail --pid=$child -n +1 -f "$work/out" &
shown=$!
wait "$child" || echo "FAIL container.sh ended with $?" >>"$work/out"
child=
wait $shown
if lintian --allow-root --fail-on error,warning "$boot"/packages/*.changes \
    >"$work/lintian" 2>&1; then
    said="ok lintian"
else
    said=$(cat "$work/lintian" && echo "FAIL lintian")
fi
echo "$said" | tee -a "$work/out"
cp "$work/out" "$boot/boot.log"
n_passed=$(grep -c '^ok ' "$work/out" || :)
n_failed=$(grep -c '^FAIL ' "$work/out" || :)
echo "$n_passed passed, $n_failed failed"
[ "$n_failed" -eq 0 ] && [ "$n_passed" -gt 0 ]
