/* SPDX-License-Identifier: Apache-2.0 */
/* The options of every command, and of contexts. */
#include "cli/options/commands.h"

static const char *const FORMATS[] = {"table", "wide", "json", "jsonl",    "csv",
                                      "tsv",   "name", "yaml", "template", NULL};

const ps_opt_t ps_opts_global[] = {
    {.name = "endpoint",
     .kind = PS_OPT_TEXT,
     .value = "URL",
     .fallback = "tcp://127.0.0.1:7171",
     .help =
         "control port of any node: tcp://HOST:PORT or ipc://PATH; several with commas between "
         "them: pscli uses the first that answers (else PSD_ENDPOINT, else the psd of /run/psd, as "
         "programs do)"},
    {.name = "context",
     .kind = PS_OPT_TEXT,
     .value = "NAME",
     .help = "settings that \"pscli context set\" made, in place of the current ones "
             "(~/.config/pscli/contexts/NAME, lines like endpoint=tcp://10.0.0.5:7171)"},
    {.name = "output",
     .letter = 'o',
     .kind = PS_OPT_CHOICE,
     .value = "FORMAT",
     .words = FORMATS,
     .fallback = "table",
     .help = "format of the data on stdout; yaml and template are of commands that only show"},
    {.name = "template",
     .kind = PS_OPT_TEXT,
     .value = "TEXT",
     .help = "of template: a line for each item, with {member} as in json, \"{a.b}\" for one of "
             "a member; \\n, \\t and \\{ are as in C"},
    {.name = "columns",
     .kind = PS_OPT_TEXT,
     .value = "LIST",
     .help = "of lists, not in json: these columns, with commas between them, in this order, by "
             "title or by what csv calls them"},
    {.name = "sort",
     .kind = PS_OPT_TEXT,
     .value = "COLUMN",
     .help = "of lists: sorted by this column; \"-COLUMN\": the greatest first"},
    {.name = "no-headers", .help = "tables, csv and tsv without the line of titles"},
    {.name = "timeout",
     .kind = PS_OPT_DURATION,
     .value = "DURATION",
     .min = 1,
     .max = 86400000,
     .fallback = "10s",
     .help = "timeout of connecting and of each request (250ms, 10s, 5m)"},
    {.name = "wait",
     .help = "retry a refused connection until --timeout; without it the command fails at once. "
             "cluster repair: also wait until all copies are there"},
    {.name = "watch",
     .kind = PS_OPT_DURATION,
     .value = "DURATION",
     .min = 10,
     .max = 86400000,
     .help = "refresh every DURATION, until interrupted"},
    {.name = "yes", .letter = 'y', .help = "do not ask before data is destroyed"},
    {.name = "dry-run", .help = "show what would be done, and change nothing"},
    {.name = "quiet",
     .letter = 'q',
     .help = "only errors on stderr, and no line that says what was done"},
    {.name = "verbose", .letter = 'v', .help = "all details, where the answer is one line"},
    {.name = "big-as-text",
     .help = "JSON integers above 2^53 as strings, for readers that round them (jq, JavaScript)"},
    {.name = "no-color", .help = "no colors on a terminal (so does NO_COLOR)"},
    {.name = "help", .letter = 'h', .help = "show help for the command"},
    {.name = "version", .help = "show the version"},
    {.name = NULL},
};
