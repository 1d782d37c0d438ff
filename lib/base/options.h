/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_opts - a program's options, read according to a table
 *
 * What     A table gives each option's name, allowed values and destination.
 *          psd reads every source of values with the same checks and messages:
 *          the command line first, then what the program offers after it (the
 *          environment, a settings file). A given value wins over later sources
 *          and over the table's default.
 * Owner    The caller owns the struct (ps_opts_done); it borrows the tables,
 *          argv and the other sources' values until then.
 * Threads  Confined to one thread.
 */
#ifndef PS_BASE_OPTIONS_H
#define PS_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "psd/status.h"

/* What values an option takes, and the type of its destination. */
typedef enum ps_opt_kind {
    PS_OPT_SWITCH = 0,  /* bool; takes no value on the command line */
    PS_OPT_TEXT,        /* const char *, not empty, borrowed */
    PS_OPT_INPUT,       /* the same; a file that is read */
    PS_OPT_INPUTS,      /* the same; or a directory, a pattern, "-" */
    PS_OPT_OUTPUT,      /* the same; a file, written beside its place and renamed */
    PS_OPT_OUTPUT_HERE, /* the same; a file, written in place */
    PS_OPT_U32,         /* uint32_t, min .. max */
    PS_OPT_U64,         /* uint64_t, min .. max */
    PS_OPT_COUNT,       /* the same; 1e9, 64M and 1.5G are numbers too */
    PS_OPT_I32,         /* int32_t, min .. max; any but INT32_MIN without bounds */
    PS_OPT_REAL,        /* double, min .. max */
    PS_OPT_DURATION,    /* uint32_t, ms, min .. max; 250ms, 10s, 5m, seconds */
    PS_OPT_CHOICE,      /* uint32_t: which of the words, from 0 */
    PS_OPT_HEADING      /* not an option: `help` is a heading for the next ones */
} ps_opt_kind_t;

typedef struct ps_opt {
    const char *name;         /* long name, without "--" */
    const char *value;        /* the value's name in help; NULL: a switch */
    ps_opt_kind_t kind;       /* which values are allowed */
    size_t offset;            /* of its destination, if it has one */
    double min, max;          /* of numbers; max 0 of integers: no bound */
    const char *help;         /* one sentence, no full stop */
    char letter;              /* short form; '\0': none */
    bool many;                /* TEXT: may be repeated; the values become one list with commas */
    const char *const *words; /* CHOICE: NULL-terminated; NULL: those of value,
                                 "one|two|three" */
    const char *fallback;     /* the default, as a user would type it; NULL: none */
} ps_opt_t;

/* Rows with a destination, for numbers and for other kinds; PS_OPT_END ends a
 * table. */
#define PS_OPT_NUMBER(name_, value_, kind_, offset_, min_, max_, help_)                          \
    {                                                                                            \
        .name = (name_), .value = (value_), .kind = (kind_), .offset = (offset_), .min = (min_), \
        .max = (max_), .help = (help_)                                                           \
    }
#define PS_OPT_ROW(name, value, kind, offset, help) \
    PS_OPT_NUMBER(name, value, kind, offset, 0, 0, help)
#define PS_OPT_END   \
    {                \
        .name = NULL \
    }

#define PS_OPTS_MAX 64 /* options of one reader */

typedef struct ps_opts_value {
    const char *text; /* NULL: not given */
    char origin[96];  /* for errors: "--rows", "PSCLI_ROWS", "FILE:3: rows" */
    char *joined;     /* owned; the text of a repeated option */
} ps_opts_value_t;

typedef struct ps_opts {
    const ps_opt_t *lists[2];            /* the tables; NULL: none */
    void *to;                            /* where the values of the first one go; NULL: nowhere */
    const char *where;                   /* ends the words "unknown option"; NULL: nothing */
    ps_opts_value_t values[PS_OPTS_MAX]; /* of the first table, then of the second */
} ps_opts_t;

/* True after the last row of a table. */
bool ps_opt_is_end(const ps_opt_t *opt);
/*
 * Reads one value.
 *
 * origin   in   names it in the error
 * refused  in   the status for a value that is not allowed
 * to       out  the base of the row's offset; NULL: only check the value
 *
 * Errors: `refused`, naming origin, value and what is allowed.
 */
PSD_MUST_CHECK psd_status_t ps_opt_take(const ps_opt_t *opt, const char *value, const char *origin,
                                        psd_status_t refused, void *to, psd_error_t *err);

/* Frees what is owned and forgets all values; fits PSD_AUTO. */
void ps_opts_done(ps_opts_t *self);

/* Takes a word that is not an option; sets *ret_rest when all later arguments
 * are words too. */
typedef psd_status_t (*ps_opts_word_t)(void *arg, const char *word, bool *ret_rest,
                                       psd_error_t *err);
/*
 * Reads a command line: "--name VALUE", "--name=VALUE", "-n VALUE", "-nVALUE",
 * switches; after "--" only words.
 *
 * take_word  in  NULL: words are refused, and reading stops after --help
 *
 * Errors: PSD_USAGE naming the word and what is allowed; PSD_NOMEM; those of
 * take_word.
 */
PSD_MUST_CHECK psd_status_t ps_opts_read(ps_opts_t *self, int argc, char *const *argv,
                                         ps_opts_word_t take_word, void *arg, psd_error_t *err);
/* The next source: option i gets a value unless it has one; the value is
 * checked in both cases. Errors: PSD_USAGE. */
PSD_MUST_CHECK psd_status_t ps_opts_offer(ps_opts_t *self, int i, const char *value,
                                          const char *origin, psd_error_t *err);
/* Offers the value of each environment variable that is not empty. `get` works
 * as getenv. Skips options that already have a value, and help and version.
 * Errors: PSD_USAGE. */
PSD_MUST_CHECK psd_status_t ps_opts_read_env(ps_opts_t *self, const char *prefix,
                                             char *(*get)(const char *name), psd_error_t *err);
/* The name of the option's variable: prefix PSCLI_ and row-format make
 * PSCLI_ROW_FORMAT. */
void ps_opt_env_name(const ps_opt_t *opt, const char *prefix, char ret_name[PS_ENV_NAME_SIZE]);

/* Option i of both tables; NULL after the last. */
const ps_opt_t *ps_opts_at(const ps_opts_t *self, size_t i);
/* The index of an option; -1: none. */
int ps_opts_find(const ps_opts_t *self, const char *name);
/* The row of an option and its value. The name must be in the tables
 * (asserted), here and in all functions below. */
const ps_opts_value_t *ps_opts_value(const ps_opts_t *self, const char *name,
                                     const ps_opt_t **ret_opt);
/* The option's value or default; NULL when there is neither. */
const char *ps_opts_text(const ps_opts_t *self, const char *name);
bool ps_opts_given(const ps_opts_t *self, const char *name);
/* The value of a switch. */
bool ps_opts_on(const ps_opts_t *self, const char *name);
/* Numbers, already checked; 0 when there is no value. */
uint64_t ps_opts_u64(const ps_opts_t *self, const char *name);
int64_t ps_opts_i64(const ps_opts_t *self, const char *name);
uint64_t ps_opts_ms(const ps_opts_t *self, const char *name);
double ps_opts_real(const ps_opts_t *self, const char *name);
#endif
