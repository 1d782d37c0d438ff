/* SPDX-License-Identifier: Apache-2.0 */
/* The only place that starts OpenBLAS and GraphBLAS, and sets their number of
 * threads. */
#include "linalg/linalg.h"

#include <GraphBLAS.h>
#include <inttypes.h>
#include <pthread.h>

#include "base/alloc.h"
#include "linalg/blas.h"

#define THREADS_MAX 1024u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* All of them under the lock. */
static uint32_t n_threads = 1;
static bool dense_begun;
static bool sparse_begun;

/* GraphBLAS takes its memory through our door, and gives us what it made. */

static void *take(size_t size)
{
    return ps_alloc_raw(size, 1);
}

static void *take_zeroed(size_t count, size_t size)
{
    return ps_alloc(count, size);
}

static void *take_more(void *old, size_t size)
{
    return ps_alloc_resize(old, size, 1);
}

psd_status_t psd_linalg_set_threads(uint32_t count, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    psd_error_clear(err);
    if (count < 1 || count > THREADS_MAX) {
        return psd_error_set(err, PSD_INVALID,
                             "%" PRIu32 " threads for linear algebra; 1 .. %u "
                             "are allowed",
                             count, THREADS_MAX);
    }
    pthread_mutex_lock(&lock);
    if (dense_begun) {
        rc = ps_blas_begin(count, err);
    }
    if (rc == PSD_OK) {
        n_threads = count;
    }
    if (rc == PSD_OK && sparse_begun) {
        (void)GxB_Global_Option_set(GxB_GLOBAL_NTHREADS, (int)count);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

uint32_t psd_linalg_threads(void)
{
    uint32_t count = 0;

    pthread_mutex_lock(&lock);
    count = n_threads;
    pthread_mutex_unlock(&lock);
    return count;
}

psd_status_t ps_linalg_begin_dense(psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    pthread_mutex_lock(&lock);
    if (!dense_begun) {
        rc = ps_blas_begin(n_threads, err);
        dense_begun = rc == PSD_OK;
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

psd_status_t ps_linalg_begin_sparse(psd_error_t *err)
{
    GrB_Info info = GrB_SUCCESS;

    pthread_mutex_lock(&lock);
    if (!sparse_begun) {
        /* Blocking: what a call gives is finished, so that arrays that are lent
         * to it are free again. */
        info = GxB_init(GrB_BLOCKING, take, take_zeroed, take_more, ps_free);
        if (info == GrB_INVALID_VALUE) { /* the program has started it */
            info = GrB_SUCCESS;
        }
        if (info == GrB_SUCCESS) {
            int64_t no_pool[64] = {0}; /* memory that is freed is given back */

            sparse_begun = true;
            (void)GxB_Global_Option_set(GxB_MEMORY_POOL, no_pool);
            (void)GxB_Global_Option_set(GxB_GLOBAL_NTHREADS, (int)n_threads);
        }
    }
    pthread_mutex_unlock(&lock);
    return info == GrB_SUCCESS ? PSD_OK
           : info == GrB_OUT_OF_MEMORY
               ? psd_error_set(err, PSD_NOMEM, "no memory to start GraphBLAS")
               : psd_error_set(err, PSD_FAILED, "GraphBLAS does not start: %d", (int)info);
}
