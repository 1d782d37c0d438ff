/* SPDX-License-Identifier: Apache-2.0 */
/* The command that plans. */
#include "cli/options/commands.h"

#include "cli/cluster/cluster.h"

static const char *const TYPES[] = {"i32", "i64", "f32", "f64", NULL};
static const char *const ROW_FORMATS[] = {"dense", "sparse", "auto", NULL};
static const char *const KEYS[] = {"range", "hash", NULL};
static const char *const RULES[] = {"range", "hash", NULL};

static const ps_example_t PLAN_EXAMPLES[] = {
    {"pscli plan --rows 1e9 --cols 16 --updater adagrad",
     "a billion rows of 16 floats, with a sum of squares each"},
    {"pscli plan --rows 64M --keys hash --nodes 4 --shards 8", "any keys, on four machines"},
    {"pscli plan --rows 1M --cols 1e6 --row-format sparse --fill 0.001",
     "sparse rows of a thousand values each"},
    {NULL, NULL}};

static const ps_opt_t PLAN_OPTIONS[] = {
    {.name = "rows",
     .kind = PS_OPT_COUNT,
     .value = "N",
     .min = 1,
     .max = UINT64_C(1) << 40,
     .help = "expected number of rows (1e9, 64M). Required"},
    {.name = "cols",
     .kind = PS_OPT_COUNT,
     .value = "C",
     .min = 1,
     .max = UINT64_C(1) << 31,
     .fallback = "1",
     .help = "values in a row"},
    {.name = "type",
     .kind = PS_OPT_CHOICE,
     .value = "TYPE",
     .words = TYPES,
     .fallback = "f32",
     .help = "type of every value"},
    {.name = "row-format",
     .kind = PS_OPT_CHOICE,
     .value = "FORMAT",
     .words = ROW_FORMATS,
     .fallback = "dense",
     .help = "dense, sparse or auto, as of table create"},
    {.name = "keys",
     .kind = PS_OPT_CHOICE,
     .value = "KEYS",
     .words = KEYS,
     .fallback = "range",
     .help = "range or hash, as of table create"},
    {.name = "updater",
     .kind = PS_OPT_TEXT,
     .value = "RULE",
     .fallback = "add",
     .help = "rule that merges a delta, as of table create; some keep state"},
    {.name = "fill",
     .kind = PS_OPT_TEXT,
     .value = "F",
     .fallback = "1",
     .help = "sparse and auto rows: share of columns that are not zero, above 0, at most 1"},
    {.name = "partitions",
     .kind = PS_OPT_U64,
     .value = "P",
     .min = 1,
     .max = 4096,
     .help = "number of partitions; default: as a cluster chooses"},
    {.name = "partition-by",
     .kind = PS_OPT_CHOICE,
     .value = "RULE",
     .words = RULES,
     .help = "range or hash; default: as the keys, as of table create"},
    {.name = "replicas",
     .kind = PS_OPT_U64,
     .value = "R",
     .min = 1,
     .max = 16,
     .fallback = "1",
     .help = "copies of each partition, the primary included"},
    {.name = "nodes",
     .kind = PS_OPT_U64,
     .value = "N",
     .min = 1,
     .max = 4096,
     .fallback = "1",
     .help = "nodes of the cluster"},
    {.name = "shards",
     .kind = PS_OPT_U64,
     .value = "S",
     .min = 1,
     .max = 1024,
     .fallback = "1",
     .help = "shards of a node"},
    {.name = NULL}};

const ps_cmd_t ps_cmds_plan[] = {
    {.noun = "plan",
     .arguments = "",
     .summary = "how much memory a table will need",
     .details =
         "Creates a small table of this kind in its own memory, fills it, and scales up its "
         "measured bytes: values, state of the updater, index (with row headers and columns of "
         "sparse rows). Shows the fullest node, shard and partition. Warns when a node needs more "
         "than this host has. The partition log is not kept in memory and adds nothing; requests "
         "in flight add memory up to the limits of psd.yaml. Needs no psd.",
     .examples = PLAN_EXAMPLES,
     .options = PLAN_OPTIONS,
     .run = ps_cmd_plan},
    {.noun = NULL}};
