#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checkpoints of what has changed since others: they are small, come back as the
# tables were, need the ones before them, and have all rows where nobody can be
# sure what has changed.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
cli_start
cd "$work" || exit 1
files=$work/data/checkpoints

# same A B ROWS: rows of two tables are the same.
same() {
    expect 0 pull "$1" "$3" -o csv
    cp out first
    expect 0 pull "$2" "$3" -o csv
    cmp -s first out || fail "$2 is not what $1 was"
}

# since NAME TABLE: versions behind which the table's files begin.
since() {
    expect 0 checkpoint inspect "$1" -o csv
    sed 1d out | cut -d, -f1,10 | sort -u | grep "^$2," | cut -d, -f2
}
bytes() {
    expect 0 checkpoint list -o csv
    grep "^$1," out | cut -d, -f5
}

# 1: an array with first values, 2: keys with states, 3: sparse, 4: no versions
expect 0 table create arr --rows 20000 --cols 8 --init normal:0,1 \
    --partitions 3 --versions --ack disk
expect 0 table create keyed --keys hash --cols 4 --partitions 2 \
    --updater adagrad:alpha=0.5 --versions
expect 0 table create thin --keys hash --cols 100 --row-format sparse \
    --partitions 2 --versions
expect 0 table create plain --rows 100 --partitions 2
expect 0 push arr 0=1,2,3,4,5,6,7,8 19999=1,1,1,1,1,1,1,1
expect 0 push keyed 7=1,2,3,4 9000000000=-1,0,1,2
expect 0 push thin 5:3=1 5:99=2 6:0=1
expect 0 push plain 3=1
awk 'BEGIN { for (r = 0; r < 20000; r++) print r, "2:" r }' >deltas
expect 0 push arr --from deltas
expect 0 checkpoint create sun
expect 0 push arr 0=1,1,1,1,1,1,1,1 10000=3,3,3,3,3,3,3,3
expect 0 push keyed 7=1,1,1,1 8=5,5,5,5
expect 0 push thin 5:3=-1 7:50=4
expect 0 push plain 4=1
expect 0 checkpoint create mon --since sun
err_has '2 of 9 partitions were written with all rows'
expect 0 push arr 5000=1,1,1,1,1,1,1,1
expect 0 push thin 5:99=-2
expect 0 checkpoint create tue --since mon --table arr,thin
if since sun 1 | grep -qv '^0$'; then fail "a full one is since something"; fi
if since mon 1 | grep -q '^0$'; then fail "mon has all rows of arr"; fi
if since tue 3 | grep -q '^0$'; then fail "tue has all rows of thin"; fi
[ "$(since mon 4)" = 0 ] || fail "a table without versions is not whole"
[ $(($(bytes tue) * 20)) -lt "$(bytes sun)" ] ||
    fail "tue has $(bytes tue) bytes, sun $(bytes sun)"
expect 0 checkpoint list -o csv
out_has '^tue,whole,partition,2,[0-9]+,mon,[0-9]+$'
expect 0 checkpoint verify tue
expect 0 checkpoint restore tue --table arr --as arr2 --partitions 5
expect 0 checkpoint restore tue --table thin --as thin2 --partitions 3
expect 0 checkpoint restore mon --table keyed --as keyed2 --partitions 1
expect 0 checkpoint restore mon --table plain --as plain2
same arr arr2 0-19999
same keyed keyed2 7,8,9000000000
same thin thin2 5,6,7
same plain plain2 0-99
# A checkpoint of a restored table is one of another table.
expect 0 checkpoint create wed --since tue --table arr2
err_has '5 of 5 partitions'
expect 0 push keyed 7=1,1,1,1 # states came along
expect 0 push keyed2 7=1,1,1,1
same keyed keyed2 7,8,9000000000

# ---- what is needed stays, and must be what it was ----
expect 5 checkpoint create no --since none
err_has 'none'
expect 4 checkpoint drop mon --yes
err_has '"tue"'
expect 4 checkpoint drop sun --yes
mv "$files/mon" mon.away
expect 5 checkpoint verify tue
err_has '"tue" was made since "mon".*does not exist'
expect 5 checkpoint restore tue --table arr --as arr3
err_has '"mon"'
expect 5 table inspect arr3
expect 0 checkpoint create mon --table arr
expect 9 checkpoint restore tue --table arr --as arr3
err_has 'made since another "mon"'
expect 9 checkpoint verify tue
expect 5 table inspect arr3
rm -r "${files:?}/mon"
mv mon.away "$files/mon"
file=$(echo "$files"/mon/snap-1-1-*.rows) # damage in the middle of the chain
printf '\377' | dd of="$file" bs=1 seek=$(($(stat -c %s "$file") / 2)) \
    conv=notrunc status=none
expect 9 checkpoint verify tue
err_has "mon/$(basename "$file")"
expect 0 checkpoint drop wed --yes
# What tue needs cannot be seen just now, so nothing goes that it may need.
mv "$files/tue/manifest.json" tue.json
mkdir "$files/tue/manifest.json"
expect 1 checkpoint drop mon --yes
err_has 'it is not known whether checkpoint "tue" needs "mon"'
rmdir "$files/tue/manifest.json"
mv tue.json "$files/tue/manifest.json"
cp -r "$files/tue" "$files/bad"
echo '{}' >"$files/bad/manifest.json" # damaged for good: it needs nothing
expect 4 checkpoint drop mon --yes
err_has '"tue"'
expect 0 checkpoint drop tue --yes
expect 0 checkpoint drop mon --yes
expect 0 checkpoint drop sun --yes
expect 0 checkpoint drop bad --yes

# ---- versions mean the same behind a restart, if the rows are there still ----
expect 0 push keyed 7=1,1,1,1
expect 0 checkpoint create base --table arr,keyed
kill -9 "$psd_pid"
wait "$psd_pid" 2>/dev/null
rm -f "$work/data/endpoints.json"
cli_start
expect 0 push arr 1=1,1,1,1,1,1,1,1
expect 0 push keyed 8=1,1,1,1
expect 0 push keyed 9=1,1,1,1
expect 0 checkpoint create more --since base --table arr,keyed
if since more 1 | grep -q '^0$'; then
    fail "a table with a log has lost its history"
fi
since more 2 | grep -q '^0$' || fail "rows were lost, and it is since base"
expect 0 checkpoint restore more --table arr --as arr4
expect 0 checkpoint restore more --table keyed --as keyed4
same arr arr4 0-19999
same keyed keyed4 7,8,9
cli_finish
