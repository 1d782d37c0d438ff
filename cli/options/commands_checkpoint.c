/* SPDX-License-Identifier: Apache-2.0 */
/* The commands about checkpoints. */
#include "cli/options/command.h"

#include "cli/cli.h"

static const ps_example_t CREATE_EXAMPLES[] = {
    {"pscli checkpoint create monday", "all tables, while jobs go on"},
    {"pscli checkpoint create monday --table w --table b", "tables \"w\" and \"b\""},
    {"pscli checkpoint create noon --job lr",
     "job \"lr\" behind one clock: its tables, clock and work queues"},
    {"pscli checkpoint create lr --job lr --every 10m --keep 3",
     "lr-1, lr-2, ... while the job runs"},
    {"pscli checkpoint create tuesday --since monday",
     "only rows that have changed since \"monday\" was made"},
    {NULL, NULL}};
static const ps_opt_t CREATE_OPTIONS[] = {
    {.name = "every",
     .kind = PS_OPT_DURATION,
     .value = "DURATION",
     .min = 1000,
     .max = 604800000,
     .help = "one after the other, NAME-1, NAME-2, ..., until interrupted or "
             "the job has ended"},
    {.name = "keep",
     .kind = PS_OPT_U64,
     .value = "N",
     .min = 1,
     .max = 1000000,
     .help = "with --every: drop what is older than the newest N; else all "
             "stay"},
    {.name = "job",
     .kind = PS_OPT_TEXT,
     .value = "JOB",
     .help = "all tables of this job, exactly as behind one of its clocks, "
             "with its work queues"},
    {.name = "since",
     .kind = PS_OPT_TEXT,
     .value = "NAME",
     .help = "only rows that have changed since that checkpoint"},
    {.name = "table",
     .kind = PS_OPT_TEXT,
     .value = "T",
     .many = true,
     .help = "only this table, and those of further --table; else all"},
    {.name = NULL}};
static const ps_example_t LIST_EXAMPLES[] = {
    {"pscli checkpoint list", "every checkpoint, and whether it is whole"}, {NULL, NULL}};
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
        .help = "workers that the job goes on with; else as many as it had"         \
    }
#define EPOCHS_OPTION                                                                    \
    {                                                                                    \
        .name = "epochs", .kind = PS_OPT_U64, .value = "N", .min = 1, .max = 1000000000, \
        .help = "epochs that the job's work queues have now in all; else as "            \
                "many as they had"                                                       \
    }
static const ps_example_t RESUME_EXAMPLES[] = {
    {"pscli checkpoint resume noon --job lr",
     "job \"lr\" is as it was when \"noon\" was made; start its workers then"},
    {"pscli checkpoint resume noon --job lr --epochs 20",
     "the same, with work for 20 epochs in all"},
    {NULL, NULL}};
static const ps_opt_t RESUME_OPTIONS[] = {{.name = "job",
                                           .kind = PS_OPT_TEXT,
                                           .value = "JOB",
                                           .help = "the job of the checkpoint that shall go on"},
                                          WORKERS_OPTION,
                                          EPOCHS_OPTION,
                                          {.name = NULL}};
static const ps_example_t RESTORE_EXAMPLES[] = {
    {"pscli checkpoint restore monday", "makes all of its tables"},
    {"pscli checkpoint restore monday --table w --as w2 --partitions 16",
     "table \"w\" under another name, cut otherwise"},
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
     .help = "only this table, and those of further --table; else all"},
    {.name = "as",
     .kind = PS_OPT_TEXT,
     .value = "NAME",
     .help = "what the table is called; else as it was"},
    {.name = "partitions",
     .kind = PS_OPT_U64,
     .value = "N",
     .min = 1,
     .max = 4096,
     .help = "partitions of it; else as many as it had"},
    {.name = "replicas",
     .kind = PS_OPT_U64,
     .value = "N",
     .min = 1,
     .max = 8,
     .help = "copies of it; else as many as it had"},
    {.name = "ack",
     .kind = PS_OPT_TEXT,
     .value = "LEVEL",
     .help = "memory, replica or disk; else as it was"},
    {.name = NULL}};

const ps_cmd_t ps_cmds_checkpoint[] = {
    {.noun = "checkpoint",
     .verb = "create",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .summary = "rows and states of tables into files, while jobs go on",
     .details = "Each partition is written as it was at one moment. If one job with "
                "clocks uses the tables, that moment is right after the same clock in "
                "all of them: under BSP, exactly the result of these clocks. The files "
                "lie in checkpoint.dir/NAME, which all nodes must see. The manifest "
                "comes last; without it there is no checkpoint.\n\n"
                "--job makes a checkpoint that the job can continue from. It waits "
                "until all workers have finished the clock after the one that the "
                "furthest worker is in. Pushes of later clocks, and requests to work "
                "queues after it, wait meanwhile (60 s at most, then the checkpoint "
                "fails). The tables contain the pushes up to that clock and no later "
                "one, also under SSP. A slice of a work queue counts as done if its "
                "worker reported it before it finished that clock.\n\n"
                "--since needs tables that keep versions (table create --versions), "
                "and the earlier checkpoint for as long as this one is kept. A "
                "partition is written with all rows if psd cannot tell what has "
                "changed: records were lost with a node, or the table is another one.",
     .examples = CREATE_EXAMPLES,
     .options = CREATE_OPTIONS,
     .run = ps_cmd_checkpoint_create},
    {.noun = "checkpoint",
     .verb = "list",
     .arguments = "",
     .summary = "the checkpoints",
     .details = "",
     .examples = LIST_EXAMPLES,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_checkpoint_list},
    {.noun = "checkpoint",
     .verb = "inspect",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .summary = "what a checkpoint has",
     .details = "",
     .examples = INSPECT_EXAMPLES,
     .run = ps_cmd_checkpoint_inspect},
    {.noun = "checkpoint",
     .verb = "verify",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .summary = "reads every byte of a checkpoint",
     .details = "Every file must be there, whole, and the one that the manifest "
                "means; so must those of the checkpoints that it was made since. The "
                "error names file and byte.",
     .examples = VERIFY_EXAMPLES,
     .run = ps_cmd_checkpoint_verify},
    {.noun = "checkpoint",
     .verb = "restore",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .summary = "makes tables out of a checkpoint",
     .details = "A table of the name must not be there. Its rows, updater states "
                "and versions are those of the checkpoint, on however many nodes "
                "and partitions. Clients wait until all rows are there.\n\n"
                "A checkpoint that was made with --job brings its job back behind "
                "the tables: it waits, however long, for its workers, who are started "
                "as before. They go on behind the checkpoint's clock, and get the "
                "slices that were not done. A job of that name must have ended.",
     .examples = RESTORE_EXAMPLES,
     .options = RESTORE_OPTIONS,
     .run = ps_cmd_checkpoint_restore},
    {.noun = "checkpoint",
     .verb = "resume",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .summary = "take a job back to a checkpoint, to go on from there",
     .details = "For a job whose workers were killed, or that went wrong: reads every "
                "byte of the checkpoint first, stops the job if it runs, waits until "
                "all of its workers have ended or were declared lost "
                "(workers.lost_after_ms, for 60 s at most), drops the tables that the "
                "checkpoint has, and restores them and the job. Start the workers "
                "then as before: they go on after the checkpoint's clock, and get the "
                "slices that were not done.\n\n"
                "Asks on a terminal before it drops tables; anywhere else it needs "
                "--yes. When it was interrupted, run it again. The checkpoint is one "
                "that was made with --job; NAME may be that of a series (--every), "
                "whose newest whole one it is then.",
     .examples = RESUME_EXAMPLES,
     .options = RESUME_OPTIONS,
     .run = ps_cmd_checkpoint_resume},
    {.noun = "checkpoint",
     .verb = "drop",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .summary = "removes a checkpoint",
     .details = "Asks on a terminal; anywhere else it needs --yes. Also drops "
                "what an interrupted one has left. One that others were "
                "made since stays until they are dropped.",
     .examples = DROP_EXAMPLES,
     .run = ps_cmd_checkpoint_drop},
    {.noun = NULL}};
