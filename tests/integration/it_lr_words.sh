#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# examples/lr: each bad flag and file is one clear error, before any psd is asked.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
# shellcheck source-path=SCRIPTDIR source=lr_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lr_lib.sh"

# bad_line PATTERN TEXT: a training file of this text (printf's escapes) is
# refused; the pattern is what follows the file's name.
bad_line() {
    printf '%b' "$2" >"$work/bad"
    refused 2 "$work/bad:$1" --train "$work/bad"
}

# Flags.
refused 2 '--train FILE is missing'
refused 2 '"x" is not an option' x
refused 2 'unknown option "--trian"' --trian f
refused 2 '--train needs a value: FILE' --train
refused 2 '--train is empty' --train=
refused 2 '--epochs is "0"; allowed: 1' --train f --epochs 0
refused 2 '--epochs is "1e3"; allowed:' --train f --epochs 1e3
refused 2 '--minibatch is "-1"; allowed:' --train f --minibatch -1
refused 2 '--features is "0"; allowed:' --train f --features 0
refused 2 '--alpha is "nan"; allowed:' --train f --alpha nan
refused 2 '--alpha is "-1"; allowed:' --train f --alpha -1
refused 2 '--l1 is "inf"; allowed:' --train f --l1 inf
refused 2 '--max-delay is "-2"; allowed: -1' \
    --train f --max-delay -2
refused 2 '--updater is "adam"; allowed: ftrl' --train f --updater adam
refused 2 '--objective "l1:1" is not l2:C' --train f --objective l1:1
refused 2 '--objective needs --updater' \
    --train f --objective l2:1 --updater ftrl
refused 2 '--replicas is "6"; allowed: 1 to 5' \
    --train f --replicas 6
refused 2 '--ack is "all"; allowed: memory, replica, disk' \
    --train f --ack all
refused 2 '--deal is "x"; allowed: turns, bytes' --train f --deal x
refused 2 '--beta has no meaning' --train f --updater sgd --beta 1
refused 2 '--variant needs --objective' --train f --variant admm
refused 2 '--scores needs --test' --train f --scores s
refused 2 '--predict needs --test' --predict m
PSD_WORKER=x refused 2 'PSD_WORKER "x" is not a whole number' --train "$train"
PSD_WORKER=4 PSD_WORKERS=4 refused 2 'PSD_WORKER 4 is not below' \
    --train "$train"

# Files.
refused 1 '/no/such/file.*No such file' --train /no/such/file
refused 1 '--save /no/such/m: No such file' --train f --save /no/such/m
cp "$train" "$work/mine"
ln "$work/mine" "$work/link"
refused 2 "--save $work/link would overwrite --train $work/mine" \
    --train "$work/mine" --save "$work/link"
refused 2 "--scores $work/m would overwrite --predict $work/m" \
    --predict "$work/m" --test "$work/mine" --scores "$work/m"
mkdir "$work/many"
cp "$train" "$work/many/part-0"
for names in "$work/many" "$work/many/part-*"; do
    refused 2 "--scores $work/many/part-0 would overwrite --train" \
        --train "$names" --test "$train" --scores "$work/many/part-0"
done
# … by another name, in a directory that a pattern names, as a link's target.
ln -s many/part-0 "$work/by-link"
mkdir "$work/apart"
ln -s ../mine "$work/apart/part-0"
while read -r names output; do
    refused 2 "--scores $work/$output would overwrite --train" \
        --train "$work/$names" --test "$train" --scores "$work/$output"
done <<'EOF'
many by-link
many/part-* ./many/part-0
man* many/part-0
apart mine
EOF
refused 1 "--save $work/by-link is not a file that can be replaced" \
    --train "$train" --save "$work/by-link"
refused 1 '--save /dev/null is not a file that can be replaced' \
    --train "$train" --save /dev/null
cmp -s "$train" "$work/mine" || fail "the training data is written over"
refused 2 'is neither a file nor a pattern that matches one' --train "$work/no*"
bad_line ' its first lines match no known format' ''
bad_line ' its first lines match no known format' 'x\ny z\n'
bad_line ' sample 1: label 2 is not one of 0, 1, -1, +1' '2 1:1\n'
bad_line ' sample 2: label -3 is not one of' '1 1:1\n# c\n-3 1:1\n'
good=$(printf '1 1:1\\n%.0s' {1..12})
bad_line '13: "7" is not KEY:VALUE' "${good}1 7\n"
bad_line '13: key 3 after 5' "${good}0 5:1 3:1\n"
bad_line '13: "1:nan" is not KEY:VALUE' "${good}1 1:nan\n"
bad_line '13: "1:1e39" is not KEY:VALUE' "${good}1 1:1e39\n"
refused 2 "$train: sample 1: key 10 is not a whole number from 0 to 9" \
    --train "$train" --features 9
refused 2 '"xml"' --train "$train" --format xml
printf '1 0.5\n1 0.5\n' >"$work/bad"
refused 2 "$work/bad:2: index 1 follows 1" --predict "$work/bad" --test "$test"

cli_finish
