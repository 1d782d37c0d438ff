/* SPDX-License-Identifier: Apache-2.0 */
/* The commands about tables and their rows. */
#include "cli/options/commands.h"

#include <math.h>

#include "cli/tables/tables.h"

#define MANY ((size_t)-1)

static const char *const TYPES[] = {"i32", "i64", "f32", "f64", NULL};
static const char *const ROW_FORMATS[] = {"dense", "sparse", "auto", NULL};
static const char *const KEYS[] = {"range", "hash", NULL};
static const char *const ACKS[] = {"memory", "replica", "disk", NULL};
static const char *const COMBINES[] = {"each", "clock-sum", "clock-mean", NULL};
static const char *const FILE_FORMATS[] = {"npy", "csv", "text", NULL};

static const ps_example_t CREATE_EXAMPLES[] = {
    {"pscli table create w --rows 1000", "1000 rows of one f32, all zero"},
    {"pscli table create emb --keys hash --cols 64 --init uniform:-0.1,0.1",
     "any u64 as key; the first push creates a row"},
    {"pscli table create w --rows 1000 "
     "--updater ftrl:alpha=0.1,beta=1,l1=1,l2=0",
     "gradients are pushed, the server applies FTRL-proximal"},
    {"pscli table create w --rows 1000 --updater adam:alpha=0.01",
     "other parameters keep their defaults"},
    {"pscli table create hits --rows 1000000 --type i64", "exact counters"},
    {NULL, NULL}};
static const ps_opt_t CREATE_OPTIONS[] = {
    {.name = "rows",
     .kind = PS_OPT_COUNT,
     .value = "N",
     .min = 1,
     .max = UINT64_C(1) << 40,
     .help = "number of rows, 0 to N-1; needed for range keys only"},
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
     .help = "dense: all columns; sparse: those that are not zero; auto: "
             "whichever is smaller"},
    {.name = "keys",
     .kind = PS_OPT_CHOICE,
     .value = "KEYS",
     .words = KEYS,
     .fallback = "range",
     .help = "range: rows 0 to N-1, all present; hash: any u64, the first push creates a row"},
    {.name = "updater",
     .kind = PS_OPT_TEXT,
     .value = "RULE",
     .fallback = "add",
/* clang-format off */
#define UPDATER(NAME, number, name, ...) #name
#define PARAMETER(joint, setting, letter, ...) joint #setting "=" #letter
#define END() ", "
     .help = "rule that merges a delta: "
#include "model/tables/updaters.def"
             "or plugin:NAME[:TEXT], which the daemon has loaded"},
    /* clang-format on */
    {.name = "init",
     .kind = PS_OPT_TEXT,
     .value = "RULE",
     .fallback = "zero",
     .help = "first values: zero, constant:V, uniform:LOW,HIGH, "
             "normal:MEAN,STD"},
    {.name = "seed",
     .kind = PS_OPT_U64,
     .value = "S",
     .fallback = "0",
     .help = "seed of random first values"},
    {.name = "partitions",
     .kind = PS_OPT_U64,
     .value = "P",
     .min = 1,
     .max = 4096,
     .help = "number of partitions; default: the cluster chooses"},
    {.name = "partition-by",
     .kind = PS_OPT_TEXT,
     .value = "RULE",
     .help = "range, hash, or list:ROW,ROW,... (first row of each partition except the first); "
             "default: hash for hash keys, else range"},
    {.name = "replicas",
     .kind = PS_OPT_U64,
     .value = "R",
     .min = 1,
     .max = 16,
     .fallback = "1",
     .help = "copies of each partition, the primary included"},
    {.name = "ack",
     .kind = PS_OPT_CHOICE,
     .value = "LEVEL",
     .words = ACKS,
     .fallback = "memory",
     .help = "failure that an acknowledged push survives"},
    {.name = "filter",
     .kind = PS_OPT_TEXT,
     .value = "WORDS",
     .help = "default filter of calls that name none, such as cache+delta+lz4+f16; it shrinks "
             "messages. docs/performance.md explains each; delta, lz4 and zstd are not used over "
             "lanes"},
    {.name = "combine",
     .kind = PS_OPT_CHOICE,
     .value = "HOW",
     .words = COMBINES,
     .help = "what becomes of the deltas of one clock in a job with max_delay 0: each runs the "
             "updater; or their sum, or mean, runs it once. Default: $PSD_COMBINE, else each"},
    {.name = "allow-nonfinite", .help = "accept NaN and infinite deltas"},
    {.name = "versions",
     .help =
         "rows keep the version of their last change, for pulls of changed rows; 8 bytes per row"},
    {.name = NULL}};

static const ps_example_t LIST_EXAMPLES[] = {
    {"pscli table list", "every table"},
    {"pscli table list -o name", "only the names, one a line"},
    {NULL, NULL}};
static const ps_example_t INSPECT_EXAMPLES[] = {
    {"pscli table inspect w", "its definition, size and counters"},
    {"pscli table inspect w -o wide", "its partitions too"},
    {NULL, NULL}};
static const ps_example_t DROP_EXAMPLES[] = {
    {"pscli table drop w", "asks first, showing rows and bytes"},
    {"pscli table drop w --yes", "does not ask; for scripts"},
    {"pscli table drop w w.counts", "both of them"},
    {NULL, NULL}};

static const ps_example_t ACK_EXAMPLES[] = {
    {"pscli table ack w", "accepts that \"w\" has lost rows"}, {NULL, NULL}};

static const ps_example_t SET_EXAMPLES[] = {
    {"pscli table set w --combine clock-sum", "from the next clock on"},
    {"pscli table set w --combine each", "as it is by default"},
    {NULL, NULL}};
static const ps_opt_t SET_OPTIONS[] = {
    {.name = "combine",
     .kind = PS_OPT_CHOICE,
     .value = "HOW",
     .words = COMBINES,
     .help = "what becomes of the deltas of one clock, as for \"table create\". Required"},
    {.name = NULL}};

static const ps_example_t DIFF_EXAMPLES[] = {
    {"pscli table diff w w-restored", "exit code 0: all values are equal"},
    {"pscli table diff w w2 --tolerance 1e-6", "differences up to 1e-6 do not count"},
    {"pscli table diff w w2 --limit 1000 -o csv", "the first 1000 differences, for a script"},
    {NULL, NULL}};
static const ps_opt_t DIFF_OPTIONS[] = {{.name = "tolerance",
                                         .kind = PS_OPT_REAL,
                                         .value = "X",
                                         .max = HUGE_VAL,
                                         .fallback = "0",
                                         .help = "values that differ by at most X count as equal"},
                                        {.name = "limit",
                                         .kind = PS_OPT_COUNT,
                                         .value = "N",
                                         .fallback = "10",
                                         .help = "show at most N differences; all are counted"},
                                        {.name = NULL}};

static const ps_example_t EXPORT_EXAMPLES[] = {
    {"pscli table export w --to w.npy", "for numpy.load"},
    {"pscli table export w --to w.csv", "with a header line"},
    {"pscli table export emb --to emb.txt", "lines \"row col:value ...\""},
    {"pscli table export emb --to emb.txt.zst", "the same, compressed"},
    {NULL, NULL}};
static const ps_opt_t EXPORT_OPTIONS[] = {
    {.name = "to",
     .kind = PS_OPT_TEXT,
     .value = "FILE",
     .help = "output file; it appears when it is complete. text and csv are compressed when the "
             "name ends with .gz or .zst; \"-\" is stdout. Required"},
    {.name = "format",
     .kind = PS_OPT_CHOICE,
     .value = "FORMAT",
     .words = FILE_FORMATS,
     .help = "format of the file; default: by its ending (.npy, .csv, else "
             "text)"},
    {.name = NULL}};
static const ps_example_t IMPORT_EXAMPLES[] = {
    {"pscli table import w --from w.npy", "sets every row"},
    {"pscli table import w --from w.txt", "sets the values that are named"},
    {"pscli table import w --from w.csv --dry-run", "only checks the file"},
    {NULL, NULL}};
static const ps_opt_t IMPORT_OPTIONS[] = {
    {.name = "from",
     .kind = PS_OPT_TEXT,
     .value = "FILE",
     .help =
         "input file, text and csv also compressed with gzip or zstd; \"-\" is stdin. Required"},
    {.name = "format",
     .kind = PS_OPT_CHOICE,
     .value = "FORMAT",
     .words = FILE_FORMATS,
     .help = "format of the file; default: by its ending (.npy, .csv, else "
             "text)"},
    {.name = NULL}};

#define TRACE_OPTIONS                                                                           \
    {.name = "trace",                                                                           \
     .help = "print on stderr where the time of each request went; with -o json or jsonl as a " \
             "document"},                                                                       \
        {.name = "trace-file",                                                                  \
         .kind = PS_OPT_TEXT,                                                                   \
         .value = "FILE",                                                                       \
         .help = "write the same in Chrome's trace format, for chrome://tracing or Perfetto"},  \
    {                                                                                           \
        .name = "trace-otlp", .kind = PS_OPT_TEXT, .value = "FILE",                             \
        .help = "append the same as one line of OTLP JSON, for a collector that reads files"    \
    }
#define TRACE_DETAILS                                                                             \
    " --trace prints a line for each request (one for each partition, more when it is split) "    \
    "with "                                                                                       \
    "the time of each phase. WHOLE is the sum. CLIENT: in pscli. QUEUE: the shard held the "      \
    "request, for an earlier push or for room. GATE: the shard waited for slower workers. WORK: " \
    "the shard processed the request. COPIES: the answer waited for copies. FLUSH: the answer "   \
    "waited for the disk. ANSWER: network, sockets and resends. TOLD (-o wide): whether the "     \
    "shard reported its phases; if not, ANSWER includes them."

static const ps_example_t PUSH_EXAMPLES[] = {
    {"pscli push w 1=0.5 3=0.5 5=-1", "three rows of a table with one column"},
    {"pscli push emb 7=1,2,3,4", "a whole row of four columns"},
    {"pscli push emb 7:2=0.25", "only column 2 of row 7"},
    {"pscli push w --from deltas.txt", "lines \"row col:value ...\""},
    {"pscli push w 1=0.5 --trace", "and where its time went"},
    {NULL, NULL}};
static const ps_opt_t PUSH_OPTIONS[] = {
    {.name = "from",
     .kind = PS_OPT_TEXT,
     .value = "FILE",
     .help = "read deltas from lines \"row col:value ...\", plain or compressed with gzip or zstd; "
             "\"-\" is stdin"},
    TRACE_OPTIONS,
    {.name = NULL}};

static const ps_example_t PULL_EXAMPLES[] = {
    {"pscli pull w 1,3,5", "three rows"},
    {"pscli pull w 10-19", "ten rows"},
    {"pscli pull emb 7 --cols 0-3", "four columns of one row"},
    {"pscli pull w all -o csv > w.csv", "everything, as a file"},
    {"pscli pull w 1 --trace", "a row, and where the time of the pull went"},
    {"pscli pull w all --trace-file w.trace.json > w.txt", "for ui.perfetto.dev"},
    {NULL, NULL}};
static const ps_opt_t PULL_OPTIONS[] = {{.name = "cols",
                                         .kind = PS_OPT_TEXT,
                                         .value = "COLS",
                                         .fallback = "all",
                                         .help = "columns: 7, 1,3,5, 10-19, all"},
                                        TRACE_OPTIONS,
                                        {.name = NULL}};

const ps_cmd_t ps_cmds_table[] = {
    {.noun = "table",
     .verb = "create",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .summary = "create a table",
     .details = "Prints one line about the new table; -v, and every format except table, prints "
                "all details, as \"table inspect\" does.",
     .examples = CREATE_EXAMPLES,
     .options = CREATE_OPTIONS,
     .flags = PS_CMD_DRY_RUN,
     .run = ps_cmd_table_create},
    {.noun = "table",
     .verb = "list",
     .arguments = "",
     .summary = "list the tables",
     .details = "",
     .examples = LIST_EXAMPLES,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_table_list},
    {.noun = "table",
     .verb = "inspect",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .complete = "table",
     .summary = "show a table's definition, size and counters",
     .details = "",
     .examples = INSPECT_EXAMPLES,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_table_inspect},
    {.noun = "table",
     .verb = "drop",
     .arguments = "NAME...",
     .min_args = 1,
     .max_args = SIZE_MAX,
     .complete = "table",
     .summary = "drop tables and their rows",
     .details = "Asks on a terminal, once for all; elsewhere it needs --yes. If one of several "
                "does not exist, none is dropped.",
     .examples = DROP_EXAMPLES,
     .flags = PS_CMD_DRY_RUN | PS_CMD_ALIKE,
     .run = ps_cmd_table_drop},
    {.noun = "table",
     .verb = "ack",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .complete = "table",
     .summary = "accept that a table has lost rows",
     .details = "When no node has a table's rows after a restart, \"cluster status\" shows a "
                "problem until an operator acknowledges it. Then the cluster is healthy again, and "
                "the table keeps the rows that came since. A further loss is a new problem.",
     .examples = ACK_EXAMPLES,
     .run = ps_cmd_table_ack},
    {.noun = "table",
     .verb = "set",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .complete = "table",
     .summary = "change a property of a table",
     .details = "The table must be idle: while a worker runs in a job that has it open, psd "
                "refuses and names both.",
     .examples = SET_EXAMPLES,
     .options = SET_OPTIONS,
     .run = ps_cmd_table_set},
    {.noun = "table",
     .verb = "diff",
     .arguments = "A B",
     .min_args = 2,
     .max_args = 2,
     .complete = "table",
     .summary = "show where the values of two tables differ",
     .details =
         "The tables must have the same type and number of columns. Row formats may differ: a "
         "value that a sparse row does not have counts as 0. A row that only one table has "
         "is a difference, and is counted separately. NaN equals NaN.\n\nExit code 0: "
         "equal. 1: they differ. A failure may also exit with 1; it then prints an error "
         "with a code, such as E1003. Rows that get pushes meanwhile are compared with or "
         "without those pushes.",
     .examples = DIFF_EXAMPLES,
     .options = DIFF_OPTIONS,
     .flags = PS_CMD_ALIKE,
     .run = ps_cmd_table_diff},
    {.noun = "table",
     .verb = "export",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .complete = "table",
     .summary = "write a table's values to a file",
     .details = "npy: version 1.0, C order, two dimensions; for dense tables with range keys. csv: "
                "\"row,0,1,...\" and a line for each row; \"row,col,value\" when rows are sparse. "
                "text: \"row col:value ...\" for any table. Of a hash table it writes the rows "
                "that are present, of a sparse row the values that are not zero.\n\nNumbers read "
                "back to the same bits. Rows that get pushes meanwhile are in the file with or "
                "without those pushes. An existing file is replaced when the new one is complete.",
     .examples = EXPORT_EXAMPLES,
     .options = EXPORT_OPTIONS,
     .run = ps_cmd_table_export},
    {.noun = "table",
     .verb = "import",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .complete = "table",
     .summary = "set a table's values from a file",
     .details = "Reads what \"table export\" writes. Checks the whole file before it changes "
                "anything; values that the file does not name stay. Works for tables with updater "
                "add or assign (other updaters take gradients, not values). No other client should "
                "push to these rows meanwhile.",
     .examples = IMPORT_EXAMPLES,
     .options = IMPORT_OPTIONS,
     .flags = PS_CMD_DRY_RUN,
     .run = ps_cmd_table_import},
    {.noun = "push",
     .arguments = "NAME [ROW[:COL]=VALUE...]",
     .min_args = 1,
     .max_args = MANY,
     .complete = "table",
     .summary = "send deltas to rows",
     .details =
         "ROW=V1,V2,... gives all columns of a row, ROW:COL=VALUE one value. The table's updater "
         "merges the delta: add adds it, assign sets it, the others take it as a "
         "gradient." TRACE_DETAILS,
     .examples = PUSH_EXAMPLES,
     .options = PUSH_OPTIONS,
     .flags = PS_CMD_DRY_RUN,
     .run = ps_cmd_push},
    {.noun = "pull",
     .arguments = "NAME ROWS",
     .min_args = 2,
     .max_args = 2,
     .complete = "table",
     .summary = "fetch values of rows",
     .details =
         "ROWS is 7, 1,3,5, 10-19, any of these separated by commas, or all. For a hash table, a "
         "range and all give the rows that are present; a single row that is not present is shown "
         "with its initial values. csv and tsv give a sparse row as "
         "\"row,col,value\"." TRACE_DETAILS,
     .examples = PULL_EXAMPLES,
     .options = PULL_OPTIONS,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_pull},
    {.noun = NULL}};
