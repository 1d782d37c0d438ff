#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Man pages and completions are what the table of commands would make now, every
# flag of psd and all of psd_train.h is in its page, and the scripts parse.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

mkdir "$work/man"
expect 0 help --man "$work/man"
for page in "$work"/man/*.1; do
    if ! cmp -s "$page" "$root/docs/man/${page##*/}"; then
        fail "docs/man/${page##*/} is old: scripts/pscli-pages PSCLI makes it"
    fi
done
for page in "$root"/docs/man/pscli*.1; do
    if [ ! -e "$work/man/${page##*/}" ]; then
        fail "docs/man/${page##*/} is of no command"
    fi
    if ! grep -q "${page##*pscli-}\\|pscli.1\\|'pscli-@0@.1'" \
        "$root/docs/meson.build"; then
        fail "docs/man/${page##*/} is not installed"
    fi
done
for noun in $(cd "$work/man" && ls pscli-*.1); do
    noun=${noun#pscli-}
    if ! grep -q "'${noun%.1}'" "$root/docs/meson.build"; then
        fail "docs/man/pscli-$noun is not installed"
    fi
done
for shell in bash zsh fish; do
    expect 0 completion "$shell"
    if ! cmp -s "$work/out" "$root/cli/completion/pscli.$shell"; then
        fail "cli/completion/pscli.$shell is old: scripts/pscli-pages makes it"
    fi
    if command -v "$shell" >/dev/null && ! "$shell" -n "$work/out"; then
        fail "$shell does not understand its completion"
    fi
done
for flag in $("$PSD_PROGRAM" --help | grep -o -- '--[a-z-]*' | sort -u); do
    if ! sed 's/\\-/-/g' "$root/docs/man/psd.1" | grep -q -- "$flag"; then
        fail "docs/man/psd.1 does not know $flag"
    fi
done
# tells_functions PAGE HEADER...: the page has the functions as the headers declare
# them, in their order.
tells_functions() {
    local page=$1
    shift
    (cd "$root/lib/include" && cat "$@") | grep -v '^#' | tr '\n' ' ' |
        grep -o 'PSD_EXPORT [^;]*;' |
        sed 's/PSD_EXPORT //; s/PSD_MUST_CHECK //; s/ *PSD_PRINTF([^)]*)//
             s/  */ /g; s/\* /*/g; s/( /(/' >"$work/declared"
    sed -n 's/^\.BI //p' "$root/docs/man/$page" |
        sed 's/"//g; s/( /(/; s/ );/);/' >"$work/in_page"
    if ! diff "$work/declared" "$work/in_page" >"$work/differ"; then
        fail "docs/man/$page is not what $* declare:" "$(cat "$work/differ")"
    fi
}
tells_functions psd.3 psd/status.h psd/client.h psd/trace.h psd/table.h psd/rows.h \
    psd/ops.h psd/job.h psd/checkpoint.h
# psd_train(3) has the options and counts that there are, too.
tells_functions psd_train.3 psd_train.h
tells_functions psd_server.3 psd_server.h
page=$root/docs/man/psd_train.3
for word in $(sed -n 's/.*{"\([a-z-]*\)", offsetof.*/\1/p;
                      s/.*strcmp(key, "\([a-z-]*\)").*/\1/p' \
    "$root/lib/train/setup/options.c") \
    $(sed -n 's/.*{"\([a-z-]*\)", &counts->.*/\1/p' "$root/lib/train/feed.c"); do
    if ! grep '^\.B ' "$page" | sed 's/\\-/-/g' | grep -qw -- "$word"; then
        fail "docs/man/psd_train.3 does not know $word"
    fi
done
if command -v man >/dev/null; then
    for page in "$root"/docs/man/*.[13]; do
        words=$(man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)
        if [ -n "$words" ]; then
            fail "${page##*/}: $words"
        fi
    done
fi

# bash: what is offered behind what was typed.
expect 0 completion bash
# shellcheck source=/dev/null
. "$work/out"
offers() {
    local want=$1
    shift
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    COMPREPLY=()
    _pscli
    if [ "${COMPREPLY[*]}" != "$want" ]; then
        fail "completion of \"$*\" is \"${COMPREPLY[*]}\", not \"$want\""
    fi
}
offers table pscli ta
offers "create list inspect drop ack set diff export import" pscli table ""
offers --type pscli table create --ty
offers "i32 i64 f32 f64" pscli table create --type ""
offers "json jsonl" pscli -o json
offers "list" pscli -o json table li
offers "bash zsh fish" pscli completion ""
offers table pscli help ta
cli_finish
