/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that start, measure and explain. */
#include "cli/command.h"

#include "cli/cli.h"

#define MANY ((size_t)-1)

static const char *const LAUNCHERS[] = {"local", "ssh", "mpi", "slurm", NULL};
static const char *const TRANSPORTS[] = {"tcp", "ipc", "all", NULL};

static const ps_example_t RUN_EXAMPLES[] = {
    {"pscli run -n 4 -- ./train data.libsvm", "four workers, one a process"},
    {"pscli run -n 4 --max-delay 2 --job lr -- ./train data.libsvm",
     "at most two clocks apart, under the job name \"lr\""},
    {"pscli run -n 2 --servers 1 -- ./train data.libsvm",
     "with a psd of its own when none is running"},
    {NULL, NULL}};
static const ps_opt_t RUN_OPTIONS[] = {
    {.name = "workers",
     .letter = 'n',
     .kind = PS_OPT_U64,
     .value = "N",
     .min = 1,
     .max = 4096,
     .fallback = "1",
     .help = "how many workers to start"},
    {.name = "servers",
     .kind = PS_OPT_U64,
     .value = "M",
     .min = 0,
     .max = 4096,
     .fallback = "0",
     .help = "1: when no psd answers at the endpoint, start a private one in a "
             "temporary directory and stop it at the end"},
    {.name = "launcher",
     .kind = PS_OPT_CHOICE,
     .value = "LAUNCHER",
     .words = LAUNCHERS,
     .fallback = "local",
     .help = "where workers run; this version has local only"},
    {.name = "job",
     .kind = PS_OPT_TEXT,
     .value = "JOB",
     .help = "name of the job; default: PROGRAM and the time"},
    {.name = "max-delay",
     .kind = PS_OPT_I64,
     .value = "D",
     .fallback = "0",
     .help = "clocks that workers may be apart: 0 BSP, above 0 SSP, below 0 "
             "ASP"},
    {.name = "psd",
     .kind = PS_OPT_TEXT,
     .value = "PROGRAM",
     .help = "the private psd; default: beside pscli, else from PATH"},
    {.name = NULL}};

static const ps_opt_t BENCH_OPTIONS[] = {
    {.name = "transport",
     .kind = PS_OPT_CHOICE,
     .value = "TRANSPORT",
     .words = TRANSPORTS,
     .fallback = "all",
     .help = "how to talk to the shards"},
    {.name = "sizes",
     .kind = PS_OPT_TEXT,
     .value = "SIZES",
     .fallback = "4k,64k,1M,16M,64M",
     .help = "bytes of one dense row, with commas between; none: skip"},
    {.name = "keys",
     .kind = PS_OPT_U64,
     .value = "N",
     .min = 0,
     .max = 10000000,
     .fallback = "100000",
     .help = "keys of one request with many keys; 0: skip"},
    {.name = "floats",
     .kind = PS_OPT_TEXT,
     .value = "LIST",
     .fallback = "1,64",
     .help = "floats per key of the requests with many keys"},
    {.name = "in-flight",
     .kind = PS_OPT_U64,
     .value = "N",
     .min = 1,
     .max = 256,
     .fallback = "4",
     .help = "requests that are started before the first is waited for"},
    {.name = "repeats",
     .kind = PS_OPT_U64,
     .value = "N",
     .min = 1,
     .max = 1000,
     .fallback = "5",
     .help = "measurements of which the median is shown"},
    {.name = "duration",
     .kind = PS_OPT_DURATION,
     .value = "DURATION",
     .min = 1,
     .max = 600000,
     .fallback = "300ms",
     .help = "least length of one measurement (and of the warm-up)"},
    {.name = NULL}};
static const ps_opt_t LATENCY_OPTIONS[] = {
    {.name = "transport",
     .kind = PS_OPT_CHOICE,
     .value = "TRANSPORT",
     .words = TRANSPORTS,
     .fallback = "all",
     .help = "how to talk to the shards"},
    {.name = "requests",
     .kind = PS_OPT_U64,
     .value = "N",
     .min = 10,
     .max = 1000000,
     .fallback = "2000",
     .help = "requests of one measurement"},
    {.name = "repeats",
     .kind = PS_OPT_U64,
     .value = "N",
     .min = 1,
     .max = 1000,
     .fallback = "5",
     .help = "measurements of which the median is shown"},
    {.name = NULL}};
static const ps_example_t BENCH_PUSH_EXAMPLES[] = {
    {"pscli bench push", "rows of 4 KiB to 64 MiB, 100000 keys; tcp and ipc"},
    {"pscli bench push --sizes 1M --keys 0 --transport ipc --in-flight 8",
     "one figure"},
    {NULL, NULL}};
static const ps_example_t BENCH_PULL_EXAMPLES[] = {
    {"pscli bench pull", "rows of 4 KiB to 64 MiB, 100000 keys; tcp and ipc"},
    {"pscli bench pull -o csv > pull.csv", "for a spreadsheet"},
    {NULL, NULL}};
static const ps_example_t BENCH_PUSHPULL_EXAMPLES[] = {
    {"pscli bench pushpull", "both ways in one request"}, {NULL, NULL}};
static const ps_example_t BENCH_LATENCY_EXAMPLES[] = {
    {"pscli bench latency", "p50 and p99 of one small push and pull"},
    {"pscli bench latency --requests 100000", "a longer tail"},
    {NULL, NULL}};
#define BENCH_DETAILS                                                         \
    "Makes tables of its own and drops them at the end. Beside the figures "  \
    "stand the machine's limits: memcpy bandwidth and a raw tcp stream over " \
    "loopback. Goodput counts values only; a pushpull's values count once."

static const ps_example_t EXPLAIN_EXAMPLES[] = {
    {"pscli explain E2003", "what the code means and what to do"},
    {"pscli explain", "every code"},
    {NULL, NULL}};
static const ps_example_t COMPLETION_EXAMPLES[] = {
    {"source <(pscli completion bash)", "in ~/.bashrc"},
    {"pscli completion zsh > \"${fpath[1]}/_pscli\"", "for zsh"},
    {"pscli completion fish > ~/.config/fish/completions/pscli.fish",
     "for fish"},
    {NULL, NULL}};
static const ps_example_t HELP_EXAMPLES[] = {
    {"pscli help table create", "the same as pscli table create --help"},
    {"pscli help --man DIR", "writes the man pages to DIR"},
    {NULL, NULL}};
static const ps_opt_t HELP_OPTIONS[] = {{.name = "man",
                                         .kind = PS_OPT_TEXT,
                                         .value = "DIR",
                                         .help = "write every man page to DIR"},
                                        {.name = NULL}};

const ps_cmd_t ps_cmds_tool[] = {
    {.noun = "run",
     .arguments = "-- PROGRAM [ARGS...]",
     .min_args = 1,
     .max_args = MANY,
     .complete = "program",
     .summary = "start the workers of a job",
     .details =
         "Each worker finds PSD_ENDPOINT, PSD_JOB, PSD_WORKER (its rank), "
         "PSD_WORKERS and PSD_MAX_DELAY in its environment. Lines that it "
         "writes are shown with its rank in front; with -o json, jsonl, csv, "
         "tsv or name they all go to stderr, and how each worker ended goes "
         "to stdout. Signals are passed on to the workers; the third one "
         "kills them. The exit code is the worst of the workers' (128 + N for "
         "one that was killed by signal N).",
     .examples = RUN_EXAMPLES,
     .options = RUN_OPTIONS,
     .flags = PS_CMD_REST | PS_CMD_DRY_RUN,
     .run = ps_cmd_run},
    {.noun = "bench",
     .verb = "push",
     .arguments = "",
     .summary = "goodput of pushes",
     .details = BENCH_DETAILS,
     .examples = BENCH_PUSH_EXAMPLES,
     .options = BENCH_OPTIONS,
     .run = ps_cmd_bench},
    {.noun = "bench",
     .verb = "pull",
     .arguments = "",
     .summary = "goodput of pulls",
     .details = BENCH_DETAILS,
     .examples = BENCH_PULL_EXAMPLES,
     .options = BENCH_OPTIONS,
     .run = ps_cmd_bench},
    {.noun = "bench",
     .verb = "pushpull",
     .arguments = "",
     .summary = "goodput of pushes that pull the same rows back",
     .details = BENCH_DETAILS,
     .examples = BENCH_PUSHPULL_EXAMPLES,
     .options = BENCH_OPTIONS,
     .run = ps_cmd_bench},
    {.noun = "bench",
     .verb = "latency",
     .arguments = "",
     .summary = "p50 and p99 of one small request",
     .details = "One row of one float, one request at a time. Makes a table "
                "of its own and drops it at the end.",
     .examples = BENCH_LATENCY_EXAMPLES,
     .options = LATENCY_OPTIONS,
     .run = ps_cmd_bench_latency},
    {.noun = "explain",
     .arguments = "[CODE]",
     .max_args = 1,
     .complete = "code",
     .summary = "what an error code means and what to do",
     .details = "CODE is as errors show it (E2003), or its name (NO_TABLE). "
                "Needs no psd.",
     .examples = EXPLAIN_EXAMPLES,
     .run = ps_cmd_explain},
    {.noun = "completion",
     .arguments = "SHELL",
     .min_args = 1,
     .max_args = 1,
     .complete = "shell",
     .summary = "write completion for bash, zsh or fish",
     .details = "",
     .examples = COMPLETION_EXAMPLES,
     .run = ps_cmd_completion},
    {.noun = "help",
     .arguments = "[COMMAND [VERB]]",
     .max_args = 2,
     .complete = "command",
     .summary = "help for a command",
     .details = "",
     .examples = HELP_EXAMPLES,
     .options = HELP_OPTIONS,
     .run = ps_cmd_help},
    {.noun = NULL}};
