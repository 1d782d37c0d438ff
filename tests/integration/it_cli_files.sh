#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Values to files and back, bit by bit, and files that are wrong.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
cli_start
cd "$work" || exit 1

# Two tables of the same spec: what is exported from the first is imported into
# the second, which has other values already, and exported again.
round_trip() {
    local name=$1 ending
    shift
    for ending in "$@"; do
        expect 0 table export "$name" --to "$name.$ending"
        expect 0 table import "$name-copy" --from "$name.$ending"
        expect 0 table export "$name-copy" --to "copy.$ending"
        if ! cmp -s "$name.$ending" "copy.$ending"; then
            fail "$name: $ending comes back with other bytes"
        fi
    done
}

for type in f32 f64; do
    for copy in "" -copy; do
        expect 0 table create "$type$copy" --rows 5000 --cols 3 --type $type \
            --init normal:0,1 --seed "$((${#copy} + 1))" --updater add
    done
    expect 0 push "$type" 7=0.1,1e-30,-3e30 8:1=16777217
    expect 0 push "$type-copy" 7=5,1e20,0.3
    round_trip "$type" npy csv txt
done
for type in i32 i64; do
    for copy in "" -copy; do
        expect 0 table create "$type$copy" --rows 100 --cols 2 --type $type
    done
done
expect 0 push i64 0=9223372036854775807,-9223372036854775808 9:1=-1
expect 0 push i64-copy 0=1,1 5=7,-7
expect 0 push i32 0=2147483647,-2147483648
expect 0 push i32-copy 0=5,-5
round_trip i64 npy csv txt
round_trip i32 npy csv txt
for copy in "" -copy; do
    expect 0 table create "set$copy" --rows 10 --updater assign
    expect 0 table create "hash$copy" --keys hash --cols 2
    expect 0 table create "sparse$copy" --keys hash --cols 1000000 \
        --row-format sparse --type i64
done
expect 0 push set 3=1.5
round_trip set npy csv txt
expect 0 push hash 18446744073709551615=1,0.1 0=2,3 77=-1,-2
round_trip hash csv txt
expect 0 push sparse 18446744073709551615:999999=-5 4:1=2 4:0=1
round_trip sparse csv txt

expect 0 pull hash all -o json
out_is '{"schema_version":1,"table":"hash","rows":[{"row":0,"values":[2.0,3.0]},{"row":77,"values":[-1.0,-2.0]},{"row":18446744073709551615,"values":[1.0,0.1]}]}'
expect 0 pull sparse 4,18446744073709551615 -o json
out_is '{"schema_version":1,"table":"sparse","rows":[{"row":4,"cols":[0,1],"values":[1,2]},{"row":18446744073709551615,"cols":[999999],"values":[-5]}]}'
expect 0 pull i64 0 -o json
out_is '{"schema_version":1,"table":"i64","rows":[{"row":0,"values":[9223372036854775807,-9223372036854775808]}]}'
expect 0 push set 1=1 2=2 3=3 -o json
out_is '{"schema_version":1,"table":"set","rows":3,"ack":"memory"}'

# Hash tables with wide rows: more values than a u64 counts in a whole range, and
# rows that are present in one of their column slices only.
expect 0 table create emb --keys hash --cols 64
expect 0 push emb 18446744073709551615:63=1 5:0=2
expect 0 pull emb all --cols 0,63 -o csv
out_is 'row,0,63
5,2,0
18446744073709551615,0,1'
expect 0 table create slices --keys hash --cols 6000000 --partition-by hash
expect 0 push slices 3:0=1 7:5999999=2 11:3000000=3
expect 0 pull slices all --cols 0,3000000,5999999 -o csv
out_is 'row,0,3000000,5999999
3,1,0,0
7,0,0,2
11,0,3,0'
expect 0 pull slices 4-11 -o name
out_is '7
11'

# A hash table with more rows than one request takes.
expect 0 table create many --keys hash --partition-by hash --type i64
for ((i = 0; i < 20000; i++)); do
    echo "$((i * 1000003)) 0:$i"
done >many.txt
expect 0 push many --from many.txt -o json
expect 0 table export many --to many.out
if ! cmp -s many.txt many.out; then
    fail "a hash table of 20000 rows is exported with others"
fi

# Packed files are read as they are: from a file, from stdin, by their first
# bytes. One that ends early changes nothing.
expect 0 table create many2 --keys hash --type i64
gzip -c many.txt >many.txt.gz
expect 0 table import many2 --from many.txt.gz
expect 0 table export many2 --to many2.out
cmp -s many.txt many2.out || fail "a packed file came in with other values"
expect 0 table export f32 --to f32.plain.csv
gzip -c f32.plain.csv >f32.packed.csv.gz
expect 0 table import f32 --from f32.packed.csv.gz
rc=0
"$PSCLI_PROGRAM" table import f32 --from - --format csv <f32.packed.csv.gz \
    >out 2>err || rc=$?
[ $rc -eq 0 ] || fail "import of a packed csv from stdin: exit code $rc"
head -c 30 f32.packed.csv.gz >f32.cut.csv.gz
"$PSCLI_PROGRAM" table import f32 --from - --format csv <f32.cut.csv.gz \
    >cut.out 2>&1 && fail "import of a packed csv that is cut"
grep -q 'stdin: .*ends early' cut.out || fail "stdin is not named: $(cat cut.out)"
expect 0 table export f32 --to f32.again.csv
cmp -s f32.plain.csv f32.again.csv || fail "a packed csv has other values"
head -c 2000 many.txt.gz >cut.txt.gz
expect 9 table import many2 --from cut.txt.gz
err_has 'cut.txt.gz: its gzip data ends early'
expect 0 table export many2 --to many2.again
cmp -s many2.out many2.again || fail "a file that is cut changed something"

# Wrong files change nothing and name the line.
expect 0 table export f32 --to before.txt
wrong() {
    local code=$1 what=$2 name=$3 text=$4
    # shellcheck disable=SC2059
    printf "$text" >"$name"
    expect "$code" table import f32 --from "$name"
    err_has "$what"
}
wrong 2 'a.txt:2: row is "x"' a.txt '1 0:1\nx 0:1\n'
wrong 1 'a.txt:1: row 5000; the last one is 4999' a.txt '5000 0:1\n'
wrong 2 'a.txt:3: "5" is not COLUMN:VALUE' a.txt '1 0:1\n\n1 5\n'
wrong 1 'a.txt:1: column 3; the last one is 2' a.txt '1 3:1\n'
wrong 2 'a.txt:1: column 0 after column 1' a.txt '1 1:1 0:1\n'
wrong 1 'a.txt:1: row 1 column 0 is "1e39"' a.txt '1 0:1e39\n'
wrong 1 'E2005 a.txt:2: row 1 column 2 is "nan"' a.txt '#\n1 2:nan\n'
wrong 2 'a.txt:1: a byte 0' a.txt '1 0:\0001\n'
wrong 2 'a.txt:1: a word of more than' a.txt "1 0:$(printf '%099d' 0)\n"
wrong 2 'a.csv:1: header line not understood' a.csv ''
wrong 2 'a.csv:1: header line not understood' a.csv 'row,0,1\n'
wrong 2 'a.csv:1: header line not understood' a.csv 'row,0,1,2,3\n'
wrong 1 'a.csv:3: too few values' a.csv 'row,0,1,2\n1,2,3,4\n2,1\n'
wrong 1 'a.csv:2: too many values' a.csv 'row,0,1,2\n1,2,3,4,5\n'
wrong 1 'a.csv:2: less than row,col,value' a.csv 'row,col,value\n1,2\n'
wrong 1 'a.csv:2: row 1 column 2 is ""' a.csv 'row,col,value\n1,2,\n'
wrong 2 'a.npy: not a .npy file' a.npy 'hello, world'
expect 1 table import f32 --from i32.npy
err_has 'E2007 i32.npy holds i32; table "f32" has f32'
expect 1 table import i32 --from i64.csv
expect 1 table import set --from f32.npy
err_has 'E2001 f32.npy has shape \(5000, 3\)|E2001 .*shape'
head -c 1000 f32.npy >cut.npy
expect 2 table import f32 --from cut.npy
err_has 'cut.npy ends in row'
(cat f32.npy && echo more) >long.npy
expect 2 table import f32 --from long.npy
err_has 'long.npy has data after its last row'
expect 2 table import f32 --from /dev/null
expect 0 table export f32 --to after.txt
if ! cmp -s before.txt after.txt; then
    fail "a wrong file changed the table"
fi
expect 0 table create gradients --rows 10 --updater sgd:alpha=0.1
expect 2 table import gradients --from a.txt
err_has 'which cannot set values'

# stdin, and a failed export leaves nothing.
rc=0
printf '3 0:1\r\n4 0:2' | "$PSCLI_PROGRAM" push set --from - >out 2>err || rc=$?
[ $rc -eq 0 ] || fail "push from stdin: exit code $rc"
expect 0 pull set 3-4 -o csv
out_is 'row,0
3,1
4,2'
expect 2 table export hash --to hash.npy
if compgen -G "$work/*.npy.????????" >/dev/null || [ -e hash.npy ]; then
    fail "a refused export left a file"
fi

# Packed by its name, to standard output, and into what is no file.
expect 0 table export f32 --to plain.csv
expect 0 table export f32 --to packed.csv.gz
out_has 'packed.csv.gz'
gzip -dc packed.csv.gz | cmp -s - plain.csv || fail "csv.gz holds another csv"
expect 0 table export f32 --to packed.txt.zst
expect 0 table import f32-copy --from packed.txt.zst
expect 0 table export f32-copy --to again.csv
cmp -s again.csv plain.csv || fail "txt.zst comes back with other values"
expect 0 table export f32 --to - --format csv
cmp -s out plain.csv || fail "an export to - is another one"
rc=0
{ echo before && "$PSCLI_PROGRAM" table export f32 --to /dev/stdout --format csv; } \
    >out 2>err || rc=$?
[ $rc -eq 0 ] || fail "an export to /dev/stdout: exit code $rc"
{ echo before && cat plain.csv; } | cmp -s - out ||
    fail "an export to /dev/stdout has other bytes"
# A device that is full, in the middle and at the end: it is named.
expect 0 table create wide --rows 50000 --cols 3 --init normal:0,1 --seed 3
for table in wide f32; do
    expect 1 table export $table --to /dev/full --format csv
    err_has 'cannot write /dev/full: No space'
done
mkfifo pipe
timeout 60 cat pipe >piped &
cat_pid=$!
expect 0 table export f32 --to pipe --format csv
wait "$cat_pid"
[ -p pipe ] || fail "an export has replaced a pipe"
cmp -s piped plain.csv || fail "an export into a pipe is another one"
expect 2 table export f32 --to f32.npy.gz
err_has 'npy cannot be compressed'
expect 2 table export f32 --to f32.csv.xz
err_has 'f32.csv.xz ends with .xz, which is not written; allowed: .gz, .zst'
if compgen -G "*.npy.gz*" >/dev/null || compgen -G "*.xz*" >/dev/null; then
    fail "a refused export left a file"
fi
expect 0 cluster backup --to backup.gz
gzip -t backup.gz || fail "backup.gz is not packed"
[ "$(stat -c %a backup.gz)" = 600 ] || fail "others may read a backup"
expect 0 cluster restore --from backup.gz --data-dir "$work/from-gz"
rc=0
"$PSCLI_PROGRAM" cluster backup --to - 2>err | "$PSCLI_PROGRAM" \
    cluster restore --from - --data-dir "$work/from-pipe" >out 2>>err || rc=$?
[ $rc -eq 0 ] || fail "backup into restore: exit code $rc: $(cat err)"
touch open.backup
chmod 644 open.backup
expect 2 cluster backup --to open.backup
[ ! -s open.backup ] || fail "a backup was written over a file"

# ---- where two tables differ ----
expect 0 table create a --rows 1000 --cols 3
expect 0 table create thin --rows 1200 --cols 3 --row-format sparse
expect 0 push a 1=0.1,2,3 999:2=5
expect 0 push thin 1=0.1,2,3 999:2=5.25 1100:0=7
expect 0 table diff a a
out_is ''
err_has '^tables "a" and "a" are equal: 1000 rows$'
expect 1 table diff a thin --limit 2
out_is 'ROW   COL  A  B     DIFFERENCE  ONLY_IN
999   2    5  5.25  0.25        -
1000  -    -  -     -           thin'
err_has '^tables "a" and "thin" differ: 1 value differs in 1 of 1000 rows, by 0.25; 200 rows only in "thin"$'
err_has '^2 of 201 differences are shown; --limit shows more$'
expect 0 push a 999:2=0.25
expect 0 table create b --rows 1000 --cols 3
expect 1 table diff a b --tolerance 3 -o json
out_is '{"schema_version":1,"a":"a","b":"b","equal":false,"rows":1000,"rows_differ":1,"values_differ":1,"rows_only_in_a":0,"rows_only_in_b":0,"largest":5.25,"differences":[{"row":999,"col":2,"a":5.25,"b":0.0,"difference":5.25}]}'
expect 0 table diff a b --tolerance 5.25
err_has '^tables "a" and "b" are equal within 5.25: 1000 rows$'
expect 2 table diff a b --tolerance -1
expect 2 table diff a i32
err_has 'E1001 table "a" has values of type f32, table "i32" of type i32'
expect 5 table diff a nobody
# Keys in the order of 64 bits, in more batches than one, and rows of one table alone.
expect 0 table create keys --keys hash --cols 400
expect 0 table create keys2 --keys hash --cols 400 --row-format sparse
seq -f '%.0f 0:1 7:2' 1 3 30000 >keys.txt
expect 0 push keys --from keys.txt
expect 0 push keys2 --from keys.txt
expect 0 table diff keys keys2
err_has 'are equal: 10000 rows$'
expect 0 push keys 18446744073709551615:0=1 29998:399=1
expect 0 push keys2 2:3=1
expect 1 table diff keys keys2 -o csv
out_is 'row,col,a,b,difference,only_in
2,,,,,keys2
29998,399,1,0,1,
18446744073709551615,,,,,keys'
cli_finish
