/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of those who look after a cluster. */
#include "cli/options/commands.h"

#include "cli/watch/watch.h"

static const char *const CHECK_FORMATS[] = {"text", "nagios", "prometheus", NULL};

static const ps_example_t CHECK_EXAMPLES[] = {
    {"pscli check", "is all well? exit code 0 or 1"},
    {"pscli check --format nagios", "a plug-in of Nagios, Icinga or Zabbix: exit code 0 to 3"},
    {"pscli check --format prometheus > /var/lib/node_exporter/psd.prom", "from a timer"},
    {"pscli check backup --warn 24h --crit 48h -o json", "the age of the newest checkpoint"},
    {NULL, NULL}};
static const ps_opt_t CHECK_OPTIONS[] = {
    {.name = "warn",
     .kind = PS_OPT_DURATION,
     .value = "DURATION",
     .min = 1,
     .max = 2147483647,
     .help = "a warning from here on; of lag 1s, clocks 60s, backup 24h"},
    {.name = "crit",
     .kind = PS_OPT_DURATION,
     .value = "DURATION",
     .min = 1,
     .max = 2147483647,
     .help = "critical from here on; of lag 10s, clocks 300s, backup 48h"},
    {.name = "format",
     .kind = PS_OPT_CHOICE,
     .value = "FORMAT",
     .words = CHECK_FORMATS,
     .fallback = "text",
     .help = "text (as --output says), a line for nagios, or a file for prometheus"},
    {.name = NULL}};

static const ps_example_t SLOW_EXAMPLES[] = {
    {"pscli slow", "the slowest requests of all tables"},
    {"pscli slow w --limit 5 -o wide", "of table w, with rows, bytes and sessions"},
    {"pscli slow -o json | jq '.slow[] | select(.gate_s > 1)'", "those that slower workers held"},
    {NULL, NULL}};
static const ps_opt_t SLOW_OPTIONS[] = {{.name = "limit",
                                         .kind = PS_OPT_U64,
                                         .value = "N",
                                         .min = 1,
                                         .max = 10000,
                                         .fallback = "20",
                                         .help = "requests to show at most"},
                                        {.name = NULL}};

static const ps_example_t WAIT_EXAMPLES[] = {
    {"pscli wait cluster --for healthy --timeout 60s", "after a start"},
    {"pscli wait job/demo --for clock=100 --timeout 1h", "every worker has finished 100 clocks"},
    {"pscli wait job/demo --for over --timeout 12h",
     "until the job has ended, one way or the other"},
    {"pscli wait table/w --for copies", "until every partition has all copies in sync"},
    {"pscli wait node/b --for up", "until node \"b\" is back"},
    {NULL, NULL}};
static const ps_opt_t WAIT_OPTIONS[] = {
    {.name = "for",
     .kind = PS_OPT_TEXT,
     .value = "CONDITION",
     .help = "of cluster: healthy, nodes=N; of a node: up, down, gone, empty; of a table: there, "
             "gone, copies; of a job: running, finished, stopped, lost, over (not running), "
             "clock=N. Required"},
    {.name = NULL}};

static const ps_example_t TOP_EXAMPLES[] = {
    {"pscli top", "nodes, tables and jobs with their rates; q quits"},
    {"pscli top --every 5s", "a look every five seconds"},
    {"pscli top --once -o json | jq '.tables[] | {name, pushes_s}'", "for a script"},
    {NULL, NULL}};
static const ps_opt_t TOP_OPTIONS[] = {
    {.name = "every",
     .kind = PS_OPT_DURATION,
     .value = "DURATION",
     .min = 100,
     .max = 3600000,
     .fallback = "1s",
     .help = "time between two looks, which rates are made from"},
    {.name = "once",
     .help = "show it once, as text; the default where stdin or stdout is no terminal"},
    {.name = NULL}};

static const ps_example_t PAGE_EXAMPLES[] = {
    {"pscli page", "paste it into a browser of this host"},
    {"sudo pscli page", "of the psd that the package has installed"},
    {NULL, NULL}};
static const ps_example_t BUNDLE_EXAMPLES[] = {
    {"sudo pscli support-bundle --to psd.tar.gz", "before something is restarted"}, {NULL, NULL}};
static const ps_opt_t BUNDLE_OPTIONS[] = {
    {.name = "to",
     .kind = PS_OPT_TEXT,
     .value = "FILE",
     .help = "output file; compressed when it ends with .gz or .zst; \"-\" is stdout. Required"},
    {.name = "data-dir",
     .kind = PS_OPT_TEXT,
     .value = "DIR",
     .help = "data directory of the psd of this host; default: as \"pscli page\" has it"},
    {.name = NULL}};
static const ps_opt_t PAGE_OPTIONS[] = {
    {.name = "data-dir",
     .kind = PS_OPT_TEXT,
     .value = "DIR",
     .help = "data directory of psd; default: $PSD_DATA_DIR, else that of this user's psd, else "
             "/var/lib/psd"},
    {.name = NULL}};

static const ps_example_t DOCTOR_EXAMPLES[] = {
    {"pscli doctor", "run this before you ask for help"},
    {"pscli doctor -o json | jq '.checks[] | select(.cure != \"\")'", "only the findings"},
    {"sudo pscli doctor --data-dir /var/lib/psd", "also check the disk"},
    {NULL, NULL}};
static const ps_opt_t DOCTOR_OPTIONS[] = {
    {.name = "data-dir",
     .kind = PS_OPT_TEXT,
     .value = "DIR",
     .help = "data directory of the psd of this host, to look at its disk; default: $PSD_DATA_DIR, "
             "else the disk is not looked at"},
    {.name = NULL}};

const ps_cmd_t ps_cmds_watch[] = {
    {.noun = "check",
     .arguments = "[WHAT]",
     .max_args = 1,
     .complete = "check",
     .summary = "verdicts for monitoring",
     .details =
         "WHAT is health (problems that \"cluster status\" names; a warning for its warnings), "
         "lag (the copy that is furthest from its primary), clocks (the worker that waits "
         "longest), or backup (the newest whole checkpoint); without it all but backup. Exit code "
         "1 when one is not ok. With --format nagios: 0 ok, 1 warning, 2 critical, 3 unknown, also "
         "where no psd answers.",
     .examples = CHECK_EXAMPLES,
     .options = CHECK_OPTIONS,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_check},
    {.noun = "doctor",
     .arguments = "",
     .summary = "find common problems, and how to fix them",
     .details =
         "settings: PSD_ variables with invalid values. key: the file that PSD_KEY_FILE names. "
         "endpoint: whether it answers, and if not, why. version: of psd and pscli. cluster: "
         "the problems and warnings of \"cluster status\". shards: row 0 of the first table, "
         "and by which transport it came. files: the limit of open files in this shell; less "
         "than 1024 is a finding. locked: how much memory this shell may lock; less than 64 KiB "
         "is a finding. memory: free space in /dev/shm, which shared-memory "
         "connections (lanes) use. disk: free space in the data directory. Less than 64 MiB "
         "free is a finding. What the caller may not look at is skipped, which is no finding. Exit "
         "code: 0 without findings, else 1.",
     .examples = DOCTOR_EXAMPLES,
     .options = DOCTOR_OPTIONS,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_doctor},
    {.noun = "slow",
     .arguments = "[TABLE]",
     .max_args = 1,
     .complete = "table",
     .summary = "the slowest requests, and where their time went",
     .details =
         "Pushes, pulls, marks and bundles of which one part took log.slow_ms (200 ms) or longer, "
         "the slowest first. GATE: the request was held, at first for slower workers. QUEUE: it "
         "was held, at first for something else. WORK: the shard received, applied and answered "
         "it, with what it let through. COPIES: its answer waited for copies. FLUSH: its answer "
         "waited for the disk. HELD_FOR, which -o wide shows with more columns, says what held it "
         "at first: clock (then its time is in GATE), order, copies, disk, level, restore, "
         "checkpoint, worker, other_table or memory. Parts of a request that was sent again add "
         "up. Each shard keeps 128 requests, in memory. When full, a new one replaces one older "
         "than a minute, or else the fastest, where time at the gate counts last.",
     .examples = SLOW_EXAMPLES,
     .options = SLOW_OPTIONS,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_slow},
    {.noun = "wait",
     .arguments = "TARGET",
     .min_args = 1,
     .max_args = 1,
     .summary = "wait until a condition holds",
     .details = "TARGET is cluster, node/NAME, table/NAME or job/NAME. pscli also waits for a "
                "TARGET that is not there yet. --timeout bounds the whole wait; after it the exit "
                "code is 7, and the message says what holds instead.",
     .examples = WAIT_EXAMPLES,
     .options = WAIT_OPTIONS,
     .run = ps_cmd_wait},
    {.noun = "top",
     .arguments = "",
     .summary = "the cluster at work: rates of tables and jobs",
     .details = "What is not well is red and comes first, then what is busiest. When the cluster "
                "does not answer, pscli goes on asking, and the last line says so.",
     .examples = TOP_EXAMPLES,
     .options = TOP_OPTIONS,
     .run = ps_cmd_top},
    {.noun = "page",
     .arguments = "",
     .summary = "the link that opens psd's page",
     .details = "The link has the token of psd's HTTP port, from the file http.token in its data "
                "directory: whoever has it may look at everything, and change nothing. The token "
                "is after \"#\": browsers keep that part to themselves. Paste it: every user of "
                "the host sees the arguments of a command, such as xdg-open.",
     .examples = PAGE_EXAMPLES,
     .options = PAGE_OPTIONS,
     .run = ps_cmd_page},
    {.noun = "support-bundle",
     .arguments = "",
     .summary = "what somebody who helps wants to see, in one file",
     .details =
         "A tar file with the documents of the cluster, its nodes, tables, jobs, settings "
         "and the last 2000 events; the metrics and health of the psd of "
         "this host, its limits and mounts; and this machine's memory. What cannot be had is "
         "named in it. It has no values of rows, and no token, key or secret: names of "
         "nodes, tables and jobs, and addresses, are in it.",
     .examples = BUNDLE_EXAMPLES,
     .options = BUNDLE_OPTIONS,
     .run = ps_cmd_support_bundle},
    {.noun = NULL}};
