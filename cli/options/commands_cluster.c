/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that look at the cluster, its nodes, jobs, workers, clocks. */
#include "cli/options/command.h"

#include "cli/cli.h"

static const ps_example_t STATUS_EXAMPLES[] = {
    {"pscli cluster status", "one screen: nodes, tables, jobs, what is wrong"},
    {"pscli cluster status --watch 2s", "the same, again every two seconds"},
    {"pscli cluster status -o json", "for a script; .problems says what is wrong"},
    {NULL, NULL}};

static const ps_example_t EVENTS_EXAMPLES[] = {
    {"pscli cluster events", "what happened, oldest first"},
    {"pscli cluster events -n 20", "the last 20"},
    {NULL, NULL}};
static const ps_opt_t EVENTS_OPTIONS[] = {{.name = "last",
                                           .letter = 'n',
                                           .kind = PS_OPT_U64,
                                           .value = "N",
                                           .min = 1,
                                           .max = 10000,
                                           .fallback = "1000",
                                           .help = "only the last N events"},
                                          {.name = NULL}};

static const ps_example_t BACKUP_EXAMPLES[] = {
    {"pscli cluster backup --to psd.backup", "while the cluster works on"}, {NULL, NULL}};
static const ps_opt_t BACKUP_OPTIONS[] = {{.name = "to",
                                           .kind = PS_OPT_TEXT,
                                           .value = "FILE",
                                           .help = "where to; packed when it ends "
                                                   "with .gz or .zst; \"-\" "
                                                   "is stdout. Required"},
                                          {.name = NULL}};
static const ps_example_t RESTORE_EXAMPLES[] = {
    {"pscli cluster restore --from psd.backup --data-dir /var/lib/psd",
     "before psd is started there"},
    {NULL, NULL}};
static const ps_opt_t RESTORE_OPTIONS[] = {
    {.name = "from",
     .kind = PS_OPT_TEXT,
     .value = "FILE",
     .help = "what \"cluster backup\" wrote, packed or not; \"-\" is stdin. "
             "Required"},
    {.name = "data-dir",
     .kind = PS_OPT_TEXT,
     .value = "DIR",
     .help = "data directory of the registry's node, which has no registry. "
             "Required"},
    {.name = NULL}};

static const ps_example_t NODE_LIST_EXAMPLES[] = {
    {"pscli node list", "every node, its state and what it holds"},
    {"pscli node list -o name", "only the names, one a line"},
    {NULL, NULL}};
static const ps_example_t NODE_INSPECT_EXAMPLES[] = {
    {"pscli node inspect a", "all that is known of node \"a\""}, {NULL, NULL}};

static const ps_example_t DRAIN_EXAMPLES[] = {
    {"pscli node drain a", "waits until nothing is left on node \"a\""},
    {"pscli node drain a --no-wait", "only begins it"},
    {"pscli node drain a --dry-run", "what would move, bytes and time"},
    {"pscli node drain a --stay", "it stays after all"},
    {NULL, NULL}};
static const ps_opt_t DRAIN_OPTIONS[] = {
    {.name = "no-wait",
     .help = "do not wait until nothing is left. Who waits sees how much is "
             "left, and, when nothing can go anywhere for --timeout, the "
             "reason and exit code 7; the drain goes on"},
    {.name = "stay", .help = "end the drain: the node gets copies again"},
    {.name = NULL}};
static const ps_example_t REMOVE_EXAMPLES[] = {
    {"pscli node remove a", "node \"a\", drained and stopped"},
    {"pscli node remove a --force", "node \"a\" is lost, with all it had"},
    {NULL, NULL}};
static const ps_opt_t REMOVE_OPTIONS[] = {
    {.name = "force",
     .help = "also with copies on it, when it is down; rows that only it had "
             "are lost"},
    {.name = NULL}};
static const ps_example_t REBALANCE_EXAMPLES[] = {
    {"pscli cluster rebalance", "even the nodes out; says what moves"},
    {"pscli cluster rebalance --dry-run", "what would move, bytes and time"},
    {NULL, NULL}};
static const ps_example_t REPAIR_EXAMPLES[] = {
    {"pscli cluster repair", "the copies that are missing or catch up"},
    {"pscli cluster repair --wait", "until every partition has all copies"},
    {NULL, NULL}};

static const ps_example_t JOB_LIST_EXAMPLES[] = {
    {"pscli job list", "every job with its state and clocks"},
    {"pscli job list -o jsonl", "one JSON object a line"},
    {NULL, NULL}};
static const ps_example_t JOB_INSPECT_EXAMPLES[] = {
    {"pscli job inspect lr", "all that is known of job \"lr\""}, {NULL, NULL}};
static const ps_example_t JOB_STOP_EXAMPLES[] = {
    {"pscli job stop lr", "its workers' next push, pull or clock fails"},
    {"pscli job stop lr --dry-run", "says what would be stopped"},
    {NULL, NULL}};
static const ps_example_t WORKER_LIST_EXAMPLES[] = {
    {"pscli worker list lr", "rank, state and clock of each worker"}, {NULL, NULL}};
static const ps_example_t CLOCK_LIST_EXAMPLES[] = {
    {"pscli clock list", "slowest and fastest worker of every job"},
    {"pscli clock list --watch 1s", "the same, every second"},
    {NULL, NULL}};
static const ps_example_t CLOCK_INSPECT_EXAMPLES[] = {
    {"pscli clock inspect lr", "each worker's clock and whom it waits for"},
    {"pscli clock inspect lr -o json", "the same for a script"},
    {NULL, NULL}};
static const ps_example_t WHY_EXAMPLES[] = {
    {"pscli why lr", "one line for each worker that waits, with the reason"},
    {"pscli why", "of the only job that runs"},
    {NULL, NULL}};

const ps_cmd_t ps_cmds_cluster[] = {
    {.noun = "cluster",
     .verb = "status",
     .arguments = "",
     .summary = "one screen: nodes, shards, tables, jobs, what is wrong",
     .details = "The exit code is 0 only when the cluster is healthy, else 1. "
                "A psd that does not answer within half a second is looked "
                "into: of one on this host the thread that hangs is named, of "
                "one elsewhere the port that is silent (--timeout: after that "
                "time).",
     .examples = STATUS_EXAMPLES,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_cluster_status},
    {.noun = "cluster",
     .verb = "events",
     .arguments = "",
     .summary = "the history of what happened",
     .details = "The registry keeps one event for each change: nodes that "
                "started, tables made and dropped, workers that came, "
                "finished or were lost.",
     .examples = EVENTS_EXAMPLES,
     .options = EVENTS_OPTIONS,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_cluster_events},
    {.noun = "cluster",
     .verb = "rebalance",
     .arguments = "",
     .summary = "move copies until the nodes are even",
     .details = "Shows the moves, their bytes and time. The nodes do so by "
                "themselves, a few at a time, where copies.even_out is true; "
                "pushes and pulls go on meanwhile.",
     .examples = REBALANCE_EXAMPLES,
     .flags = PS_CMD_DRY_RUN,
     .run = ps_cmd_cluster_rebalance},
    {.noun = "cluster",
     .verb = "repair",
     .arguments = "",
     .summary = "what is missing of the copies, and how far it is",
     .details = "Each copy that is made, or has to be, with its bytes and the "
                "time that the rest takes. Changes nothing: lost copies are "
                "made anew without it. With --wait until nothing is missing, "
                "saying how much is; when nothing is on its way for --timeout, "
                "exit code 7.",
     .examples = REPAIR_EXAMPLES,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_cluster_repair},
    {.noun = "cluster",
     .verb = "backup",
     .arguments = "",
     .summary = "the registry as a file",
     .details = "A whole SQLite database with the cluster's name, nodes, "
                "tables, jobs, history. It has no rows of tables: those are "
                "with the nodes.",
     .examples = BACKUP_EXAMPLES,
     .options = BACKUP_OPTIONS,
     .run = ps_cmd_cluster_backup},
    {.noun = "cluster",
     .verb = "restore",
     .arguments = "",
     .summary = "a registry out of a backup, on this machine",
     .details = "The file is checked as a start of psd would, and becomes the "
                "registry of a data directory that has none. What has happened "
                "since the backup is not in it; its numbers go on far above "
                "those of the backup, so that nothing that nodes and clients "
                "still know is given out twice.",
     .examples = RESTORE_EXAMPLES,
     .options = RESTORE_OPTIONS,
     .run = ps_cmd_cluster_restore},
    {.noun = "node",
     .verb = "list",
     .arguments = "",
     .summary = "every node of the cluster",
     .details = "",
     .examples = NODE_LIST_EXAMPLES,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_node_list},
    {.noun = "node",
     .verb = "inspect",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .complete = "node",
     .summary = "all that is known of one node",
     .details = "",
     .examples = NODE_INSPECT_EXAMPLES,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_node_inspect},
    {.noun = "node",
     .verb = "drain",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .complete = "node",
     .summary = "move all copies away from a node",
     .details = "The node gets no more copies, and those that it has go to "
                "others; pushes and pulls go on meanwhile. What no other node "
                "can have stays, and is said; --stay ends the drain.",
     .examples = DRAIN_EXAMPLES,
     .options = DRAIN_OPTIONS,
     .flags = PS_CMD_DRY_RUN,
     .run = ps_cmd_node_drain},
    {.noun = "node",
     .verb = "remove",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .complete = "node",
     .summary = "forget a node",
     .details = "A node that is stopped and has no copies, or with --force one "
                "that is down and will not come back: where it had the last "
                "copies, rows are lost, and it asks on a terminal; anywhere "
                "else it needs --yes then. One that is up would join again "
                "and is refused.",
     .examples = REMOVE_EXAMPLES,
     .options = REMOVE_OPTIONS,
     .run = ps_cmd_node_remove},
    {.noun = "job",
     .verb = "list",
     .arguments = "",
     .summary = "every job",
     .details = "",
     .examples = JOB_LIST_EXAMPLES,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_job_list},
    {.noun = "job",
     .verb = "inspect",
     .arguments = "JOB",
     .min_args = 1,
     .max_args = 1,
     .complete = "job",
     .summary = "all that is known of one job",
     .details = "",
     .examples = JOB_INSPECT_EXAMPLES,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_job_inspect},
    {.noun = "job",
     .verb = "stop",
     .arguments = "JOB",
     .min_args = 1,
     .max_args = 1,
     .complete = "job",
     .summary = "stop a job",
     .details = "What its workers call next fails with E4004. What was "
                "acknowledged stays. A stopped job does not run again; start "
                "it under a new name.",
     .examples = JOB_STOP_EXAMPLES,
     .flags = PS_CMD_DRY_RUN,
     .run = ps_cmd_job_stop},
    {.noun = "worker",
     .verb = "list",
     .arguments = "JOB",
     .min_args = 1,
     .max_args = 1,
     .complete = "job",
     .summary = "the workers of a job",
     .details = "",
     .examples = WORKER_LIST_EXAMPLES,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_worker_list},
    {.noun = "clock",
     .verb = "list",
     .arguments = "",
     .summary = "the clocks of every job",
     .details = "A clock counts the periods that a worker has finished. "
                "max_delay bounds how far running workers may be apart: 0 is "
                "BSP, above 0 SSP, below 0 ASP (no bound).",
     .examples = CLOCK_LIST_EXAMPLES,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_clock_list},
    {.noun = "clock",
     .verb = "inspect",
     .arguments = "JOB",
     .min_args = 1,
     .max_args = 1,
     .complete = "job",
     .summary = "every worker's clock, spread, bound, who waits for whom",
     .details = "",
     .examples = CLOCK_INSPECT_EXAMPLES,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_clock_inspect},
    {.noun = "why",
     .arguments = "[JOB]",
     .min_args = 0,
     .max_args = 1,
     .complete = "job",
     .summary = "why a job is not moving, in one line per waiter",
     .details = "Without JOB: of the only job that runs.",
     .examples = WHY_EXAMPLES,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_why},
    {.noun = NULL}};
