/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_blas - OpenBLAS, loaded when it is first used
 *
 * What     When it is loaded OpenBLAS starts a thread for each processor, and
 *          each takes a buffer of 128 MiB. If it gets no memory for that
 *          (RLIMIT_DATA, RLIMIT_AS) it retries forever. So it is loaded here
 *          with one thread, and a caller that makes it take a buffer or start
 *          threads first checks that there is memory for them.
 * Threads  any
 */
#ifndef PS_LINALG_BLAS_H
#define PS_LINALG_BLAS_H

#include <cblas.h>
#include <stdbool.h>
#include <stdint.h>

#include "psd/status.h"

/* The functions that are used. */
/* It knows no end of a row. */
/* clang-format off */
#define PS_BLAS_MAP(X) \
    X(cblas_dsdot) \
    X(cblas_saxpy) \
    X(cblas_scopy) \
    X(cblas_sgemm) \
    X(cblas_sgemv) \
    X(cblas_somatcopy) \
    X(cblas_sscal) \
    X(openblas_set_num_threads)
/* clang-format on */

#define PS_BLAS_MEMBER(name) __typeof__(name) *name;
typedef struct ps_blas {
    PS_BLAS_MAP(PS_BLAS_MEMBER)
} ps_blas_t;
#undef PS_BLAS_MEMBER

/* Loads it, unless it is, and gives it n_threads. Under the caller's lock.
 * Errors: PSD_NOMEM there is no memory for n_threads; PSD_IO it cannot be
 * loaded. */
PSD_MUST_CHECK psd_status_t ps_blas_begin(uint32_t n_threads, psd_error_t *err);
/* Its functions, after ps_blas_begin. */
const ps_blas_t *ps_blas(void);

/* Around each call of sgemm and sgemv: a buffer. Waits for one of another
 * thread where there is memory for no more. Errors: PSD_NOMEM for not even one.
 */
typedef struct ps_blas_turn {
    bool is_first; /* for which it may take one more from the system */
} ps_blas_turn_t;
PSD_MUST_CHECK psd_status_t ps_blas_take_buffer(ps_blas_turn_t *ret_turn, psd_error_t *err);
void ps_blas_give_buffer(const ps_blas_turn_t *turn);
#endif
