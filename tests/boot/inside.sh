#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs as root in the booted container: inside.sh PART. Packages lie in
# /root/first and, with a later version, in /root/second. Each check is a line
# "ok …" or "FAIL …"; "done PART" says that none was left out.
set -u
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
# shellcheck source=tests/boot/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

install_packages() {
    apt-get --quiet --yes install "$1"/*.deb
}

installed_version() {
    dpkg-query --show --showformat '${Version}\n' \
        psd pscli libpsd0 libpsd-linalg0 libpsd-server0 libpsd-dev | sort -u
}

only_loopback() {
    expect lo "$(ls /sys/class/net)"
}

ports_are_local() {
    # Listening ports (0A) of any address but 127.0.0.0/8.
    # shellcheck disable=SC2016 # awk's own
    silent awk '$4 == "0A" && $2 !~ /7F:/' /proc/net/tcp
}

no_library_missing() {
    local file
    for file in /usr/bin/psd /usr/bin/pscli /usr/lib/*/libpsd*.so.0; do
        fails grep 'not found' <(ldd "$file") || return 1
    done
}

loads_no_algebra() {
    matches libzmq ldd /usr/lib/*/libpsd.so.0 || return 1
    fails grep -E 'graphblas|openblas|blas' <(ldd /usr/lib/*/libpsd.so.0)
}

# libraft is in backports only: the program has it in itself.
has_raft_inside() {
    fails grep -E 'libraft|libuv' <(ldd /usr/bin/psd) || return 1
    # shellcheck disable=SC2016 # dpkg-query's own variable
    matches '^raft \(= 0\.22\.' dpkg-query --show \
        --showformat '${Static-Built-Using}' psd
}

sources_are_main() {
    matches '/debian bookworm/main ' apt-cache policy || return 1
    fails grep backports <(apt-cache policy)
}

documentation_is_there() {
    local url path
    # systemd puts some of them into quotes.
    for url in $(property Documentation | tr -d \"); do
        path=
        case $url in
        man:*'(1)') path=${url#man:} && path=/usr/share/man/man1/${path%(1)}.1.gz ;;
        file://*) path=${url#file://} ;;
        esac
        [ -s "$path" ] || {
            echo "$url: no $path"
            return 1
        }
    done
}

part_fresh() {
    local version
    version=$(dpkg-deb --field /root/first/psd_*.deb Version)
    check "the container has no network" only_loopback
    check "apt installs the packages" install_packages /root/first || return 3
    check "all five have version $version" expect "$version" \
        "$(installed_version)"
    check "dpkg finds nothing half done" silent dpkg --audit
    check "the unit is enabled" expect enabled "$(systemctl is-enabled psd)"
    check "the unit is active" active_again 0 || return 3
    check_ms "active after the installation" "$(start_ms)" 2000
    check "it waited for no network" expect inactive \
        "$(systemctl is-active network-online.target \
            systemd-networkd-wait-online.service | sort -u)"
    check "it has not been restarted" expect 0 "$(property NRestarts)"
    check "its status says where it serves" matches '^serving on tcp://127' \
        property StatusText
    check "it runs as user and group psd" expect "psd psd" \
        "$(stat -c '%U %G' "/proc/$(property MainPID)")"
    check "nobody logs in as psd" matches ':/usr/sbin/nologin$' \
        getent passwd psd
    check "/var/lib/psd is psd's alone" expect "700 psd psd" \
        "$(stat -c '%a %U %G' /var/lib/psd)"
    check "/run/psd is for group psd" expect "750 psd psd" \
        "$(stat -c '%a %U %G' /run/psd)"
    check "no file of it is for others" silent \
        find /var/lib/psd ! -type s -perm /077
    check "a clean start warns of nothing" silent warnings
    check "exposure is 1.5 at most" systemd-analyze security psd \
        --threshold=15 --no-pager
    check "what Documentation= names is there" documentation_is_there
    check "the configuration is right" psd --config /etc/psd/psd.yaml \
        --check-config
    check "no library is missing" no_library_missing
    check "psd has libraft in itself, and no libuv" has_raft_inside
    check "apt has had Debian's main only, no backports" sources_are_main
    check "libpsd loads neither GraphBLAS nor OpenBLAS" loads_no_algebra
    check "completions for bash, zsh and fish are there" \
        test -s /usr/share/bash-completion/completions/pscli -a \
        -s /usr/share/zsh/vendor-completions/_pscli -a \
        -s /usr/share/fish/vendor_completions.d/pscli.fish
    check "nothing listens beyond loopback" ports_are_local
    check "the cluster is healthy" pscli cluster status
    pscli table create sums --rows $ROWS --cols 1 --ack disk --quiet >/dev/null
    echo 0 >$PUSHES
    check "a push to a table on disk is answered" push_all
    check "its sums are exact" sums_exact
}

part_starts() {
    local i ms n_good=0 slowest=0
    for ((i = 0; i < 20; i++)); do
        if ! systemctl stop psd || ! systemctl start psd || ! is_active; then
            break
        fi
        ms=$(start_ms)
        slowest=$((ms > slowest ? ms : slowest))
        n_good=$((n_good + 1))
    done
    check "20 of 20 starts" expect 20 $n_good
    check_ms "the slowest of 20 starts" $slowest 2000
    check "no start and no stop warns of anything" silent warnings
    check "the sums are exact after 20 starts" sums_exact
    systemctl stop psd
    check "a stop leaves no process" silent processes_of psd
    check "a stop leaves no /run/psd" test ! -e /run/psd
    systemctl start psd
}

part_kills() {
    local i before left again ms n_served=0 n_exact=0 slowest=0
    before=$(property NRestarts)
    for ((i = 0; i < 20; i++)); do
        push_all || break
        again=$(property ActiveEnterTimestampMonotonic)
        kill -KILL "$(property MainPID)"
        active_again "$again" || break
        left=$(property ActiveExitTimestampMonotonic)
        again=$(property ActiveEnterTimestampMonotonic)
        ms=$(((again - left) / 1000))
        slowest=$((ms > slowest ? ms : slowest))
        n_served=$((n_served + 1))
        sums_exact && n_exact=$((n_exact + 1))
    done
    check "20 of 20 kill -9 are served again" expect 20 $n_served
    check_ms "the slowest of 20 after kill -9" $slowest 3000
    check "20 of 20 have exact sums" expect 20 $n_exact
    check "each kill is one restart" expect $((before + 20)) \
        "$(property NRestarts)"
    check "the cluster is healthy after the kills" pscli cluster status
}

part_reload() {
    local pid cursor config=/etc/psd/psd.yaml
    pid=$(property MainPID)
    cp -p $config /root/good.yaml
    printf 'log:\n  level: debug\n' >>$config
    check "a reload with a good file succeeds" systemctl reload psd
    check "psd says that it has reloaded" matches 'reloaded' \
        journalctl --boot --unit psd --no-pager --output cat --lines 20
    printf 'nonsense: 1\n' >>$config
    cursor=$(journal_cursor)
    check "a reload with a bad file fails" fails systemctl reload psd
    check "the journal names file, line and key" \
        matches "$config:[0-9]+:.*nonsense" journalctl --unit psd --no-pager \
        --output cat --after-cursor "$cursor"
    check "psd took nothing from it" fails matches '^reloaded' journalctl \
        --unit psd --no-pager --output cat --after-cursor "$cursor"
    check "it is the same process" expect "$pid" "$(property MainPID)"
    check "it is active" is_active
    check "the sums are exact after the reloads" sums_exact
    check "a start with a bad file fails" fails systemctl restart psd
    check "it is not tried again" expect "failed 0 2" \
        "$(property ActiveState) $(property NRestarts) \
$(property ExecMainStatus)"
    cp -p /root/good.yaml $config
    check "it starts with the good file" systemctl start psd
    check "the sums are exact after that" sums_exact
}

socket_modes() {
    stat -c '%a %U %G' /run/psd/*.ipc /run/psd/*.lane | sort -u
}

by_lane() {
    timeout 60 runuser -u "$1" -- \
        pscli bench latency --requests 100 --transport lane
}

part_groups() {
    useradd --groups psd member
    useradd stranger
    check "sockets are open to group psd, whatever the umask" \
        expect "660 psd psd" "$(socket_modes)"
    check "none is in /var/lib/psd" silent find /var/lib/psd -type s
    check "endpoints.json in /run/psd names them" \
        grep -q 'ipc:///run/psd/' /run/psd/endpoints.json
    check "a member of group psd gets the lane" by_lane member
    check "another user does not" fails by_lane stranger
    check "the refusal names the group" matches 'group "psd"' by_lane stranger
    check "a member sees the cluster" runuser -u member -- pscli cluster status
    check "another user comes by tcp" \
        runuser -u stranger -- pscli cluster status
    check "one that is refused leaves no table" expect sums \
        "$(pscli table list -o name)"
}

# Each thread stands still for longer than the watchdog waits.
part_threads() {
    local drop_in=/run/systemd/system/psd.service.d
    mkdir -p $drop_in
    printf '[Service]\nWatchdogSec=6s\n' >$drop_in/watchdog.conf
    systemctl daemon-reload
    systemctl restart psd
    bash /root/boot/threads.sh /root/boot/thread_stop \
        $((9 * PSD_BOOT_SLACK)) $((1000 * PSD_BOOT_SLACK))
    rm -r $drop_in
    systemctl daemon-reload
    systemctl restart psd
    if [ "$PSD_BOOT_SHIPPED" = 1 ]; then
        echo "-- under WatchdogSec=$(property WatchdogUSec)"
        bash /root/boot/threads.sh /root/boot/thread_stop 45 \
            $((1000 * PSD_BOOT_SLACK))
    fi
    check "the sums are exact after each thread stood still" sums_exact
}

# A data directory of another psd: people have to look, so it is not tried again.
part_format() {
    local cursor note=/var/lib/psd/format
    systemctl stop psd
    cp -p $note /root/format
    echo 'psd data format 9' >$note
    cursor=$(journal_cursor)
    check "a start with data of another format fails" fails \
        systemctl start psd
    check "the journal has both numbers and what to do" matches \
        'has data format 9, .* reads and writes [0-9]+; start the psd that' \
        journalctl --unit psd --no-pager --output cat --after-cursor "$cursor"
    check "it is not tried again with that" expect "failed 0 6" \
        "$(property ActiveState) $(property NRestarts) \
$(property ExecMainStatus)"
    cp -p /root/format $note
    check "it starts with data of its own format" systemctl start psd
    check "the sums are exact after that start" sums_exact
}

part_before_reboot() {
    push_all
    check "the sums are exact before the reboot" sums_exact
}

part_after_reboot() {
    check "the unit is active after a reboot" active_again 0 || return 3
    check_ms "active after the reboot" "$(start_ms)" 2000
    check "it has not been restarted after the reboot" expect 0 \
        "$(property NRestarts)"
    check "the reboot warns of nothing" silent warnings
    check "/run/psd is there again" expect "750 psd psd" \
        "$(stat -c '%a %U %G' /run/psd)"
    check "the sums are exact after the reboot" sums_exact
}

part_upgrade() {
    local pid version cursor
    pid=$(property MainPID)
    version=$(dpkg-deb --field /root/second/psd_*.deb Version)
    echo '# a line of the operator' >>/etc/psd/psd.yaml
    push_all
    cursor=$(journal_cursor)
    check "apt installs the second version" install_packages /root/second
    check "all five have version $version now" expect "$version" \
        "$(installed_version)"
    check "it is active after the upgrade" active_again 0
    check "it is another process" fails expect "$pid" "$(property MainPID)"
    check "the upgrade is one restart" expect 1 "$(journalctl --unit psd \
        --after-cursor "$cursor" --no-pager --output cat |
        grep -c '^Started psd')"
    check "the program runs that is on the disk" fails matches deleted \
        readlink "/proc/$(property MainPID)/exe"
    check "the sums are exact after the upgrade" sums_exact
    check "the operator's configuration is kept" \
        grep -q '^# a line of the operator' /etc/psd/psd.yaml
}

part_removal() {
    check "apt removes psd" apt-get --quiet --yes remove psd
    check "the removal stops it" fails systemctl --quiet is-active psd
    check "no process is left" silent processes_of psd
    check "the unit is gone" expect not-found "$(property LoadState)"
    check "a removal keeps the configuration" test -s /etc/psd/psd.yaml
    check "a removal keeps the data" test -s /var/lib/psd/registry.db
    check "apt installs psd again" install_packages /root/second
    check "it is active after that" active_again 0
    check "the sums are exact after removal and installation" sums_exact
}

part_purge() {
    local said=/root/purge.said
    check "apt purges psd" eval "apt-get --quiet --yes purge psd >$said 2>&1"
    check "the purge says that the data is kept" \
        grep -q 'the data in /var/lib/psd is kept' $said
    check "the data is kept" test -s /var/lib/psd/registry.db
    check "the configuration is gone" test ! -e /etc/psd/psd.yaml
    check "nothing starts at boot" test ! -e \
        /etc/systemd/system/multi-user.target.wants/psd.service
    check "apt installs psd after the purge" install_packages /root/second
    check "it is enabled again" expect enabled "$(systemctl is-enabled psd)"
    check "it is active after the purge" active_again 0
    check "the sums are exact after the purge" sums_exact
}

# 3: what follows makes no sense any more.
"part_$1"
status=$?
if [ "$status" -eq 3 ]; then
    echo "    the end of psd's journal:"
    journalctl --unit psd --no-pager --lines 20 | sed 's/^/    /'
fi
echo "done $1 $status"
