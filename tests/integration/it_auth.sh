#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Keys and principals by pscli: made, allowed, denied, asked; kept over a restart; no secret
# leaves its file.
# shellcheck source-path=SCRIPTDIR source=nodes_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/nodes_lib.sh"
export PSD_SHARDS=1

# ---- keygen: asks nobody ----
expect 0 auth keygen alice
key_file=$work/config/pscli/keys/alice.key
[ "$(stat -c %a "$key_file")" = 600 ] || fail "mode of the key file"
[ "$(stat -c %a "$work/config/pscli/keys")" = 700 ] || fail "mode of its folder"
out_has 'pscli auth allow alice --role ROLE'
key=$(sed -n 's/^public-key //p' "$key_file")
secret=$(sed -n 's/^secret-key //p' "$key_file")
[ "${#key} ${#secret}" = "40 40" ] || fail "keys of 40 characters"
before=$(sha256sum "$key_file")
expect 1 auth keygen alice
err_has 'alice.key exists; it is left as it is'
[ "$before" = "$(sha256sum "$key_file")" ] || fail "a key was overwritten"
expect 0 auth keygen bob --file "$work/bob.key" -o json
out_has '"name": *"bob"'
out_has "\"file\": *\"$work/bob.key\""
bob=$(sed -n 's/^public-key //p' "$work/bob.key")
expect 2 auth keygen 'a b'
expect 1 auth keygen carol --file "$work/none/carol.key"
err_has 'cannot make .*No such file'

# ---- principals ----
nodes 1 ''
expect 0 auth list
expect 0 auth list -o json
out_has '"epoch": *0'
expect 2 auth allow alice --key="$key"
err_has '--role is missing'
expect 2 auth allow alice --role king --key="$key"
err_has 'role "king"; allowed: admin, operator, job, reader, metrics'
expect 2 auth allow alice --role node --key="$key"
err_has 'allowed: admin'
expect 2 auth allow alice --role job
err_has 'alice needs a key or a uid'
expect 2 auth allow alice --role job --key=short
err_has 'key of alice; allowed: the 40 characters'
expect 2 auth allow alice --role job --tables $'caf\xe9.*' --jobs '*' --key="$key"
err_has '"tables" is not UTF-8'
expect 2 auth allow alice --role job --key=
expect 2 auth allow alice --role job --tables 'a b' --jobs '*' --key="$key"
err_has 'glob of tables'
expect 2 auth allow alice --role job --tables 'alice.*' --key="$key"
err_has "E5001 --jobs is missing beside --tables; allowed: a glob, or '\*' for all jobs"
expect 2 auth allow alice --role job --jobs 'alice-*' --key="$key"
err_has "E5001 --tables is missing beside --jobs; allowed: a glob, or '\*' for all tables"
expect 0 auth allow root --role admin --uid 0
out_is 'root is allowed: admin; this psd checks no rights (security.level: plain)'
expect 0 auth allow alice --role job --tables 'alice.*' --jobs 'alice-*' --key="$key"
out_is 'alice is allowed: job; the rule covers tables "alice.*" and jobs "alice-*"; this psd checks no rights (security.level: plain)'
expect 2 auth allow bob --role reader --key="$key"
err_has 'the key of bob is that of alice already'
expect 2 auth allow bob --role reader --uid 0
err_has 'uid 0 of bob is that of root already'
expect 0 auth list
out_has '^root +allowed +admin +\* +\* +0 '
out_has '^alice +allowed +job +alice\.\* +alice-\* +- '

# ---- can-i ----
expect 0 auth can-i write table alice.w --as alice
out_is 'yes'
expect 1 auth can-i write table bob.w --as alice
out_is 'no: its rules cover tables "alice.*"'
expect 1 auth can-i backup cluster --as alice
expect 0 auth can-i backup cluster --as root
expect 0 auth can-i stop job --as alice
expect 2 auth can-i write table alice.w --as alice2
err_has 'there is no principal'
expect 2 auth can-i fly table w --as alice
err_has 'there is no verb "fly"'
expect 2 auth can-i write moon w --as alice
err_has 'there is no object "moon"'
expect 2 auth can-i write table w
err_has 'who asks is no principal; allowed: --as, the name of the one that is asked about'

# ---- one more rule; another in place of all ----
expect 1 auth can-i read table other --as alice
expect 0 auth allow alice --role reader --add
out_is 'alice is allowed: job,reader; the rule covers all tables and jobs; this psd checks no rights (security.level: plain)'
expect 0 auth can-i read table other --as alice
expect 0 auth can-i write table alice.w --as alice
expect 0 auth allow alice --role reader --tables 'v*' --jobs '*'
expect 1 auth can-i write table alice.w --as alice
out_is 'no'

# ---- deny ----
expect 4 auth deny root
err_has 'root is the last one who may change principals; allow another admin first'
expect 2 auth deny nobody
err_has 'there is no principal "nobody"'
expect 0 auth deny alice
out_is 'alice is denied; this psd checks no rights (security.level: plain)'
expect 1 auth can-i read table v --as alice
out_is 'no: it is denied'
# It comes back with what is given then, not with what it had.
expect 0 auth allow alice --role metrics --add
expect 1 auth can-i read table v --as alice
expect 0 auth deny alice
expect 0 auth deny alice
expect 0 auth allow bob --role admin --key="$bob"
expect 0 auth deny root
expect 4 auth deny bob
expect 0 auth allow root --role admin
expect 0 cluster events
out_has 'principal root is allowed: admin of tables "\*", jobs "\*"'
out_has 'principal alice is denied'

# ---- over a restart, and no secret anywhere ----
expect 0 auth list -o json
cp "$work/out" "$work/before.json"
kill_node n0
node n0 ''
expect 0 auth list -o json
cmp "$work/out" "$work/before.json" || fail "principals differ after a restart"
expect 0 cluster backup --to "$work/backup"
bob_secret=$(sed -n 's/^secret-key //p' "$work/bob.key")
for hidden in "$secret" "$bob_secret"; do
    if grep -rlF -e "$hidden" "$work" | grep -v '\.key$'; then
        fail "a secret key is outside of its file"
    fi
done
grep -qaF -e "$key" "$work/backup" || fail "the backup has no public key"
cli_finish
