/* SPDX-License-Identifier: Apache-2.0 */
/* ps_npy - the head of numpy's file format: version 1.0, C order, two
 * dimensions, little-endian
 * Source   numpy.lib.format, "Format Version 1.0" */
#ifndef PS_CLI_NPY_H
#define PS_CLI_NPY_H

#include <stdint.h>
#include <stdio.h>

#include "base/slice.h"

/* Errors: PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_npy_write_head(FILE *file, ps_type_t type, uint64_t rows,
                                              uint64_t cols, psd_error_t *err);
/*
 * Reads the head; the file then stands at the first value.
 * path  in  for errors
 * Errors: PSD_INVALID naming the path and the part that it does not understand;
 * PSD_IO.
 */
PSD_MUST_CHECK psd_status_t ps_npy_read_head(FILE *file, const char *path, ps_type_t *ret_type,
                                             uint64_t *ret_rows, uint64_t *ret_cols,
                                             psd_error_t *err);
#endif
