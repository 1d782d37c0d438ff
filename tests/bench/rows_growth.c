/* SPDX-License-Identifier: Apache-2.0 */
/* rows_growth [ROWS [COLS]]: what a hash table costs while it grows. Pushes new
 * keys, 10,000 at a time, into one partition, 100 M x 1 f32 unless told
 * otherwise, and prints the time of a push (median, p99, worst; on the clock
 * and of the processor alone) and the bytes of a row beside its values, as the
 * store and as the kernel count them. Then, for as long as the pushes took, a
 * loop that does nothing looks at the same clocks: a kernel that does not count
 * interrupts apart, or a host that takes the processor away, makes steps there
 * that are no push's. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/hash.h"
#include "base/text.h"
#include "model/store/store.h"

#define BATCH UINT64_C(10000)
#define ROWS_DEFAULT UINT64_C(100000000)

typedef struct times {
    double *ms; /* owned; one for each push */
    size_t n;
} times_t;

static double clock_ms(clockid_t clock)
{
    struct timespec now = {0};

    (void)clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Bytes of memory that the process has; 0 when the kernel does not say. */
static double resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long all = 0;
    long resident = 0;

    if (file == NULL) {
        return 0;
    }
    if (fscanf(file, "%ld %ld", &all, &resident) != 2) {
        resident = 0;
    }
    (void)fclose(file);
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static int compare(const void *left, const void *right)
{
    const double *a = left;
    const double *b = right;

    return (*a > *b) - (*a < *b);
}

static void print_times(const char *name, times_t *times)
{
    qsort(times->ms, times->n, sizeof *times->ms, compare);
    printf("%-9s median %.2f ms, p99 %.2f ms, worst %.2f ms\n", name, times->ms[times->n / 2],
           times->ms[times->n - 1 - times->n / 100], times->ms[times->n - 1]);
}

/* A push of the first n rows of a payload. */
static bool push(ps_store_t *store, uint64_t n, uint32_t n_cols, ps_payload_t *payload)
{
    ps_slice_t slice = {.type = PS_TYPE_F32, .n_rows = n, .n_cols = n_cols, .n_values = n * n_cols};

    payload->keys.size = n * sizeof(uint64_t);
    payload->span.size = n * n_cols * sizeof(float);
    return ps_store_check_push(store, &slice, payload, NULL) == PSD_OK &&
           ps_store_push(store, &slice, payload, NULL) == PSD_OK;
}

/* The keys of rows first, first + 1 …: hashed, so in no order. */
static void make_keys(uint8_t *at, uint64_t first, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        ps_store_u64(at + i * sizeof(uint64_t), ps_hash_u64(first + i));
    }
}

static bool grow(ps_store_t *store, uint64_t n_rows, uint32_t n_cols, times_t *wall, times_t *work)
{
    uint8_t *bytes = NULL;
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload =
        ps_payload_room(BATCH * sizeof(uint64_t), 0, BATCH * n_cols * sizeof(float), &bytes);
    bool is_done = payload != NULL;

    for (uint64_t i = 0; is_done && i < BATCH * n_cols; i++) {
        ps_store_f32(bytes + BATCH * sizeof(uint64_t) + i * sizeof(float), 1);
    }
    for (uint64_t at = 0; is_done && at < n_rows; at += BATCH) {
        uint64_t n = n_rows - at < BATCH ? n_rows - at : BATCH;
        double began = 0;
        double worked = 0;

        make_keys(bytes, at, n);
        began = clock_ms(CLOCK_MONOTONIC);
        worked = clock_ms(CLOCK_THREAD_CPUTIME_ID);
        is_done = push(store, n, n_cols, payload);
        wall->ms[wall->n++] = clock_ms(CLOCK_MONOTONIC) - began;
        work->ms[work->n++] = clock_ms(CLOCK_THREAD_CPUTIME_ID) - worked;
    }
    return is_done;
}

/* The longest step that the processor's clock makes for a loop that does
 * nothing, within the time that the pushes took. */
static double longest_idle_step_ms(const times_t *pushes)
{
    double until_ms = clock_ms(CLOCK_MONOTONIC);
    double last = clock_ms(CLOCK_THREAD_CPUTIME_ID);
    double longest = 0;

    for (size_t i = 0; i < pushes->n; i++) {
        until_ms += pushes->ms[i];
    }
    while (clock_ms(CLOCK_MONOTONIC) < until_ms) {
        double now = clock_ms(CLOCK_THREAD_CPUTIME_ID);

        longest = now - last > longest ? now - last : longest;
        last = now;
    }
    return longest;
}

static int run(uint64_t n_rows, uint32_t n_cols)
{
    PSD_AUTO(ps_store_destroy) ps_store_t *store = NULL;
    ps_table_spec_t spec;
    size_t n_pushes = (size_t)(n_rows / BATCH) + 1;
    PSD_AUTO(ps_free_at) double *wall_ms = ps_alloc(n_pushes, sizeof *wall_ms);
    PSD_AUTO(ps_free_at) double *work_ms = ps_alloc(n_pushes, sizeof *work_ms);
    times_t wall = {.ms = wall_ms};
    times_t work = {.ms = work_ms};
    double before = resident_bytes();
    double rows = (double)n_rows;
    ps_store_bytes_t bytes;

    ps_table_spec_init(&spec);
    spec.keys = PS_KEYS_HASH;
    spec.n_cols = n_cols;
    spec.n_partitions = 1;
    spec.n_col_slices = 1;
    if (wall_ms == NULL || work_ms == NULL || ps_store_new(&spec, 0, &store, NULL) != PSD_OK ||
        !grow(store, n_rows, n_cols, &wall, &work)) {
        fprintf(stderr, "rows_growth: no memory\n");
        return 1;
    }
    bytes = ps_store_bytes(store);
    printf("%" PRIu64 " rows x %" PRIu32 " f32, pushes of %" PRIu64 " new keys\n", n_rows, n_cols,
           BATCH);
    print_times("clock", &wall);
    print_times("processor", &work);
    printf("processor, of a loop that does nothing for as long: worst %.2f ms\n",
           longest_idle_step_ms(&wall));
    printf("bytes beside a row's values: store %.2f, resident %.2f\n",
           (double)(bytes.index + bytes.state) / rows,
           (resident_bytes() - before - (double)bytes.values) / rows);
    return 0;
}

int main(int argc, char **argv)
{
    uint64_t n_rows = ROWS_DEFAULT;
    uint64_t n_cols = 1;

    if ((argc > 1 && (!ps_text_u64(argv[1], &n_rows) || n_rows == 0)) ||
        (argc > 2 && (!ps_text_u64(argv[2], &n_cols) || n_cols == 0 || n_cols > 65536)) ||
        argc > 3) {
        fprintf(stderr, "usage: rows_growth [ROWS [COLS, to 65536]]\n");
        return 2;
    }
    return run(n_rows, (uint32_t)n_cols);
}
