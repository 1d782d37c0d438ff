/* SPDX-License-Identifier: Apache-2.0 */
/* Loading OpenBLAS, and counting the buffers that it has taken. */
#include "linalg/blas.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#define LIBRARY "libopenblas.so.0"
#define BUFFER_BYTES (UINT64_C(128) << 20)
#define STACK_BYTES (UINT64_C(8) << 20) /* of a thread, the default */
#define SLACK_BYTES (UINT64_C(4) << 20) /* for others, at the same time */

static ps_blas_t functions;
static void *library;        /* NULL: it is not loaded */
static uint32_t n_begun = 1; /* threads, the caller's among them */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t given = PTHREAD_COND_INITIALIZER;
static uint32_t n_buffers; /* that callers have made it take; under the lock */
static uint32_t n_in_use;  /* of them */
static uint32_t n_first;   /* calls under way for which it may take one */

/* The system would give that much more memory now. */
static bool has_room(uint64_t bytes)
{
    void *room = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (room == MAP_FAILED) {
        return false;
    }
    (void)munmap(room, (size_t)bytes);
    return true;
}

/* Only this thread's processor is seen by who asks now: OpenBLAS starts no
 * others as it is loaded. Where that cannot be said it starts as many as ever.
 */
static void *load_alone(void)
{
    cpu_set_t all;
    cpu_set_t one;
    int here = sched_getcpu();
    bool is_narrow = false;
    void *loaded = NULL;

    if (here >= 0 && sched_getaffinity(0, sizeof all, &all) == 0) {
        CPU_ZERO(&one);
        CPU_SET((size_t)here, &one);
        is_narrow = sched_setaffinity(0, sizeof one, &one) == 0;
    }
    loaded = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (is_narrow) {
        (void)sched_setaffinity(0, sizeof all, &all);
    }
    return loaded;
}

static psd_status_t load(psd_error_t *err)
{
    void *loaded = load_alone();
    void *found = NULL;

    if (loaded == NULL) {
        return psd_error_set(err, PSD_IO, "OpenBLAS cannot be loaded: %s", dlerror());
    }
#define FIND(name)                                                   \
    found = dlsym(loaded, #name);                                    \
    if (found == NULL) {                                             \
        return psd_error_set(err, PSD_IO, LIBRARY " has no " #name); \
    }                                                                \
    memcpy(&functions.name, &found, sizeof found);
    PS_BLAS_MAP(FIND)
#undef FIND
    library = loaded;
    return PSD_OK;
}

psd_status_t ps_blas_begin(uint32_t n_threads, psd_error_t *err)
{
    psd_status_t rc = library == NULL ? load(err) : PSD_OK;
    uint64_t bytes = 0;

    if (rc != PSD_OK) {
        return rc;
    }
    if (n_threads > n_begun) {
        bytes = (n_threads - n_begun) * (BUFFER_BYTES + STACK_BYTES);
        if (!has_room(bytes + SLACK_BYTES)) {
            return psd_error_set(err, PSD_NOMEM,
                                 "no memory for %" PRIu32 " threads of OpenBLAS, which take "
                                 "%" PRIu64 " MiB; the process has a limit (RLIMIT_DATA, "
                                 "RLIMIT_AS)",
                                 n_threads, bytes >> 20);
        }
        n_begun = n_threads;
    }
    functions.openblas_set_num_threads((int)n_threads);
    return PSD_OK;
}

const ps_blas_t *ps_blas(void)
{
    return &functions;
}

psd_status_t ps_blas_take_buffer(ps_blas_turn_t *ret_turn, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    ret_turn->is_first = false;
    (void)pthread_mutex_lock(&lock);
    if (n_in_use == n_buffers && has_room((n_first + 1) * BUFFER_BYTES + SLACK_BYTES)) {
        n_buffers++;
        n_first++;
        ret_turn->is_first = true;
    }
    while (n_buffers > 0 && n_in_use == n_buffers) {
        (void)pthread_cond_wait(&given, &lock);
    }
    if (n_buffers == 0) {
        rc = psd_error_set(err, PSD_NOMEM,
                           "no memory for a product by OpenBLAS, which takes "
                           "%" PRIu64 " MiB; the process has a limit "
                           "(RLIMIT_DATA, RLIMIT_AS)",
                           BUFFER_BYTES >> 20);
    } else {
        n_in_use++;
    }
    (void)pthread_mutex_unlock(&lock);
    return rc;
}

void ps_blas_give_buffer(const ps_blas_turn_t *turn)
{
    (void)pthread_mutex_lock(&lock);
    n_in_use--;
    n_first -= turn->is_first ? 1 : 0;
    (void)pthread_cond_signal(&given);
    (void)pthread_mutex_unlock(&lock);
}
