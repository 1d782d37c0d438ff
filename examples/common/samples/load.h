/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load - samples from files of any format, or the share of one worker
 */
#ifndef EX_LOAD_H
#define EX_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "../program/options.h"
#include "psd_data.h"
#include "samples.h"

/* In the order of the words of --deal. */
enum { EX_DEAL_TURNS, EX_DEAL_BYTES };

typedef struct ex_load_options {
    const char *format; /* NULL: looks */
    uint32_t deal;      /* EX_DEAL_TURNS, … */
    uint32_t bits;      /* of a vw index */
    uint32_t constant;  /* EX_YES: vw samples get the constant entry */
    bool skip_bad;      /* bad lines, and samples that are not allowed, are
                           left out */
    const char *cache;  /* where samples are kept as they were parsed, or
                           "beside" the files; NULL: nowhere */
} ex_load_options_t;

#define EX_LOAD_DEFAULTS \
    {                    \
        .bits = 18       \
    }
/* Their rows in a table of options; they lie in `member` of `type`. */
#define EX_LOAD_OPTIONS(type, member)                                                              \
    PS_OPT_ROW("format", "NAME", PS_OPT_TEXT, offsetof(type, member.format),                       \
               "libsvm, ps, vw, adfea, terafea, criteo, csv (default: detected from the first "    \
               "1000 lines)"),                                                                     \
        PS_OPT_ROW("deal", "turns|bytes", PS_OPT_CHOICE, offsetof(type, member.deal),              \
                   "turns (default): worker i of n takes every n-th sample, the same "             \
                   "ones in every format; bytes: it reads only the i-th part of every "            \
                   "file"),                                                                        \
        PS_OPT_NUMBER("bits", "N", PS_OPT_U32, offsetof(type, member.bits), 1, 61,                 \
                      "bits of a vw index (default 18)"),                                          \
        PS_OPT_ROW("constant", "yes|no", PS_OPT_CHOICE, offsetof(type, member.constant),           \
                   "vw samples get the constant entry (default yes)"),                             \
        PS_OPT_ROW("cache", "DIR", PS_OPT_TEXT, offsetof(type, member.cache),                      \
                   "caches parsed samples in DIR, or next to the files with \"beside\": the next " \
                   "run need not parse them"),                                                     \
        PS_OPT_ROW("skip-bad", NULL, PS_OPT_SWITCH, offsetof(type, member.skip_bad),               \
                   "skips and reports bad lines, and samples with a label or key that the "        \
                   "training cannot use, instead of stopping")

/* Which samples to keep, and what they must be. */
typedef struct ex_share {
    uint32_t part;    /* below n_parts */
    uint32_t n_parts; /* 1 keeps all */
    bool any_label;   /* false: labels are 0, 1, -1, +1, and become -1 and 1 */
    bool groups;      /* the groups of the entries are kept apart */
    uint64_t key_max; /* a key above it is refused */
} ex_share_t;

/*
 * Reads a file, a directory, a pattern or "-", to the end. Leaves out values of
 * 0.
 *
 * ret_samples  out  numbered; filled on PSD_OK only; the caller owns it
 *
 * Errors: those of psd_reader_open and psd_reader_next; PSD_INVALID a label or
 * key that is not allowed, no sample at all, none of a share that is allowed;
 * PSD_NOMEM; PSD_LIMIT.
 */
PSD_MUST_CHECK psd_status_t ex_load(const char *path, const ex_load_options_t *options,
                                    const ex_share_t *share, ex_samples_t *ret_samples,
                                    psd_error_t *err);

/* Takes some samples. */
typedef psd_status_t ex_take_t(void *self, const psd_samples_t *batch, psd_error_t *err);
/*
 * Reads a file of one format, strictly, and gives all its samples to `take`, at
 * least one and at most n at a time.
 *
 * Errors: those of psd_reader_open and psd_reader_next; those of take, where
 * PSD_INVALID also names the path.
 */
PSD_MUST_CHECK psd_status_t ex_read(const char *path, const char *format, size_t n_most,
                                    ex_take_t *take, void *self, psd_error_t *err);
#endif
