#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# pscli data: files recognised, shown, and made others, packed, shared out, by
# standard input and output; bad lines and files say what is wrong. No psd runs.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
cd "$work" || exit 1

for i in $(seq 1 500); do
    echo "$((i % 2)) $i:0.5 $((i + 7)):$i"
done >a.libsvm

# Around through packed files of another format, and back.
expect 0 data convert --to ps a.libsvm a.ps.gz
expect 0 data convert --to ps a.ps.gz a.ps.zst
expect 0 data convert --to libsvm a.ps.zst b.libsvm
cmp -s a.libsvm b.libsvm || fail "around through ps.gz and ps.zst"
[ "$(head -c 2 a.ps.gz | od -An -tx1 | tr -d ' ')" = 1f8b ] || fail "a.ps.gz is not gzip"
expect 2 data convert --to libsvm a.ps.gz b.libsvm
err_has 'b.libsvm, the last argument, is OUT, and exists'
expect 0 data convert --to libsvm a.ps.gz b.libsvm --yes -o json
grep -q '"samples":500,"entries":1000,"bad_lines":0' out || fail "counts: $(cat out)"

# The shares of workers are the file.
for part in 0 1 2; do
    expect 0 data convert --part $part --parts 3 --to libsvm a.libsvm share.$part
done
cat share.0 share.1 share.2 | cmp -s - a.libsvm || fail "three shares are not the file"
expect 2 data convert --part 3 --parts 3 --to libsvm a.libsvm x
err_has 'share 3 of 3; shares count from 0'

# A directory, a pattern, standard input and output.
mkdir dir
split -l 100 a.libsvm dir/
expect 0 data convert --to libsvm dir b.libsvm --yes
cmp -s a.libsvm b.libsvm || fail "a directory's files are not the file"
expect 0 data convert --to libsvm 'dir/a[a-e]' b.libsvm --yes
cmp -s a.libsvm b.libsvm || fail "a pattern's files are not the file"
"$PSCLI_PROGRAM" data convert --to ps - - <a.libsvm |
    "$PSCLI_PROGRAM" data convert --to libsvm - - >c.libsvm
"$PSCLI_PROGRAM" data convert --to libsvm a.libsvm - >d.libsvm
"$PSCLI_PROGRAM" data convert --to libsvm a.libsvm /dev/stdout >e.libsvm ||
    fail "convert to /dev/stdout: exit code $?"
cmp -s d.libsvm e.libsvm || fail "convert to /dev/stdout writes something else"
cmp -s a.libsvm c.libsvm || fail "through standard input and output"

# What it is, and what is in it.
expect 0 data detect a.libsvm a.ps.gz -o csv
out_is 'file,format,labels,entries,samples,bad_lines
a.libsvm,libsvm,class,sparse,500,0
a.ps.gz,ps,class,sparse,500,0'
echo "0 | price:.23 sqft:.25 age:.05 2006" >a.vw
expect 0 data show a.vw -o json
grep -q '"keys":\[229902,162853,165201,2006\]' out || fail "keys: $(cat out)"
expect 0 data show -n 1 --no-constant -b 4 a.vw
grep -q '14:0.23 5:0.25 1:0.05 6:1$' out || fail "4 bits: $(cat out)"

# All of it, in every format; packed, and with a line that is bad.
expect 0 data show --summary a.libsvm -o json
out_is "{\"schema_version\":1,\"summary\":{\"format\":\"libsvm\",\"samples\":500,\"entries\":1000,\"most_entries\":2,\"features\":507,\"more_features\":false,\"min_key\":1,\"max_key\":507,\"labels\":{\"kind\":\"class\",\"none\":0,\"min\":0.0,\"max\":1.0,\"different\":2,\"more\":false,\"values\":[{\"label\":0.0,\"samples\":250},{\"label\":1.0,\"samples\":250}]},\"bytes\":$(stat -c %s a.libsvm),\"bad_lines\":0}}"
expect 0 data show --summary a.ps.gz
out_has '^MAX_KEY +507$'
out_has '^LABEL +SAMPLES$'
expect 0 data show --summary dir -o csv
out_has '^libsvm,500,1000,2,507,1,507,class,0,2,0,1,'
printf '1\n-1 9:1\n1 x\n' >some.libsvm
expect 8 data show --summary --from libsvm some.libsvm -o csv
out_has '^libsvm,2,1,1,1,9,9,binary,0,2,-1,1,13,1$'
err_has 'some.libsvm:3: "x" is not KEY:VALUE'
printf '1\n1\n' >none.libsvm
expect 0 data show --summary --from libsvm none.libsvm -o json
out_has '"min_key":null,"max_key":null'
expect 2 data show --summary -n 3 a.libsvm
err_has 'it excludes --number'

# What a format has no place for is left out only when that is wanted.
echo "1 2 | 9:1 3:2" >weight.vw
expect 2 data convert --to libsvm --merge weight.vw weight.libsvm
err_has 'sample 1: a sample with a weight, which libsvm cannot hold'
expect 0 data convert --to libsvm --merge --lossy weight.vw weight.libsvm
[ "$(cat weight.libsvm)" = "1 3:2 9:1 116060:1" ] || fail "merged: $(cat weight.libsvm)"

# The arrays of binary files, whole and some of their rows.
printf '1 0:1 1:2\n-1 1:3 2:9\n1 1:1 2:4\n' >matrix.libsvm
expect 0 data convert --to binary matrix.libsvm name
[ "$(od -An -tu8 -v name.offset | xargs)" = "0 2 4 6" ] || fail "offset"
[ "$(od -An -tu8 -v name.index | xargs)" = "0 1 1 2 1 2" ] || fail "index"
[ "$(od -An -tf4 -v name.value | xargs)" = "1 2 3 9 1 4" ] || fail "value"
expect 0 data convert --rows 1:3 --to libsvm name.info rows.libsvm
tail -n 2 matrix.libsvm | cmp -s - rows.libsvm || fail "rows 1 and 2: $(cat rows.libsvm)"
expect 2 data convert --to binary matrix.libsvm name
err_has 'name.info exists'
expect 2 data show --rows 0:1 matrix.libsvm
err_has 'libsvm files do not say where they are'
expect 2 data show --rows 1 name.info
expect 2 data show --scale 1/x name.info
err_has 'is neither a number nor a fraction'

# Messages are what protoc's own decoder reads.
schemas=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../../lib/data/proto")
printf '1 3:0.5\n' >one.libsvm
# decode SCHEMA MESSAGE <bytes: its text in one line
decode() {
    protoc --decode="psd.$1.$2" --proto_path="$schemas" "$1.proto" | tr -s ' \n' ' '
}
expect 0 data convert --to proto one.libsvm one.example
got=$(tail -c +9 one.example | decode example Example)
[ "$got" = 'slot { id: 0 val: 1 } slot { id: 1 key: 3 val: 0.5 unnamed: true } ' ] ||
    fail "Example: $got"
expect 0 data convert --to proto-input one.libsvm one.input
got=$(tail -c +21 one.input |
    python3 -c 'import sys, zlib; sys.stdout.buffer.write(zlib.decompress(sys.stdin.buffer.read()))' |
    decode input PServerInput)
[ "$got" = 'label: 1 feature_group { group_id: 0 feature_id: 3 value: 0.5 } ' ] ||
    fail "PServerInput: $got"
expect 0 data convert --to proto-instance one.libsvm one.instance
size=$(od -An -tu4 -j4 -N4 one.instance | tr -d ' ')
got=$(tail -c +9 one.instance | head -c "$size" | decode instance InstanceInfo)
[ "$got" = 'label_type: BINARY fea_type: SPARSE fea_group { group_id: 0 fea_begin: 3 fea_end: 4 nnz: 1 } num_ins: 1 ' ] ||
    fail "InstanceInfo: $got"
got=$(tail -c +$((size + 17)) one.instance | decode instance Instance)
[ "$got" = 'label: 1 fea_id: 3 fea_val: 0.5 ' ] || fail "Instance: $got"

# Bad lines: left out, counted, named; or the end.
printf '1 1:1\n1 x\n1 2:1 1:1\n1 1:1\n' >bad.libsvm
expect 8 data convert --from libsvm --to ps bad.libsvm good.ps
err_has 'bad.libsvm:2: "x" is not KEY:VALUE'
err_has 'bad.libsvm:3: key 1 after 2'
err_has 'E5004 2 bad lines were skipped'
[ "$(wc -l <good.ps)" = 2 ] || fail "two samples are good"
expect 2 data convert --strict --from libsvm --to ps bad.libsvm none.ps
err_has 'bad.libsvm:2: "x" is not KEY:VALUE'
[ ! -e none.ps ] || fail "none.ps is there, though it is not whole"
[ -z "$(find . -name 'none.ps.*')" ] || fail "what was begun of none.ps is there"

# Files that are nothing, broken, or not to be had.
expect 1 data detect bad.txt
echo "To be, or not to be" >words
expect 0 data detect words a.vw -o csv
out_is 'file,format,labels,entries,samples,bad_lines
words,unknown,,,,
a.vw,vw,class,sparse,1,0'
err_has 'words: its first lines match no known format'
expect 1 data detect bad.txt a.vw -o csv # the others are told, too
out_has '^a.vw,vw,class,sparse,1,0$'
expect 2 data show words
err_has 'words: its first lines match no known format'
head -c 100 a.ps.gz >cut.gz
expect 9 data detect cut.gz
err_has 'E2008 cut.gz: its gzip data ends early'
expect 2 data convert --to adfea a.libsvm x
expect 2 data convert a.libsvm x
err_has '--to is missing'
expect 1 data convert --to libsvm a.libsvm nowhere/x
err_has 'cannot write nowhere/x'
expect 2 data convert --to csv a.libsvm x
err_has 'csv has a column for each key'
cli_finish
