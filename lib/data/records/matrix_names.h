/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_matrix_names - which files are the matrices of a data set
 *
 * What     A data set STEM has the matrices STEM (group 0), STEM.ID (of other
 *          groups) and, as parameter_server wrote them, STEM.X; its labels are
 *          STEM.y. Each has a file that ends with .info. Naming STEM.info or
 *          STEM.y.info means all of them, naming another .info that matrix.
 * Owner    the caller owns the struct
 * Threads  any
 */
#ifndef PS_DATA_MATRIX_NAMES_H
#define PS_DATA_MATRIX_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "psd/status.h"

#define PS_MATRICES_MAX 200 /* of up to four open files each */

typedef struct ps_matrix_names {
    char **names; /* owned; without .info */
    size_t n, capacity;
    char *labels; /* owned; NULL: there are none */
} ps_matrix_names_t;

/* Errors: PSD_INVALID the path does not end with .info, or no matrix is there;
 * PSD_LIMIT there are more than PS_MATRICES_MAX; PSD_IO; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_matrix_names_find(ps_matrix_names_t *ret_names, const char *path,
                                                 psd_error_t *err);
/* Frees what is inside and zeroes it; fits PSD_AUTO. */
void ps_matrix_names_done(ps_matrix_names_t *self);
/* Would NAME.info be read as a matrix, or the labels, of a data set of a
 * shorter name? */
bool ps_matrix_names_is_part(const char *name);
/* Does the path end with it, after at least one other character? */
bool ps_matrix_names_end(const char *path, const char *ending);
#endif
