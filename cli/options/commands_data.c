/* SPDX-License-Identifier: Apache-2.0 */
/* The commands for files of samples. */
#include "cli/options/commands.h"

#include "cli/tables/tables.h"

#define MANY ((size_t)-1)

static const char *const READ[] = {"auto",    "libsvm", "ps",  "vw",    "adfea",
                                   "terafea", "criteo", "csv", "lda-c", "text",
                                   "idx",     "binary", "uci", "proto", NULL};
static const char *const WRITTEN[] = {"libsvm",         "ps",          "csv", "vw",
                                      "lda-c",          "binary",      "uci", "proto",
                                      "proto-instance", "proto-input", NULL};
static const char *const ENTRIES[] = {"auto", "sparse", "binary", "dense", NULL};

/* How samples are read: the same for every command here. */
#define FROM                                                                                      \
    {                                                                                             \
        .name = "from", .letter = 'f', .kind = PS_OPT_CHOICE, .value = "FORMAT", .words = READ,   \
        .fallback = "auto", .help = "format of the files; auto detects it from their first lines" \
    }
#define READING                                                                                    \
    {.name = "strict", .help = "stop at the first bad line"},                                      \
        {.name = "entries",                                                                        \
         .kind = PS_OPT_CHOICE,                                                                    \
         .value = "KIND",                                                                          \
         .words = ENTRIES,                                                                         \
         .fallback = "auto",                                                                       \
         .help = "meaning of entries without \":\" in ps files: keys (binary) or values (dense); " \
                 "for text, binary gives all words in order instead of counts"},                   \
        {.name = "vocabulary",                                                                     \
         .kind = PS_OPT_TEXT,                                                                      \
         .value = "FILE",                                                                          \
         .help = "file of words, one per line; line numbers from 0 are the keys of text. "         \
                 "Default: words are hashed"},                                                     \
        {.name = "merge", .help = "merge all groups of a sample into one"},                        \
        {.name = "bits",                                                                           \
         .letter = 'b',                                                                            \
         .kind = PS_OPT_U64,                                                                       \
         .value = "B",                                                                             \
         .min = 1,                                                                                 \
         .max = 61,                                                                                \
         .fallback = "18",                                                                         \
         .help = "bits of the index of a vw feature"},                                             \
        {.name = "no-constant", .help = "vw samples without the constant entry"},                  \
        {.name = "hash-all", .help = "hash names of vw features even if they are numbers"},        \
        {.name = "scale",                                                                          \
         .kind = PS_OPT_TEXT,                                                                      \
         .value = "X",                                                                             \
         .fallback = "1",                                                                          \
         .help = "factor for the values of idx samples: a number or a fraction such as 1/255"},    \
        {.name = "labels",                                                                         \
         .kind = PS_OPT_TEXT,                                                                      \
         .value = "FILE",                                                                          \
         .help =                                                                                   \
             "file of labels of idx or binary samples, or none; default: the file next to them"},  \
        {.name = "rows",                                                                           \
         .kind = PS_OPT_TEXT,                                                                      \
         .value = "A:B",                                                                           \
         .help = "only samples A to B-1, counted from 0, of idx, binary and uci files"},           \
        {.name = "cache",                                                                          \
         .kind = PS_OPT_TEXT,                                                                      \
         .value = "DIR",                                                                           \
         .help = "cache parsed samples in DIR, or next to the files with \"beside\", so that the " \
                 "next pass need not parse them"},                                                 \
        {.name = "part",                                                                           \
         .kind = PS_OPT_U64,                                                                       \
         .value = "I",                                                                             \
         .min = 0,                                                                                 \
         .max = UINT32_MAX,                                                                        \
         .fallback = "0",                                                                          \
         .help = "read only part I, counted from 0, of --parts"},                                  \
    {                                                                                              \
        .name = "parts", .kind = PS_OPT_U64, .value = "N", .min = 1, .max = UINT32_MAX,            \
        .fallback = "1", .help = "number of parts of every file, split at ends of lines"           \
    }

static const ps_example_t CONVERT_EXAMPLES[] = {
    {"pscli data convert --to ps train.libsvm.gz train.ps.zst", "compressed input and output"},
    {"pscli data convert --from vw -b 24 --to libsvm --merge 'day-*.vw' all",
     "several files into one, without namespaces"},
    {"pscli data convert --from csv --to libsvm - -", "from standard input to standard output"},
    {NULL, NULL}};
static const ps_opt_t CONVERT_OPTIONS[] = {
    FROM,
    {.name = "to",
     .letter = 't',
     .kind = PS_OPT_CHOICE,
     .value = "FORMAT",
     .words = WRITTEN,
     .help = "format to write. Required"},
    {.name = "lossy",
     .help = "drop what the format cannot hold: weights, tags, queries, labels, ids of groups"},
    READING,
    {.name = NULL}};

static const ps_example_t SHOW_EXAMPLES[] = {
    {"pscli data show train.libsvm", "the first three samples"},
    {"pscli data show -n 1 -o json train.vw", "one, with all its entries"},
    {"pscli data show --summary train.libsvm", "totals: the greatest key, labels, …"},
    {NULL, NULL}};
static const ps_opt_t SHOW_OPTIONS[] = {
    {.name = "number",
     .letter = 'n',
     .kind = PS_OPT_U64,
     .value = "N",
     .min = 1,
     .max = 100000,
     .fallback = "3",
     .help = "number of samples"},
    {.name = "summary", .help = "read all samples, and count samples, features, keys and labels"},
    FROM,
    READING,
    {.name = NULL}};

static const ps_example_t DETECT_EXAMPLES[] = {
    {"pscli data detect train/*", "format of each of these files"}, {NULL, NULL}};

const ps_cmd_t ps_cmds_data[] = {
    {.noun = "data",
     .verb = "convert",
     .arguments = "IN… OUT",
     .min_args = 2,
     .max_args = MANY,
     .summary = "convert samples from one format to another",
     .details = "Each IN is a file, plain or compressed (gzip, zstd), a directory whose files are "
                "read, a pattern, or - for standard input. OUT appears when it is complete, "
                "compressed when its name ends with .gz or .zst; - is standard output. An existing "
                "OUT is overwritten only with --yes. A sample with data that the format cannot "
                "hold is refused unless --lossy is given. Bad lines are skipped and counted, and "
                "the first ten are named; the exit code is then 8. Needs no psd.",
     .examples = CONVERT_EXAMPLES,
     .options = CONVERT_OPTIONS,
     .flags = 0,
     .run = ps_cmd_data_convert},
    {.noun = "data",
     .verb = "show",
     .arguments = "FILE…",
     .min_args = 1,
     .max_args = MANY,
     .summary = "show the first samples of files, or totals of all",
     .details =
         "Tables show the first entries of a sample, json all of them. With --summary: the numbers "
         "of samples, entries, distinct features (up to 8388608) and bad lines, the least and the "
         "greatest key, and the labels (up to 64) with their counts. Needs no psd.",
     .examples = SHOW_EXAMPLES,
     .options = SHOW_OPTIONS,
     .run = ps_cmd_data_show},
    {.noun = "data",
     .verb = "detect",
     .arguments = "FILE…",
     .min_args = 1,
     .max_args = MANY,
     .summary = "detect the format of files",
     .details = "From the first 1000 lines: format (unknown: no format matches), kind of labels "
                "and of entries, and the number of bad lines. Needs no psd.",
     .examples = DETECT_EXAMPLES,
     .run = ps_cmd_data_detect},
    {.noun = NULL}};
