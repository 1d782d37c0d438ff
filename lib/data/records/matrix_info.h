/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_matrix_info - the description of a matrix in binary files, its .info file
 *
 * What     The text form of parameter_server's message MatrixInfo: `name:
 *          value` and `name { … }`. Fields that are not used here are skipped.
 * Owner    plain values
 * Threads  any
 */
#ifndef PS_DATA_MATRIX_INFO_H
#define PS_DATA_MATRIX_INFO_H

#include "base/bytes.h"
#include "psd_data.h"

typedef struct ps_matrix_info {
    psd_entries_t type;
    int64_t id;            /* of its group; of 32 bits */
    uint64_t n_rows;       /* samples: row.end - row.begin */
    uint64_t column_begin; /* keys lie in [column_begin, column_end) */
    uint64_t column_end;
    uint64_t n_entries;
    uint32_t index_size; /* bytes of a key: 4 or 8; 0 where type is dense */
    uint32_t value_size; /* bytes of a value: 4 or 8 */
} ps_matrix_info_t;

/* Reads the file PATH. Errors: PSD_IO, PSD_NOMEM; PSD_INVALID it is no such
 * text, is longer than 64 KiB, or of a matrix that is stored by columns. */
PSD_MUST_CHECK psd_status_t ps_matrix_info_read(const char *path, ps_matrix_info_t *ret_info,
                                                psd_error_t *err);
/* Appends the text. false: no memory. */
PSD_MUST_CHECK bool ps_matrix_info_print(const ps_matrix_info_t *self, ps_buffer_t *out);
#endif
