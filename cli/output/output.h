/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room cli/output: what pscli writes
 *
 * It is       Data in each format of -o, words and errors, tables, JSON,
 *             numbers, drawings, files to print to, signals.
 * It uses     lib/data/streams for files, lib/base; jansson.
 * It ignores  Commands, options and connections: it gets values and where they
 *             go.
 * Start at    output.h, json_text.h.
 */
/*
 * ps_out - data on stdout in the format asked for, words on stderr
 *
 * What     One list of columns per command makes table, wide, csv, tsv and
 *          name; json and jsonl show the whole value. Tables show sizes and
 *          durations for people, all other formats in base units.
 * Owner    The files are borrowed.
 */
#ifndef PS_CLI_OUTPUT_H
#define PS_CLI_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "psd/status.h"

typedef enum ps_format {
    PS_FORMAT_TABLE = 0,
    PS_FORMAT_WIDE,
    PS_FORMAT_JSON,
    PS_FORMAT_JSONL,
    PS_FORMAT_CSV,
    PS_FORMAT_TSV,
    PS_FORMAT_NAME,
    PS_FORMAT_YAML,
    PS_FORMAT_TEMPLATE
} ps_format_t;

#define PS_OUT_WRONG_SIZE 500
#define PS_OUT_COLUMNS_MAX 130 /* of a list; those beyond are not shown */

typedef struct ps_out {
    FILE *out;           /* data */
    FILE *err;           /* words */
    ps_format_t format;  /* of data and errors */
    bool quiet;          /* no words but errors */
    bool verbose;        /* all details, where a line would do */
    bool big_as_text;    /* JSON integers beyond 2^53 are strings */
    bool color;          /* escapes may be used on out */
    bool no_headers;     /* tables, csv and tsv without their first line */
    const char *columns; /* of lists, with commas between them; NULL: those of the format */
    const char *text;    /* of TEMPLATE */
    const char *sort;    /* the column that lists are sorted by, "-" before it: the greatest
                            first; NULL: as they come */
    char *wrong;         /* PS_OUT_WRONG_SIZE bytes, for ps_out_finish; NULL: nothing can be */
} ps_out_t;

typedef enum ps_unit {
    PS_UNIT_NONE = 0,
    PS_UNIT_BYTES,
    PS_UNIT_SECONDS,
    PS_UNIT_RATE,    /* bytes a second */
    PS_UNIT_UNIX_MS, /* wall clock */
    PS_UNIT_COUNT    /* of an array's items, or a number */
} ps_unit_t;

typedef struct ps_column {
    const char *title; /* in tables; NULL ends a list */
    const char *path;  /* of the value in an item; the header in csv and tsv */
    ps_unit_t unit;    /* how tables show it */
    bool wide;         /* not in the narrow table */
} ps_column_t;

/* "table" …; false when it names none. */
bool ps_format_parse(const char *text, ps_format_t *ret_format);
/* json or jsonl. */
bool ps_format_is_json(ps_format_t format);
/* csv or tsv. */
bool ps_format_is_csv(ps_format_t format);

/* printf for data files and streams; failures show at ps_out_finish. */
void ps_print(FILE *file, const char *format, ...) PSD_PRINTF(2, 3);
/* A line of words on stderr, unless --quiet. */
void ps_say(const ps_out_t *self, const char *format, ...) PSD_PRINTF(2, 3);

/*
 * A list: json shows doc with its members, the others doc[key]'s items. The
 * first column names an item.
 */
void ps_out_list(const ps_out_t *self, const json_t *doc, const char *key,
                 const ps_column_t *columns);
/* One object: json and jsonl show doc, the others the columns of doc: as lines
 * `title  value` in tables, as one row in csv and tsv. */
void ps_out_object(const ps_out_t *self, const json_t *doc, const ps_column_t *columns);
/* The result of a change. Tables: the formatted line, all columns when
 * verbose, nothing when quiet. Other formats: as ps_out_object. */
void ps_out_answer(const ps_out_t *self, const json_t *doc, const ps_column_t *columns,
                   const char *format, ...) PSD_PRINTF(4, 5);
/* The narrow or wide table of items (an array; NULL: no items). */
void ps_out_table(const ps_out_t *self, const json_t *items, const ps_column_t *columns);
/* The lines `title  value` of an object. */
void ps_out_lines(const ps_out_t *self, const json_t *object, const ps_column_t *columns);

/* An error, in the format asked for. details (may be NULL) is borrowed. */
void ps_out_error(const ps_out_t *self, psd_status_t status, const char *message,
                  const json_t *details);
/* Errors: PSD_IO when data could not be written; PSD_USAGE for a column that is not there. */
PSD_MUST_CHECK psd_status_t ps_out_finish(const ps_out_t *self, psd_error_t *err);
#endif
