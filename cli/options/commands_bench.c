/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that measure. */
#include "cli/options/commands.h"

#include "cli/bench/bench.h"

static const char *const TRANSPORTS[] = {"tcp", "ipc", "lane", "all", NULL};

/* Of push, pull and pushpull. */
#define BENCH_OPTIONS                                                                              \
    {.name = "transport",                                                                          \
     .kind = PS_OPT_CHOICE,                                                                        \
     .value = "TRANSPORT",                                                                         \
     .words = TRANSPORTS,                                                                          \
     .fallback = "all",                                                                            \
     .help = "transport to the shards"},                                                           \
        {.name = "sizes",                                                                          \
         .kind = PS_OPT_TEXT,                                                                      \
         .value = "SIZES",                                                                         \
         .fallback = "4k,64k,1M,16M,64M",                                                          \
         .help = "bytes of one dense row, separated by commas; none: skip"},                       \
        {.name = "keys",                                                                           \
         .kind = PS_OPT_COUNT,                                                                     \
         .value = "N",                                                                             \
         .min = 0,                                                                                 \
         .max = 10000000,                                                                          \
         .fallback = "100000",                                                                     \
         .help = "keys of one request with many keys; 0: skip"},                                   \
        {.name = "floats",                                                                         \
         .kind = PS_OPT_TEXT,                                                                      \
         .value = "LIST",                                                                          \
         .fallback = "1,64",                                                                       \
         .help = "floats per key of the requests with many keys"},                                 \
        {.name = "random",                                                                         \
         .kind = PS_OPT_COUNT,                                                                     \
         .value = "ROWS",                                                                          \
         .min = 0,                                                                                 \
         .max = 1000000000,                                                                        \
         .fallback = "0",                                                                          \
         .help = "draw the keys of each request from ROWS random ones of a hash "                  \
                 "table; 0: ascending rows of a range table"},                                     \
        {.name = "partitions",                                                                     \
         .kind = PS_OPT_U64,                                                                       \
         .value = "N",                                                                             \
         .min = 0,                                                                                 \
         .max = 4096,                                                                              \
         .fallback = "0",                                                                          \
         .help = "partitions of the tables; 0: psd's default"},                                    \
        {.name = "in-flight",                                                                      \
         .kind = PS_OPT_U64,                                                                       \
         .value = "N",                                                                             \
         .min = 1,                                                                                 \
         .max = 256,                                                                               \
         .fallback = "4",                                                                          \
         .help = "requests in flight"},                                                            \
        {.name = "workers",                                                                        \
         .kind = PS_OPT_U64,                                                                       \
         .value = "N",                                                                             \
         .min = 1,                                                                                 \
         .max = 64,                                                                                \
         .fallback = "1",                                                                          \
         .help = "threads, each with its own client"},                                             \
        {.name = "repeats",                                                                        \
         .kind = PS_OPT_U64,                                                                       \
         .value = "N",                                                                             \
         .min = 1,                                                                                 \
         .max = 1000,                                                                              \
         .fallback = "5",                                                                          \
         .help = "number of measurements; the median is shown"},                                   \
    {                                                                                              \
        .name = "duration", .kind = PS_OPT_DURATION, .value = "DURATION", .min = 1, .max = 600000, \
        .fallback = "300ms", .help = "minimum length of one measurement (and of the warm-up)"      \
    }

static const ps_opt_t PULL_OPTIONS[] = {BENCH_OPTIONS, {.name = NULL}};
static const ps_opt_t PUSH_OPTIONS[] = {
    BENCH_OPTIONS,
    {.name = "in-place",
     .help = "write values where the shard reads them (over a lane); with --in-flight 1 the time "
             "of writing is not counted"},
    {.name = NULL}};
static const ps_opt_t LATENCY_OPTIONS[] = {{.name = "transport",
                                            .kind = PS_OPT_CHOICE,
                                            .value = "TRANSPORT",
                                            .words = TRANSPORTS,
                                            .fallback = "all",
                                            .help = "transport to the shards"},
                                           {.name = "floats",
                                            .kind = PS_OPT_U64,
                                            .value = "N",
                                            .min = 1,
                                            .max = 1024,
                                            .fallback = "16",
                                            .help = "floats of the row"},
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
                                            .help = "number of measurements; the median is shown"},
                                           {.name = NULL}};
static const ps_opt_t SUITE_OPTIONS[] = {
    {.name = "quick",
     .help = "one worker and one shard: dense, sparse and small requests (default)"},
    {.name = "full",
     .help =
         "also by row width, number of rows (up to 100 M, and while it grows), workers and shards"},
    {.name = "only",
     .kind = PS_OPT_TEXT,
     .value = "SECTIONS",
     .help = "of dense, sparse, small, width, rows, grow, workers, shards; separated by commas"},
    {.name = "transport",
     .kind = PS_OPT_CHOICE,
     .value = "TRANSPORT",
     .words = TRANSPORTS,
     .fallback = "all",
     .help = "transport to the shards"},
    {.name = "repeats",
     .kind = PS_OPT_U64,
     .value = "N",
     .min = 1,
     .max = 1000,
     .fallback = "5",
     .help = "number of measurements; the median is shown"},
    {.name = "duration",
     .kind = PS_OPT_DURATION,
     .value = "DURATION",
     .min = 1,
     .max = 600000,
     .fallback = "200ms",
     .help = "minimum length of one measurement"},
    {.name = "divide",
     .kind = PS_OPT_U64,
     .value = "N",
     .min = 1,
     .max = 1000000,
     .fallback = "1",
     .help = "N times smaller requests and tables, for a trial"},
    {.name = "svg", .kind = PS_OPT_TEXT, .value = "FILE", .help = "draw the results to FILE"},
    {.name = "psd",
     .kind = PS_OPT_TEXT,
     .value = "PROGRAM",
     .help = "psd to measure; default: the one next to pscli, else from PATH"},
    {.name = NULL}};
static const ps_example_t BENCH_PUSH_EXAMPLES[] = {
    {"pscli bench push", "rows of 4 KiB to 64 MiB, 100000 keys; tcp, ipc, lane"},
    {"pscli bench push --sizes 1M --keys 0 --transport ipc --in-flight 8", "one figure"},
    {NULL, NULL}};
static const ps_example_t BENCH_PULL_EXAMPLES[] = {
    {"pscli bench pull", "rows of 4 KiB to 64 MiB, 100000 keys; tcp, ipc, lane"},
    {"pscli bench pull -o csv > pull.csv", "for a spreadsheet"},
    {NULL, NULL}};
static const ps_example_t BENCH_PUSHPULL_EXAMPLES[] = {
    {"pscli bench pushpull", "both ways in one request"}, {NULL, NULL}};
static const ps_example_t BENCH_LATENCY_EXAMPLES[] = {
    {"pscli bench latency", "p50, p99, p99.9 of one small push and pull"},
    {"pscli bench latency --requests 100000 --transport ipc", "a longer tail"},
    {NULL, NULL}};
static const ps_example_t BENCH_SUITE_EXAMPLES[] = {
    {"pscli bench suite", "the figures of docs/performance.md, in minutes"},
    {"pscli bench suite --full --svg bench.svg -o json > bench.json", "everything, with a picture"},
    {"pscli bench suite --only small --transport lane", "one section"},
    {NULL, NULL}};
#define BENCH_DETAILS                                                                             \
    "Creates its own tables and drops them at the end. Each request has other keys and values, "  \
    "from memory that rotates and that no core's cache holds. In alternation with the requests "  \
    "it measures the machine's limits, each between two separate processes. RATIO is the median " \
    "of the repeats, each divided by the limit (named in -o wide and json) of the same round. "   \
    "Goodput counts values only; a pushpull's values count once. \"lane\" is shared memory with " \
    "a psd on this machine."

const ps_cmd_t ps_cmds_bench[] = {
    {.noun = "bench",
     .verb = "push",
     .arguments = "",
     .summary = "measure goodput of pushes",
     .details = BENCH_DETAILS,
     .examples = BENCH_PUSH_EXAMPLES,
     .options = PUSH_OPTIONS,
     .run = ps_cmd_bench},
    {.noun = "bench",
     .verb = "pull",
     .arguments = "",
     .summary = "measure goodput of pulls",
     .details = BENCH_DETAILS,
     .examples = BENCH_PULL_EXAMPLES,
     .options = PULL_OPTIONS,
     .run = ps_cmd_bench},
    {.noun = "bench",
     .verb = "pushpull",
     .arguments = "",
     .summary = "measure goodput of pushes that pull the same rows back",
     .details = BENCH_DETAILS,
     .examples = BENCH_PUSHPULL_EXAMPLES,
     .options = PULL_OPTIONS,
     .run = ps_cmd_bench},
    {.noun = "bench",
     .verb = "latency",
     .arguments = "",
     .summary = "measure p50, p99 and p99.9 of one small request",
     .details =
         "One row, one request at a time. Creates its own table and drops it at the end. RATIO is "
         "p50 divided by that of a round trip over libzmq and tcp or, with the lane, over shared "
         "memory with both sides spinning, measured in alternation with the requests.",
     .examples = BENCH_LATENCY_EXAMPLES,
     .options = LATENCY_OPTIONS,
     .run = ps_cmd_bench_latency},
    {.noun = "bench",
     .verb = "suite",
     .arguments = "",
     .summary = "run all measurements and compare with the machine's limits",
     .details = "Starts a private psd (in a temporary directory, with the number of shards that a "
                "line shows) and measures line by line. Each repeat measures the limits and then "
                "each transport once, so that a change of the machine's speed affects both. "
                "Requests and RATIO are as in bench push.",
     .examples = BENCH_SUITE_EXAMPLES,
     .options = SUITE_OPTIONS,
     .run = ps_cmd_bench_suite},
    {.noun = NULL}};
