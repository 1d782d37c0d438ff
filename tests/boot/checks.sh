# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the parts of inside.sh share: how a check is told, and what is asked of
# systemd and of the table "sums". Sourced.

ROWS=1000               # of the table "sums", one column each
SLACK=${PSD_BOOT_SLACK} # a time may be so many times its limit
PUSHES=/root/pushes     # how often each row has had 1 added

# check TEXT COMMAND...: one line; what a failed command said follows.
check() {
    local text=$1 said
    shift
    if said=$("$@" 2>&1); then
        echo "ok $text"
    else
        echo "FAIL $text"
        tail -15 <<<"$said" | sed 's/^/    /'
        return 1
    fi
}

# check_ms TEXT MS LIMIT_MS: the figure is always told.
check_ms() {
    check "$1: $2 ms (limit $3 ms)" test "$2" -le $(($3 * SLACK))
}

# expect WANTED GOT: compares, for check.
expect() {
    [ "$1" = "$2" ] || {
        echo "expected: $1"
        echo "got: $2"
        return 1
    }
}

# matches PATTERN COMMAND...: what it says has the pattern, whatever its status.
matches() {
    local pattern=$1 said
    shift
    said=$("$@" 2>&1)
    grep -qE -- "$pattern" <<<"$said" || {
        echo "no \"$pattern\" in: $said"
        return 1
    }
}

# silent COMMAND...: it succeeds and says nothing.
silent() {
    local said
    if ! said=$("$@" 2>&1) || [ -n "$said" ]; then
        echo "$said"
        return 1
    fi
}

# fails COMMAND...
fails() {
    ! "$@" || {
        echo "succeeded: $*"
        return 1
    }
}

property() {
    systemctl show psd --property "$1" --value
}

# The last start of the unit, from its beginning to "ready", in ms.
start_ms() {
    local from to
    from=$(property InactiveExitTimestampMonotonic)
    to=$(property ActiveEnterTimestampMonotonic)
    echo $(((to - from) / 1000))
}

is_active() {
    [ "$(property ActiveState)" = active ]
}

# active_again BEFORE: waits until the unit has become active after the stamp
# BEFORE. A minute is far beyond every limit; it ends a test that would hang.
active_again() {
    local end=$((SECONDS + 60))
    while [ $SECONDS -lt $end ]; do
        if is_active &&
            [ "$(property ActiveEnterTimestampMonotonic)" -gt "$1" ]; then
            return 0
        fi
        sleep 0.05
    done
    systemctl status psd --no-pager --lines 20
    return 1
}

# Adds 1 to every row, and remembers it once psd has said that it is on disk.
push_all() {
    local n
    n=$(($(cat $PUSHES) + 1))
    seq 0 $((ROWS - 1)) | sed 's/$/ 0:1/' |
        pscli push sums --quiet --from - >/dev/null && echo $n >$PUSHES
}

# Each row has exactly what was pushed to it.
sums_exact() {
    pscli pull sums all -o csv |
        awk -F, -v want="$(cat $PUSHES)" -v rows=$ROWS '
            NR > 1 { n++; if ($2 + 0 != want) wrong = wrong " " $0 }
            END {
                if (n == rows && wrong == "") exit 0
                print n " of " rows " rows, wanted " want ":" \
                    substr(wrong, 1, 300)
                exit 1
            }'
}

# The processes of a user, one a line; there is no pgrep in so small a system.
processes_of() {
    local id directory
    id=$(id -u "$1") || return 1
    for directory in /proc/[0-9]*; do
        if [ "$(stat -c %u "$directory" 2>/dev/null)" = "$id" ]; then
            echo "$directory $(tr '\0' ' ' 2>/dev/null <"$directory/cmdline")"
        fi
    done
}

# What psd and systemd said of the unit in this boot, at a priority.
warnings() {
    journalctl --boot --unit psd --priority warning --quiet --no-pager \
        --output cat "$@"
}

# A cursor for what is said from now on.
journal_cursor() {
    journalctl --boot --lines 0 --quiet --no-pager --show-cursor |
        sed -n 's/^-- cursor: //p'
}
