/* SPDX-License-Identifier: Apache-2.0 */
/* The commands about checkpoints. */
#include "cli/options/commands.h"

#include "cli/jobs/jobs.h"

static const ps_example_t CREATE_EXAMPLES[] = {
    {"pscli checkpoint create monday", "all tables, while jobs run"},
    {"pscli checkpoint create monday --table w --table b", "tables \"w\" and \"b\""},
    {"pscli checkpoint create noon --job lr",
     "job \"lr\" after one clock: its tables, clock and work queues"},
    {"pscli checkpoint create lr --job lr --every 10m --keep 3",
     "lr-1, lr-2, ... while the job runs"},
    {"pscli checkpoint create tuesday --since monday", "only rows that changed since \"monday\""},
    {NULL, NULL}};
static const ps_opt_t CREATE_OPTIONS[] = {
    {.name = "every",
     .kind = PS_OPT_DURATION,
     .value = "DURATION",
     .min = 1000,
     .max = 604800000,
     .help = "create NAME-1, NAME-2, ..., one per DURATION, until interrupted or the job ends"},
    {.name = "keep",
     .kind = PS_OPT_U64,
     .value = "N",
     .min = 1,
     .max = 1000000,
     .help = "with --every: keep the newest N and drop older ones; default: keep all"},
    {.name = "job",
     .kind = PS_OPT_TEXT,
     .value = "JOB",
     .help = "all tables of this job, exactly as after one of its clocks, with its work queues"},
    {.name = "since",
     .kind = PS_OPT_TEXT,
     .value = "NAME",
     .help = "only rows that changed since that checkpoint"},
    {.name = "table",
     .kind = PS_OPT_TEXT,
     .value = "T",
     .many = true,
     .help = "only this table; may be repeated; default: all"},
    {.name = NULL}};
static const ps_example_t LIST_EXAMPLES[] = {
    {"pscli checkpoint list", "every checkpoint, and whether it is complete"}, {NULL, NULL}};
static const ps_example_t INSPECT_EXAMPLES[] = {
    {"pscli checkpoint inspect monday", "its files, clocks and rows"}, {NULL, NULL}};
static const ps_example_t VERIFY_EXAMPLES[] = {
    {"pscli checkpoint verify monday", "reads every byte of it"}, {NULL, NULL}};
static const ps_example_t DROP_EXAMPLES[] = {
    {"pscli checkpoint drop monday", "asks first"},
    {"pscli checkpoint drop monday --yes", "does not ask; for scripts"},
    {NULL, NULL}};
#define WORKERS_OPTION                                                              \
    {                                                                               \
        .name = "workers", .kind = PS_OPT_U64, .value = "N", .min = 1, .max = 4096, \
        .help = "number of workers of the resumed job; default: as before"          \
    }
#define EPOCHS_OPTION                                                                    \
    {                                                                                    \
        .name = "epochs", .kind = PS_OPT_U64, .value = "N", .min = 1, .max = 1000000000, \
        .help = "total number of epochs of the job's work queues; default: as before"    \
    }
static const ps_example_t RESUME_EXAMPLES[] = {
    {"pscli checkpoint resume noon --job lr",
     "take job \"lr\" back to \"noon\"; then start its workers"},
    {"pscli checkpoint resume noon --job lr --epochs 20", "the same, with 20 epochs in total"},
    {NULL, NULL}};
static const ps_opt_t RESUME_OPTIONS[] = {
    {.name = "job", .kind = PS_OPT_TEXT, .value = "JOB", .help = "the job to resume"},
    WORKERS_OPTION,
    EPOCHS_OPTION,
    {.name = NULL}};
static const ps_example_t RESTORE_EXAMPLES[] = {
    {"pscli checkpoint restore monday", "restores all of its tables"},
    {"pscli checkpoint restore monday --table w --as w2 --partitions 16",
     "table \"w\" under another name, with 16 partitions"},
    {NULL, NULL}};
static const ps_opt_t RESTORE_OPTIONS[] = {
    {.name = "job",
     .kind = PS_OPT_TEXT,
     .value = "JOB",
     .help = "only the clock and queues of this job, no table"},
    WORKERS_OPTION,
    EPOCHS_OPTION,
    {.name = "table",
     .kind = PS_OPT_TEXT,
     .value = "T",
     .many = true,
     .help = "only this table; may be repeated; default: all"},
    {.name = "as",
     .kind = PS_OPT_TEXT,
     .value = "NAME",
     .help = "new name of the table; default: as before"},
    {.name = "partitions",
     .kind = PS_OPT_U64,
     .value = "N",
     .min = 1,
     .max = 4096,
     .help = "number of partitions; default: as before"},
    {.name = "replicas",
     .kind = PS_OPT_U64,
     .value = "N",
     .min = 1,
     .max = 8,
     .help = "number of copies; default: as before"},
    {.name = "ack",
     .kind = PS_OPT_TEXT,
     .value = "LEVEL",
     .help = "memory, replica or disk; default: as before"},
    {.name = NULL}};

const ps_cmd_t ps_cmds_checkpoint[] = {
    {.noun = "checkpoint",
     .verb = "create",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .summary = "write tables to files, while jobs run",
     .details =
         "Each partition is written as it was at one moment. If one job with clocks uses the "
         "tables, that moment is right after the same clock in all of them: under BSP, exactly the "
         "result of these clocks. The files are in checkpoint.dir/NAME, which all nodes must see. "
         "The manifest is written last; without it there is no checkpoint.\n\n--job makes a "
         "checkpoint that the job can continue from. It waits until all workers have finished the "
         "clock after the furthest worker's current clock. Pushes of later clocks, and requests to "
         "work "
         "queues after it, wait meanwhile (60 s at most, then the checkpoint fails). The tables "
         "contain the pushes up to that clock and no later one, also under SSP. A slice of a work "
         "queue counts as done if its worker reported it before finishing that clock.\n\n--since "
         "needs tables that keep versions (table create --versions), and the earlier checkpoint "
         "for as long as this one is kept. A partition is written with all rows if psd cannot tell "
         "what changed: records were lost with a node, or the table was recreated.",
     .examples = CREATE_EXAMPLES,
     .options = CREATE_OPTIONS,
     .run = ps_cmd_checkpoint_create},
    {.noun = "checkpoint",
     .verb = "list",
     .arguments = "",
     .summary = "list the checkpoints",
     .details = "",
     .examples = LIST_EXAMPLES,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_checkpoint_list},
    {.noun = "checkpoint",
     .verb = "inspect",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .summary = "show what a checkpoint contains",
     .details = "",
     .examples = INSPECT_EXAMPLES,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_checkpoint_inspect},
    {.noun = "checkpoint",
     .verb = "verify",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .summary = "read and check every byte of a checkpoint",
     .details =
         "Every file that the manifest names must exist and match it; so must the files of the "
         "checkpoints that it depends on (--since). The error names file and byte.",
     .examples = VERIFY_EXAMPLES,
     .run = ps_cmd_checkpoint_verify},
    {.noun = "checkpoint",
     .verb = "restore",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .summary = "restore tables from a checkpoint",
     .details = "No table of that name may exist. The table gets the rows, updater states and "
                "versions of the checkpoint, on any number of nodes and partitions. Clients wait "
                "until all rows are there.\n\nFrom a checkpoint made with --job, psd restores the "
                "job after the tables. The job waits without a time limit for its workers; start "
                "them as before. They continue after the checkpoint's clock and get the slices "
                "that were not done. A running job of that name must end first.",
     .examples = RESTORE_EXAMPLES,
     .options = RESTORE_OPTIONS,
     .run = ps_cmd_checkpoint_restore},
    {.noun = "checkpoint",
     .verb = "resume",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .summary = "take a job back to a checkpoint and resume it",
     .details = "For a job whose workers were killed, or that went wrong. Checks every byte of the "
                "checkpoint, stops the job if it runs, waits until all of its workers have ended "
                "or were declared lost (workers.lost_after_ms, for 60 s at most), drops the tables "
                "that the checkpoint has, and restores them and the job. Then start the workers as "
                "before: they continue after the checkpoint's clock and get the slices that were "
                "not done.\n\nAsks on a terminal before it drops tables; elsewhere it needs --yes. "
                "If interrupted, run it again. The checkpoint must have been made with --job. NAME "
                "can be that of a series (--every): its newest complete checkpoint is used.",
     .examples = RESUME_EXAMPLES,
     .options = RESUME_OPTIONS,
     .run = ps_cmd_checkpoint_resume},
    {.noun = "checkpoint",
     .verb = "drop",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .summary = "remove a checkpoint",
     .details =
         "Asks on a terminal; elsewhere it needs --yes. Also drops the rest of an interrupted "
         "checkpoint. A checkpoint that others depend on (--since) stays until they are dropped.",
     .examples = DROP_EXAMPLES,
     .run = ps_cmd_checkpoint_drop},
    {.noun = NULL}};
