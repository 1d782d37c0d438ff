#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whose a data directory is: one that is a symbolic link, belongs to somebody
# else, may be written by others or holds other files is refused by name; no link
# below it is followed, and nothing is written where one points.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"

# refused CODE PATTERN DIR: psd ends with that code and says that.
refused() {
    local rc=0
    n_checked=$((n_checked + 1))
    timeout 60 "$PSD_PROGRAM" --data-dir "$3" --listen tcp://127.0.0.1:0 \
        >"$work/refused" 2>&1 </dev/null || rc=$?
    if [ $rc -ne "$1" ] || ! grep -qE -- "$2" "$work/refused"; then
        fail "$3: exit code $rc, not $1, or does not say: $2"
        cat "$work/refused"
    fi
}

# ---- the directory ----
umask 022
mkdir "$work/real" "$work/open" "$work/group" "$work/mine"
ln -s "$work/real" "$work/link"
refused 6 "link is a symbolic link" "$work/link"
refused 6 "link is a symbolic link" "$work/link/"
[ -z "$(ls -A "$work/real")" ] || fail "something was written behind the link"
chmod 777 "$work/open"
refused 6 "open may be written by others \(mode 0777\); run \"chmod go-w " "$work/open"
chmod 770 "$work/group"
refused 6 "group may be written by others \(mode 0770\)" "$work/group"
echo 'my thesis' >"$work/mine/thesis.tex"
refused 6 "mine holds \"thesis.tex\" and no files of psd" "$work/mine"
[ "$(ls -A "$work/mine")" = thesis.tex ] || fail "a foreign directory was changed"
if [ "$(id -u)" -eq 0 ]; then
    mkdir "$work/theirs"
    chown 65534 "$work/theirs"
    refused 6 "theirs belongs to user 65534, and psd runs as user 0" "$work/theirs"
else
    refused 6 "belongs to user 0, and psd runs as user $(id -u)" /usr/share
fi

# ---- links below it ----
cli_start
expect 0 table create w --rows 8 --type i64 --ack disk --partitions 2
expect 0 push w 1=7 -q
kill "$psd_pid"
wait "$psd_pid"
psd_pid=
echo precious >"$work/victim"
mkdir "$work/elsewhere"
for name in lock registry.commits registry.db log-0; do
    cp -a "$work/data" "$work/planted"
    rm -rf "$work/planted/$name"
    if [ $name = log-0 ]; then
        ln -s "$work/elsewhere" "$work/planted/$name"
    else
        ln -s "$work/victim" "$work/planted/$name"
    fi
    refused 6 "planted/$name(/[^ ]*)? is a symbolic link" "$work/planted"
    [ "$(cat "$work/victim")" = precious ] || fail "psd wrote through $name"
    [ -z "$(ls -A "$work/elsewhere")" ] || fail "psd wrote below $name"
    rm -rf "$work/planted"
done

# A link on the way to the directory is the operator's own.
ln -s "$work" "$work/way"
if ! "$PSD_PROGRAM" --data-dir "$work/way/data" --check-config \
    >/dev/null; then
    fail "a link above the directory is refused"
fi
"$PSD_PROGRAM" --data-dir "$work/way/data" --listen tcp://127.0.0.1:0 \
    >"$work/psd.log" 2>&1 &
psd_pid=$!
wait_for test -s "$work/data/endpoints.json" || cat "$work/psd.log"
PSCLI_ENDPOINT=$(sed 's/.*"control":"\([^"]*\)".*/\1/' \
    "$work/data/endpoints.json")
expect 0 pull w 1 -o csv
out_has '^1,7$'
kill "$psd_pid"
wait "$psd_pid"
psd_pid=

# ---- every open says so ----
# -y: also one by a name alone, relative to a directory that is open, has a path.
# What is "resumed" has its flags in the line where it begins.
if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
    strace -f -qq -y -e trace=open,openat,openat2,creat -o "$work/trace" \
        "$PSD_PROGRAM" --data-dir "$work/data" --listen tcp://127.0.0.1:0 \
        >"$work/psd.log" 2>&1 &
    psd_pid=$!
    wait_for test -s "$work/data/endpoints.json" || cat "$work/psd.log"
    PSCLI_ENDPOINT=$(sed 's/.*"control":"\([^"]*\)".*/\1/' \
        "$work/data/endpoints.json")
    expect 0 push w 2=5 -q
    expect 0 checkpoint create c
    pkill -TERM -P "$psd_pid" 2>/dev/null || kill "$psd_pid"
    wait "$psd_pid"
    psd_pid=
    if grep -F "$work/data" "$work/trace" | grep -vE "O_NOFOLLOW|resumed>" |
        grep -vE "\"$work/data(/\.)?/?\"|<$work/data>, \"\.\"" >"$work/followed"; then
        fail "opened without O_NOFOLLOW:"
        head -5 "$work/followed"
    fi
    grep -qF "$work/data" "$work/trace" || fail "strace saw no open"
fi
cli_finish
