#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every check that needs no run of the programs: pre-commit hook and CI's first
# step. check_all.sh [--tidy] [--only CHECK] [BUILD]
#   BUILD   a meson build directory with libpsd built; default: build
#   --tidy  also clang-tidy, which takes minutes
#   --only  one check, named as in the output
# Prints "ok CHECK" or "FAIL CHECK" per check, problems in front of it.
set -u
export LC_ALL=C.UTF-8
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
lint=tests/lint

tidy=false
only=
build=build
while [ $# -gt 0 ]; do
    case $1 in
    --tidy) tidy=true ;;
    --only)
        only=${2:?--only wants the name of a check}
        shift
        ;;
    -*)
        echo "check_all.sh: unknown option $1" >&2
        exit 2
        ;;
    *) build=$1 ;;
    esac
    shift
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
n_failed=0

# run CHECK COMMAND...: one check, told in one line.
run() {
    local name=$1
    shift
    if [ -n "$only" ] && [ "$only" != "$name" ]; then
        return
    fi
    if "$@" >"$work/out" 2>&1; then
        cat "$work/out"
        echo "ok $name"
    else
        cat "$work/out"
        echo "FAIL $name"
        n_failed=$((n_failed + 1))
    fi
}

# list KIND: fills files; an empty list would pass every check.
list() {
    mapfile -t files < <(python3 $lint/sources.py "$1")
    if [ ${#files[@]} -eq 0 ]; then
        echo "sources.py finds no files of $1"
        return 1
    fi
}

check_format() {
    local format
    list c || return 1
    format=$(command -v clang-format-14 || echo clang-format)
    "$format" --dry-run --Werror "${files[@]}" 2>"$work/format" && return
    # The files are enough: nobody mends this by hand.
    sed -n 's/^\([^ ]*\):[0-9]*:[0-9]*: error: .*/\1/p' "$work/format" |
        sort -u | sed 's/$/: wants clang-format -i/'
    return 1
}

check_cppcheck() {
    local dirs=()
    local dir
    for dir in lib daemon cli examples; do
        if [ -n "$(find "$dir" -name '*.c' -print -quit 2>/dev/null)" ]; then
            dirs+=("$dir")
        fi
    done
    cppcheck --quiet -j 2 --std=c11 --language=c --inline-suppr \
        --enable=warning,style,performance,portability \
        --suppressions-list=$lint/cppcheck_suppressions.txt \
        -D__GNUC__=12 -D__BYTE_ORDER__=1234 -D__ORDER_LITTLE_ENDIAN__=1234 \
        -D'PSD_RELEASE="0"' -I lib -I lib/include -I . \
        --error-exitcode=1 "${dirs[@]}"
}

check_exports() {
    local library
    for library in libpsd.so libpsd_linalg.so libpsd_server.so; do
        if [ ! -e "$build/lib/$library" ]; then
            echo "no $build/lib/$library: build first, or name the build directory"
            return 1
        fi
        python3 $lint/check_exports.py "$build/lib/$library" || return 1
    done
}

check_shellcheck() {
    list scripts && shellcheck --external-sources "${files[@]}"
}

check_codespell() {
    list prose && codespell --ignore-words=$lint/codespell_words.txt \
        --check-filenames "${files[@]}"
}

check_tidy() {
    local sources=()
    local file
    list c || return 1
    for file in "${files[@]}"; do
        case $file in
        lib/*.c | daemon/*.c | cli/*.c | examples/*.c) sources+=("$file") ;;
        esac
    done
    # One file a run: with several, clang-tidy 14 forgets what va_start does.
    printf '%s\0' "${sources[@]}" | xargs -0 -n 1 -P 2 \
        "$(command -v clang-tidy-14 || echo clang-tidy)" -p "$build" --quiet \
        --warnings-as-errors='*' 2>"$work/tidy"
}

run form python3 $lint/check_form.py
run rooms python3 $lint/check_rooms.py
run types python3 $lint/check_types.py
run calls python3 $lint/check_calls.py
run config python3 $lint/check_config.py
run environment python3 $lint/check_environment.py
run metrics python3 $lint/check_metrics.py
run updaters python3 $lint/check_updaters.py
run trust python3 $lint/check_trust.py
run statuses python3 $lint/check_statuses.py
run errors python3 $lint/check_errors.py
run readme python3 $lint/check_readme.py
run docs python3 $lint/check_docs.py
run format check_format
run exports check_exports
if [ -e "$build/build.ninja" ]; then
    run circles python3 $lint/count_circles.py "$build"
fi
run shellcheck check_shellcheck
run codespell check_codespell
run cppcheck check_cppcheck
if $tidy || [ "$only" = tidy ]; then
    run tidy check_tidy
fi

[ $n_failed -eq 0 ]
