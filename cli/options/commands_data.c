/* SPDX-License-Identifier: Apache-2.0 */
/* The commands for files of samples. */
#include "cli/options/command.h"

#include "cli/cli.h"

#define MANY ((size_t)-1)

static const char *const READ[] = {"auto",    "libsvm", "ps",  "vw",    "adfea",
                                   "terafea", "criteo", "csv", "lda-c", "text",
                                   "idx",     "binary", "uci", "proto", NULL};
static const char *const WRITTEN[] = {"libsvm",         "ps",          "csv", "vw",
                                      "lda-c",          "binary",      "uci", "proto",
                                      "proto-instance", "proto-input", NULL};
static const char *const ENTRIES[] = {"auto", "sparse", "binary", "dense", NULL};

/* How samples are read: the same for every command here. */
#define FROM                                                                                    \
    {                                                                                           \
        .name = "from", .letter = 'f', .kind = PS_OPT_CHOICE, .value = "FORMAT", .words = READ, \
        .fallback = "auto", .help = "format of the files; auto looks at their beginning"        \
    }
#define READING                                                                                \
    {.name = "strict", .help = "end at the first bad line"},                                   \
        {.name = "entries",                                                                    \
         .kind = PS_OPT_CHOICE,                                                                \
         .value = "KIND",                                                                      \
         .words = ENTRIES,                                                                     \
         .fallback = "auto",                                                                   \
         .help = "what entries without \":\" are in ps files: keys "                           \
                 "(binary) or values (dense); of text, binary is all "                         \
                 "words in their order, not counts"},                                          \
        {.name = "vocabulary",                                                                 \
         .kind = PS_OPT_TEXT,                                                                  \
         .value = "FILE",                                                                      \
         .help = "words, one a line, whose numbers from 0 are the keys "                       \
                 "of text; without it, words are hashed"},                                     \
        {.name = "merge", .help = "one group of all groups of a sample"},                      \
        {.name = "bits",                                                                       \
         .letter = 'b',                                                                        \
         .kind = PS_OPT_U64,                                                                   \
         .value = "B",                                                                         \
         .min = 1,                                                                             \
         .max = 61,                                                                            \
         .fallback = "18",                                                                     \
         .help = "bits of the index of a vw feature"},                                         \
        {.name = "no-constant", .help = "vw samples without the constant entry"},              \
        {.name = "hash-all", .help = "hash names of vw features also where they are numbers"}, \
        {.name = "scale",                                                                      \
         .kind = PS_OPT_TEXT,                                                                  \
         .value = "X",                                                                         \
         .fallback = "1",                                                                      \
         .help = "what values of idx samples are multiplied by; a number "                     \
                 "or a fraction, say 1/255"},                                                  \
        {.name = "labels",                                                                     \
         .kind = PS_OPT_TEXT,                                                                  \
         .value = "FILE",                                                                      \
         .help = "labels of idx or binary samples, or none; without it, "                      \
                 "the file beside them"},                                                      \
        {.name = "rows",                                                                       \
         .kind = PS_OPT_TEXT,                                                                  \
         .value = "A:B",                                                                       \
         .help = "samples A up to and without B only, from 0, of idx, "                        \
                 "binary and uci files"},                                                      \
        {.name = "cache",                                                                      \
         .kind = PS_OPT_TEXT,                                                                  \
         .value = "DIR",                                                                       \
         .help = "keep what was parsed there, or \"beside\" the files, so "                    \
                 "that the next pass need not parse them"},                                    \
        {.name = "part",                                                                       \
         .kind = PS_OPT_U64,                                                                   \
         .value = "I",                                                                         \
         .min = 0,                                                                             \
         .max = UINT32_MAX,                                                                    \
         .fallback = "0",                                                                      \
         .help = "read the share of worker I, from 0, of --parts"},                            \
    {                                                                                          \
        .name = "parts", .kind = PS_OPT_U64, .value = "N", .min = 1, .max = UINT32_MAX,        \
        .fallback = "1", .help = "into how many shares every file is cut, at ends of lines"    \
    }

static const ps_example_t CONVERT_EXAMPLES[] = {
    {"pscli data convert --to ps train.libsvm.gz train.ps.zst", "packed in, packed out"},
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
     .help = "leave out what the format has no place for: weights, tags, "
             "queries, labels, ids of groups"},
    READING,
    {.name = NULL}};

static const ps_example_t SHOW_EXAMPLES[] = {
    {"pscli data show train.libsvm", "the first three samples"},
    {"pscli data show -n 1 -o json train.vw", "one, with all its entries"},
    {"pscli data show --summary train.libsvm",
     "what all samples have: the greatest key, labels, …"},
    {NULL, NULL}};
static const ps_opt_t SHOW_OPTIONS[] = {{.name = "number",
                                         .letter = 'n',
                                         .kind = PS_OPT_U64,
                                         .value = "N",
                                         .min = 1,
                                         .max = 100000,
                                         .fallback = "3",
                                         .help = "how many samples"},
                                        {.name = "summary",
                                         .help = "read all of it, and count "
                                                 "samples, features, keys and "
                                                 "labels"},
                                        FROM,
                                        READING,
                                        {.name = NULL}};

static const ps_example_t DETECT_EXAMPLES[] = {
    {"pscli data detect train/*", "what each of these files is"}, {NULL, NULL}};

const ps_cmd_t ps_cmds_data[] = {
    {.noun = "data",
     .verb = "convert",
     .arguments = "IN… OUT",
     .min_args = 2,
     .max_args = MANY,
     .summary = "samples of one format into another",
     .details = "Each IN is a file, plain or packed (gzip, zstd), a directory whose "
                "files are read, a pattern, or - for standard input. OUT is there "
                "when it is whole, packed when its name ends with .gz or .zst; - is "
                "standard output. One that exists is written over with --yes only. A "
                "sample with more than the format holds is refused unless --lossy. "
                "Bad lines are left out, counted, and the first ten "
                "of them named; the exit code is 8 then. Needs no psd.",
     .examples = CONVERT_EXAMPLES,
     .options = CONVERT_OPTIONS,
     .flags = 0,
     .run = ps_cmd_data_convert},
    {.noun = "data",
     .verb = "show",
     .arguments = "FILE…",
     .min_args = 1,
     .max_args = MANY,
     .summary = "the first samples of files, or what all of them have",
     .details = "Tables show the first entries of a sample, json all of them. "
                "With --summary: how many samples, entries, different features "
                "(up to 8388608) and bad lines there are, the least and the "
                "greatest key, the labels (up to 64) and how often each is "
                "there. Needs no psd.",
     .examples = SHOW_EXAMPLES,
     .options = SHOW_OPTIONS,
     .run = ps_cmd_data_show},
    {.noun = "data",
     .verb = "detect",
     .arguments = "FILE…",
     .min_args = 1,
     .max_args = MANY,
     .summary = "formats of files",
     .details = "By their first 1000 lines: format (unknown: none that is "
                "read), kind of "
                "labels and of entries, and how many of those lines are bad. "
                "Needs no psd.",
     .examples = DETECT_EXAMPLES,
     .run = ps_cmd_data_detect},
    {.noun = NULL}};
