/* SPDX-License-Identifier: Apache-2.0 */
/* Products under a limit of memory: OpenBLAS takes 128 MiB for each thread and
 * asks for what it does not get without end. A process that has not even one
 * such buffer gets an error, one that has a single one computes all the same,
 * its threads in turns. Not with sanitizers, which want much memory of their
 * own. */
#include <psd_linalg.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"

#define SIDE 40
#define THREADS 4
#define PRODUCTS 200
#define MIB (UINT64_C(1) << 20)
#define PATIENCE_S 60 /* for a child: what takes so long hangs */

/* What the process has that the limit counts. */
static uint64_t data_bytes(void)
{
    char line[256];
    FILE *file = fopen("/proc/self/status", "re");
    uint64_t bytes = 0;

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "VmData:", 7) == 0) {
            bytes = strtoull(line + 7, NULL, 10) * 1024;
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return bytes;
}

static bool limit_to(uint64_t more_bytes)
{
    uint64_t bytes = data_bytes() + more_bytes;
    const struct rlimit limit = {.rlim_cur = bytes, .rlim_max = bytes};

    CHECK(bytes > more_bytes);
    CHECK(setrlimit(RLIMIT_DATA, &limit) == 0);
    return true;
}

static psd_status_t multiply(psd_error_t *err)
{
    float values[SIDE * SIDE];
    float product[SIDE * SIDE];
    psd_matrix_t *a = NULL;
    psd_matrix_t *b = NULL;
    psd_status_t rc = psd_matrix_view(values, SIDE, SIDE, SIDE, &a, err);

    for (int i = 0; i < SIDE * SIDE; i++) {
        values[i] = 1;
    }
    if (rc == PSD_OK) {
        rc = psd_matrix_view(product, SIDE, SIDE, SIDE, &b, err);
    }
    if (rc == PSD_OK) {
        rc = psd_matrix_multiply(1, a, false, a, true, 0, b, err);
    }
    for (int i = 0; rc == PSD_OK && i < SIDE * SIDE; i++) {
        if (product[i] != SIDE) {
            rc = psd_error_set(err, PSD_FAILED, "item %d is %g", i, (double)product[i]);
        }
    }
    psd_matrix_destroy(&a);
    psd_matrix_destroy(&b);
    return rc;
}

static void *multiply_often(void *failed)
{
    psd_error_t *err = psd_error_new();

    for (int i = 0; i < PRODUCTS; i++) {
        if (multiply(err) != PSD_OK) {
            (void)fprintf(stderr, "%s\n", psd_error_text(err));
            *(bool *)failed = true;
        }
    }
    psd_error_destroy(&err);
    return NULL;
}

/* ---- children, each with a limit of its own ---- */

static bool without_a_buffer(psd_error_t *err)
{
    CHECK(limit_to(64 * MIB));
    CHECK_ERROR(multiply(err), PSD_NOMEM,
                "no memory for a product by OpenBLAS, which takes 128 MiB", err);
    CHECK_ERROR(psd_linalg_set_threads(4, err), PSD_NOMEM,
                "no memory for 4 threads of OpenBLAS, which take 408 MiB", err);
    CHECK(psd_linalg_threads() == 1);
    return true;
}

static bool with_one_buffer(psd_error_t *err)
{
    pthread_t threads[THREADS];
    pthread_attr_t small;
    bool failed[THREADS] = {false};

    CHECK(pthread_attr_init(&small) == 0);
    CHECK(pthread_attr_setstacksize(&small, 256 << 10) == 0);
    CHECK(setenv("MALLOC_ARENA_MAX", "1", 1) == 0);
    CHECK(limit_to(200 * MIB));
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], &small, multiply_often, &failed[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        CHECK(!failed[i]);
    }
    CHECK_ERROR(psd_linalg_set_threads(2, err), PSD_NOMEM, "2 threads", err);
    return true;
}

static bool without_a_limit(psd_error_t *err)
{
    CHECK_OK(multiply(err), err);
    CHECK_OK(psd_linalg_set_threads(3, err), err);
    CHECK_OK(multiply(err), err);
    CHECK_OK(psd_linalg_set_threads(1, err), err);
    CHECK_OK(multiply(err), err);
    return true;
}

static bool in_a_child(bool (*test)(psd_error_t *err))
{
    psd_error_t *err = psd_error_new();
    pid_t pid = fork();
    int status = 0;

    if (pid == 0) {
        (void)alarm(PATIENCE_S);
        _exit(test(err) ? 0 : 1);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    psd_error_destroy(&err);
    return true;
}

int main(void)
{
    bool ok = in_a_child(without_a_buffer);

    ok = in_a_child(with_one_buffer) && ok;
    ok = in_a_child(without_a_limit) && ok;
    return ok ? 0 : 1;
}
