#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Contexts of pscli: made, listed, shown, used and dropped; which of several endpoints
# counts; bad names, keys, values and files are one clear error each and change nothing.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
dead=tcp://127.0.0.1:1
files=$work/config/pscli/contexts

# refused PATTERN ARGS...: one line that has it, usage.
refused() {
    local pattern=$1
    shift
    expect 2 "$@"
    err_has "$pattern"
    err_is_one_line || fail "pscli $*: not one line"
}

# None yet.
expect 0 context list -o name
out_is ''
refused 'no context is the current one' context show
refused 'there is no context "lab"' context show lab
refused 'there is no context "lab"' context use lab
refused 'there is no context "lab"' context drop lab
refused 'the context is "../lab"; allowed' context set ../lab timeout=1s
refused '"timeout" is not KEY=VALUE' context set lab timeout
refused 'color: unknown key' context set lab color=red
refused 'context: unknown key' context set lab context=other
refused 'timeout is "soon"; allowed' context set lab timeout=soon
refused 'too few arguments' context set lab
[ ! -e "$work/config" ] || fail "a refused command made files"

# Made, for the user alone, and changed: the rest of the file stays.
expect 0 context set lab "endpoint=$dead" timeout=300ms
out_is 'context lab is set'
[ "$(stat -c %a "$files/lab" "$files" | paste -sd ' ')" = '600 700' ] || fail "rights of files"
sed -i '1i # of the lab' "$files/lab"
expect 0 context set lab timeout=200ms output=csv
[ "$(cat "$files/lab")" = "# of the lab
endpoint=$dead
timeout=200ms
output=csv" ] || fail "a changed context: $(cat "$files/lab")"
expect 0 context set lab output=
expect 0 context show lab -o csv
out_is "key,value
endpoint,$dead
timeout,200ms"
expect 0 context list -o csv
out_is "name,current,endpoint,problem
lab,false,$dead,"
[ -z "$(find "$work/config" -name '*~*')" ] || fail "a file in the making stays"

# The current one counts, after the environment.
cli_start
here=$PSCLI_ENDPOINT
unset PSCLI_ENDPOINT
expect 0 context set here "endpoint=$here" output=name
expect 0 context use lab
out_is 'context lab is the current one'
expect 3 table list
err_has "$dead"
expect 0 --context here table list
expect 0 --endpoint "$here" table list
PSCLI_ENDPOINT=$here expect 0 table list
PSD_ENDPOINT=$here expect 0 table list
PSCLI_CONTEXT=here expect 0 table list
expect 0 context use here
expect 0 table create t --rows 1
expect 0 table list
out_is t
expect 0 context list -o json
out_has '"name":"here","current":true'
expect 0 context show
out_has 'output +name'

# A broken file is named, where it is needed, and can be mended or left.
echo junk >>"$files/here"
refused "$files/here:3: \"junk\" is not key=value" table list
expect 0 context list -o csv
out_has "^here,true,$here,\"?$files/here:3"
expect 0 context use --none
out_is 'no context is the current one'
PSD_ENDPOINT=$here expect 0 table list
refused 'name the context to use, or --none' context use
refused 'name the context to use, or --none' context use lab --none
echo '../..' >"$work/config/pscli/current"
refused 'not the name of a context' table list
expect 0 version
expect 0 context use lab
expect 0 context drop lab
out_is 'dropped context lab, which was the current one'
expect 0 context drop here
expect 0 context list -o name
out_is ''
PSD_ENDPOINT=$here expect 0 table list

cli_finish
