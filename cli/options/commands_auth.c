/* SPDX-License-Identifier: Apache-2.0 */
/* The commands about keys, and about who may do what. */
#include "cli/options/commands.h"

#include "cli/cluster/cluster.h"

static const ps_example_t KEYGEN_EXAMPLES[] = {
    {"pscli auth keygen alice", "a key pair in ~/.config/pscli/keys/alice.key"},
    {"pscli auth keygen trainer --file /etc/trainer/psd.key", "for a service"},
    {"pscli auth keygen alice -o json", "for a script: the public key and the file"},
    {NULL, NULL}};
static const ps_opt_t KEYGEN_OPTIONS[] = {
    {.name = "file",
     .kind = PS_OPT_TEXT,
     .value = "FILE",
     .help = "where the key goes, in a folder that exists; without it "
             "~/.config/pscli/keys/NAME.key"},
    {.name = NULL}};

static const ps_example_t LIST_EXAMPLES[] = {
    {"pscli auth list", "who is known, and by which roles"},
    {"pscli auth list -o json", "with all rules"},
    {NULL, NULL}};

static const ps_example_t ALLOW_EXAMPLES[] = {
    {"pscli auth allow root --role admin --uid 0", "root of this host"},
    {"pscli auth allow bo --role job --tables 'bo.*' --jobs 'bo-*' --key='KEY'",
     "KEY is what keygen printed"},
    {"pscli auth allow bo --role reader --add", "bo may read all other tables, too"},
    {NULL, NULL}};
static const ps_opt_t ALLOW_OPTIONS[] = {
    {.name = "role",
     .kind = PS_OPT_TEXT,
     .value = "ROLE",
     .help = "admin, operator, job, reader or metrics. Required"},
    {.name = "tables",
     .kind = PS_OPT_TEXT,
     .value = "GLOB",
     .help = "of which tables: \"*\" stands for any characters, \"?\" for one. Give both "
             "--tables and --jobs, or neither: all"},
    {.name = "jobs", .kind = PS_OPT_TEXT, .value = "GLOB", .help = "of which jobs"},
    {.name = "key",
     .kind = PS_OPT_TEXT,
     .value = "KEY",
     .help = "public key, 40 characters; one that is known keeps its own without it"},
    {.name = "uid",
     .kind = PS_OPT_U64,
     .value = "UID",
     .max = 4294967294,
     .help = "user of the host whose psd is asked"},
    {.name = "add", .help = "one more rule, up to 16; without it the rule replaces all others"},
    {.name = NULL}};

static const ps_example_t INVITE_EXAMPLES[] = {
    {"pscli auth invite bo --role job --tables 'bo.*' --jobs 'bo-*'", "a token; for bo's machine"},
    {"pscli auth invite bo --role reader | ssh b pscli auth accept", "in one go"},
    {"pscli auth invite bo --role reader --ttl 60m -o json", "for a script"},
    {NULL, NULL}};
static const ps_opt_t INVITE_OPTIONS[] = {
    {.name = "role",
     .kind = PS_OPT_TEXT,
     .value = "ROLE",
     .help = "admin, operator, job, reader or metrics. Required"},
    {.name = "tables",
     .kind = PS_OPT_TEXT,
     .value = "GLOB",
     .help = "of which tables: \"*\" stands for any characters, \"?\" for one. Give both "
             "--tables and --jobs, or neither: all"},
    {.name = "jobs", .kind = PS_OPT_TEXT, .value = "GLOB", .help = "of which jobs"},
    {.name = "ttl",
     .kind = PS_OPT_DURATION,
     .value = "TIME",
     .min = 1000,
     .max = 86400000,
     .help = "how long it counts, up to 86400s; without it 10m"},
    {.name = NULL}};

static const ps_example_t ACCEPT_EXAMPLES[] = {
    {"pscli auth accept", "asks for the token"},
    {"pscli auth accept <<<'TOKEN'", "the same as one command"},
    {"eval \"$(pscli auth accept bo.token)\"", "and this shell uses the key at once"},
    {NULL, NULL}};
static const ps_opt_t ACCEPT_OPTIONS[] = {
    {.name = "file",
     .kind = PS_OPT_TEXT,
     .value = "FILE",
     .help = "where the key goes, in a folder that exists; without it "
             "~/.config/pscli/keys/NAME.key"},
    {.name = NULL}};

static const ps_example_t DENY_EXAMPLES[] = {
    {"pscli auth deny alice", "her rules give nothing from now on"}, {NULL, NULL}};

static const ps_example_t ROTATE_EXAMPLES[] = {
    {"pscli auth rotate", "a new key in the file that PSD_KEY_FILE names"},
    {"pscli auth rotate --grace 24h", "programs on other hosts get the file in time"},
    {"pscli auth rotate --grace 0s", "the old key ends at once, also for programs that run"},
    {"pscli auth rotate alice --key='KEY'", "as an admin, with alice's new public key"},
    {NULL, NULL}};
static const ps_opt_t ROTATE_OPTIONS[] = {
    {.name = "grace",
     .kind = PS_OPT_DURATION,
     .value = "DURATION",
     .max = 2592000000,
     .fallback = "10m",
     .help = "how long the old key counts as well"},
    {.name = "key",
     .kind = PS_OPT_TEXT,
     .value = "KEY",
     .help = "public key, 40 characters, of NAME's new pair; an admin gives it"},
    {.name = NULL}};

static const ps_example_t CAN_EXAMPLES[] = {
    {"pscli auth can-i write table alice.w", "may I? \"yes\" or \"no\""},
    {"pscli auth can-i write table alice.w --as alice", "may alice? For admins"},
    {"pscli auth can-i stop job --as alice", "any job at all?"},
    {"pscli auth can-i backup cluster --as alice -o json", "for a script"},
    {NULL, NULL}};
static const ps_opt_t CAN_OPTIONS[] = {
    {.name = "as",
     .kind = PS_OPT_TEXT,
     .value = "NAME",
     .help = "the principal that is asked about, for admins; without it who asks"},
    {.name = NULL}};

static const ps_example_t WHOAMI_EXAMPLES[] = {
    {"pscli auth whoami", "\"alice (uid 1000)\", or \"127.0.0.1: no principal\""},
    {"pscli auth whoami -o json", "for a script: principal, state, uid, key, address"},
    {NULL, NULL}};

static const ps_example_t AUDIT_EXAMPLES[] = {
    {"pscli auth audit", "who changed what, and who was refused"},
    {"pscli auth audit --since 1h -o json", "the last hour, with all members"},
    {"pscli auth audit --who alice --refused", "what alice wanted and could not do"},
    {"pscli auth audit --verify", "was any line changed, removed or inserted?"},
    {"sudo pscli auth audit --verify /var/lib/psd", "the files, while psd may be stopped"},
    {NULL, NULL}};
static const ps_opt_t AUDIT_OPTIONS[] = {
    {.name = "verify",
     .help = "check the digest of each line, and name the first wrong one; the exit code is 1 if "
             "there is one"},
    {.name = "since",
     .kind = PS_OPT_DURATION,
     .value = "DURATION",
     .min = 1,
     .max = 31536000000,
     .help = "only lines of the last DURATION (30m, 12h)"},
    {.name = "who",
     .kind = PS_OPT_TEXT,
     .value = "NAME",
     .help = "only what this principal asked for"},
    {.name = "refused", .help = "only requests that were refused for lack of a right"},
    {.name = "last",
     .letter = 'n',
     .kind = PS_OPT_U64,
     .value = "N",
     .min = 1,
     .max = 100000,
     .fallback = "1000",
     .help = "only the last N lines"},
    {.name = NULL}};

const ps_cmd_t ps_cmds_auth[] = {
    {.noun = "auth",
     .verb = "keygen",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .summary = "make a key pair for a person, a job or a service",
     .details = "Works without a running psd. The file has the secret key: it is made with mode "
                "0600, and one that exists is not overwritten. pscli prints the public key, and "
                "the line by which an admin lets it in. A psd with security.level: encrypt asks "
                "for it (PSD_KEY_FILE).",
     .examples = KEYGEN_EXAMPLES,
     .options = KEYGEN_OPTIONS,
     .run = ps_cmd_auth_keygen},
    {.noun = "auth",
     .verb = "list",
     .arguments = "",
     .summary = "list who is known to the cluster",
     .details =
         "ROLES has the role of each rule, TABLES and JOBS its globs, in the same order. EPOCH "
         "grows with each change.",
     .examples = LIST_EXAMPLES,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_auth_list},
    {.noun = "auth",
     .verb = "allow",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .summary = "let somebody in, or give somebody another role",
     .details = "NAME becomes a principal with a key or a uid and one rule; one that is known gets "
                "the rule in place of its others, and is no longer denied. Refused when nobody "
                "would be left who may change principals, and while a node that has a part of the "
                "registry runs an older psd. Rights are checked where security.level is encrypt.",
     .examples = ALLOW_EXAMPLES,
     .options = ALLOW_OPTIONS,
     .run = ps_cmd_auth_allow},
    {.noun = "auth",
     .verb = "invite",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .summary = "make a token by which a client lets its own key in",
     .details =
         "Prints one line, the token. Whoever has it can come once as NAME until it expires: hand "
         "it on in a safe way. On the other machine \"pscli auth accept\" takes it, makes a key "
         "there, and sends the public key. NAME gets one rule, as by \"pscli auth allow\". NAME "
         "must be new, or a denied principal, which is then let in again with the new key only. A "
         "token is valid once, for --ttl. It becomes void, too, when another one is made for NAME, "
         "when NAME or the maker of the token is denied, and when the node that leads restarts or "
         "another node leads. For clusters with security.level: encrypt.",
     .examples = INVITE_EXAMPLES,
     .options = INVITE_OPTIONS,
     .run = ps_cmd_auth_invite},
    {.noun = "auth",
     .verb = "accept",
     .arguments = "[FILE]",
     .max_args = 1,
     .summary = "let this machine's key in by a token",
     .details =
         "Reads the line that \"pscli auth invite\" printed from FILE, which is yours alone (mode "
         "0600), or from standard input. Makes a key file, or uses the one that is there if it "
         "holds a key of NAME, and sends the public key to the psd that the token names. The "
         "secret key stays here. Prints the line that sets PSD_ENDPOINT and PSD_KEY_FILE in a "
         "shell. If the command is interrupted, run it again with the same token: it continues.",
     .examples = ACCEPT_EXAMPLES,
     .options = ACCEPT_OPTIONS,
     .run = ps_cmd_auth_accept},
    {.noun = "auth",
     .verb = "deny",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .summary = "take all rights from a principal",
     .details =
         "The principal stays in the list, so that its key is known as a denied one. Tokens for "
         "it, and those that it made, are void: also where NAME is nobody yet. The "
         "last one who may change principals is not denied. Rights are checked where "
         "security.level is encrypt: the next request is refused, also of one who is "
         "connected.",
     .examples = DENY_EXAMPLES,
     .run = ps_cmd_auth_deny},
    {.noun = "auth",
     .verb = "rotate",
     .arguments = "[NAME]",
     .max_args = 1,
     .summary = "change a key without a restart",
     .details =
         "Writes a new key to FILE.new, where FILE is the file that PSD_KEY_FILE names, lets "
         "psd accept it, connects with it, and then replaces FILE; the old file stays as "
         "FILE.old. Both keys count until the grace is over. Running programs with libpsd "
         "switch to the new key about 2 s later, at their next call: use a grace of at "
         "least 10 s. If the command is interrupted, run it again: it continues. An admin "
         "can change somebody else's key with NAME and --key; NAME must install the new "
         "key file before the grace is over.",
     .examples = ROTATE_EXAMPLES,
     .options = ROTATE_OPTIONS,
     .run = ps_cmd_auth_rotate},
    {.noun = "auth",
     .verb = "can-i",
     .arguments = "VERB OBJECT [NAME]",
     .min_args = 2,
     .max_args = 3,
     .summary = "ask whether somebody may do something",
     .details = "VERB and OBJECT are those of the table of rights in docs/security.md; NAME is a "
                "table or a job. Without NAME: whether there may be one. A \"no\" says which names "
                "the rules cover, if any. The exit code is 0 for yes, 1 for no. The answer is what "
                "the rules say; they are checked where "
                "security.level is encrypt.",
     .examples = CAN_EXAMPLES,
     .options = CAN_OPTIONS,
     .run = ps_cmd_auth_can},
    {.noun = "auth",
     .verb = "whoami",
     .arguments = "",
     .summary = "show as whom psd knows you",
     .details = "If it leads the registry, psd knows a user of its host over ipc by the uid, which "
                "the kernel proves. Over tcp it knows the key at security.level: encrypt, and the "
                "address alone at level plain. Another psd sends pscli to the leader by tcp. The "
                "principal is the one that has the uid or the key. The history of the cluster "
                "names the same: pscli cluster events.",
     .examples = WHOAMI_EXAMPLES,
     .run = ps_cmd_auth_whoami},
    {.noun = "auth",
     .verb = "audit",
     .arguments = "[FILE]",
     .max_args = 1,
     .summary = "show who changed what, and who was refused",
     .details =
         "Asks the psd that leads the registry, which has the lines of its own node. FILE is an "
         "audit.jsonl, or a data directory: then its audit is read without a psd; only psd's user "
         "and root may. --verify finds lines that were changed, removed, inserted or moved. Files "
         "alone do not show three things. Whoever can write the data directory can change a line "
         "and compute all later digests again. The oldest files may be gone: psd deletes them too. "
         "Lines may be missing at the end. Ask the running psd, or compare with a digest that you "
         "noted earlier.",
     .examples = AUDIT_EXAMPLES,
     .options = AUDIT_OPTIONS,
     .run = ps_cmd_auth_audit},
    {.noun = NULL}};
