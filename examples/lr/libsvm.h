/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libsvm - the reader of libsvm text
 *
 * What     One example a line: `label index:value index:value ...`. A label is
 *          0 or -1 (negative), 1 or +1 (positive); indices are whole numbers
 *          that ascend within a line; values are finite decimal numbers. What
 *          follows a # is a comment, `qid:N` is skipped, empty lines too.
 *          The first line that breaks a rule ends the reading with an error
 *          "FILE:LINE: what it is, and what is allowed".
 * Units    Lines are counted from 1. Memory is bounded by what is kept: a line
 *          may be of any length, a word of at most 63 bytes.
 */
#ifndef LR_LIBSVM_H
#define LR_LIBSVM_H

#include <stdio.h>

#include "psd.h"
#include "samples.h"

/* The greatest index that any file may have. */
#define LR_INDEX_MAX (UINT32_MAX - 1)

/* Which examples to keep: those whose number (from 0, of examples, not of
 * lines) leaves `part` when divided by n_parts. All lines are checked. */
typedef struct lr_slice {
    uint32_t part;      /* below n_parts */
    uint32_t n_parts;   /* 1 keeps all */
    uint32_t index_max; /* an index above it is refused */
} lr_slice_t;

/*
 * Reads a stream to its end.
 *
 * name         in   for errors
 * ret_samples  out  filled on PSD_OK only; the caller owns it
 *
 * Errors: PSD_INVALID a line breaks a rule, or there is no example at all;
 * PSD_IO; PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t lr_libsvm_read(FILE *stream,
                                           const char *name,
                                           const lr_slice_t *slice,
                                           lr_samples_t *ret_samples,
                                           psd_error_t *err);
/* The same with the file of that path. */
PSD_MUST_CHECK psd_status_t lr_libsvm_load(const char *path,
                                           const lr_slice_t *slice,
                                           lr_samples_t *ret_samples,
                                           psd_error_t *err);
#endif
