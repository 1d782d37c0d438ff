#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How rows are shared out over partitions: those of hash keys by their hash, also
# where the keys are small numbers; a table of which one partition has most is
# warned of, and a small one is not. A table that needs nearly all memory is, too.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
cli_start
cd "$work" || exit 1

rows_of() { # TABLE: rows of each partition, a line each
    "$PSCLI_PROGRAM" table inspect "$1" -o json |
        python3 -c 'import json, sys
for p in json.load(sys.stdin)["table"]["partitions"]:
    print(p["rows_present"])'
}

err_warns_not() {
    if grep -q '^warning' "$work/err"; then
        fail "a warning for nothing"
        show
    fi
}

seq 0 99999 | sed 's/$/ 0:1/' >ids.txt
expect 0 table create t --keys hash
expect 0 push t --from ids.txt
rows_of t >rows
[ "$(wc -l <rows)" -eq 8 ] || fail "t has $(wc -l <rows) partitions, not 8"
while read -r n; do
    if [ "$n" -lt 11875 ] || [ "$n" -gt 13125 ]; then
        fail "a partition has $n of 100,000 rows, not 12,500 within 5 %"
    fi
done <rows
echo "rows of the 8 partitions: $(paste -sd ' ' rows)"
expect 0 table inspect t -o json
out_has '"partition_by":"hash"'
out_has '"warnings":\[\]'

# Who names the ranges gets them, in either order, and is warned.
expect 0 table create ranges --partition-by range --keys hash --partitions 8
expect 0 push ranges --from ids.txt
skew='table "ranges": partition 0 has 100000 of 100000 rows, 8.0 times its share; its keys are not evenly spread over'
expect 0 table inspect ranges -o json
out_has '"partition_by":"range"'
out_has "\"warnings\":\\[\"table"
expect 0 table inspect ranges
err_has "^warning: $skew"
expect 0 cluster status
out_has '^warnings$'
out_has "^  $skew"
out_has ' healthy$'
expect 0 cluster status -o json
out_has '"healthy":true'
expect 0 table inspect t
err_warns_not

# Too small to matter; and one that is not, whose boundaries are.
expect 0 table create small --keys hash --partition-by range --partitions 8
head -n 999 ids.txt >few.txt
expect 0 push small --from few.txt
expect 0 table inspect small
err_warns_not
expect 0 table create list --keys hash --partition-by list:50000,60000,70000
expect 0 push list --from few.txt
expect 0 table inspect list
err_warns_not
expect 0 push list 999=1
expect 0 table inspect list
err_has 'partition 0 has 1000 of 1000 rows, 4.0 times its share; other boundaries'

# Few rows, of which some are wide.
expect 0 table create wide --cols 1000000 --rows 8 --row-format sparse \
    --partitions 8
seq -s ' ' -f '%.0f:1' 0 199999 | sed 's/^/5 /' >wide.txt
expect 0 push wide --from wide.txt
expect 0 table inspect wide
err_has 'table "wide": partition 5 has [0-9]* of [0-9]* bytes, [5-8]\.[0-9] times'

expect 0 plan --rows 1e6 --keys hash --partitions 8 -o json
cp out hash.json
expect 0 plan --rows 1e6 --keys hash --partitions 8 --partition-by hash -o json
cmp -s out hash.json || fail "plan does not plan hash keys by hash"
# A node that may take 64 MiB, and a table that needs nearly all of it.
kill "$psd_pid"
wait "$psd_pid"
rm -rf data
export PSD_LIMITS_MEMORY_BYTES=64MiB
cli_start
expect 0 table create small --rows 1000000
err_warns_not
expect 0 table create large --rows 13000000
err_has '^warning: node ".*": tables need 53.4 MiB of its 64.0 MiB of memory; '
expect 0 cluster status -o json
out_has '"warnings":\["node '

cli_finish
