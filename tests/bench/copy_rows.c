/* SPDX-License-Identifier: Apache-2.0 */
/* copy_rows [MIB [PIECE_KIB [KIND]]]: how fast rows are handed out and taken
 * in, for several kinds of tables (or only the KIND-th, from 0) of about MIB
 * each (256), in pieces of PIECE_KIB (1024), beside memcpy of pieces into
 * memory that is used for the first time. GB/s of what a piece holds; taking
 * brings the new store's pages in. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/hash.h"
#include "model/rows/pages.h"
#include "model/store/store_copy.h"

#define MIB (UINT64_C(1) << 20)
#define BATCH 1000 /* rows of a push */

typedef struct kind {
    const char *name;
    ps_keys_t keys;
    ps_row_format_t format;
    ps_updater_kind_t updater;
    ps_init_kind_t init;
    uint32_t n_cols;
    uint32_t n_arrays; /* values and states */
    bool versions;
} kind_t;

static const kind_t kinds[] = {
    {"array x 64", PS_KEYS_RANGE, PS_ROW_DENSE, PS_UPDATER_ADD, PS_INIT_ZERO, 64, 1, false},
    {"array x 64, adam, versions", PS_KEYS_RANGE, PS_ROW_DENSE, PS_UPDATER_ADAM, PS_INIT_ZERO, 64,
     4, true},
    {"array x 64, uniform", PS_KEYS_RANGE, PS_ROW_DENSE, PS_UPDATER_ADD, PS_INIT_UNIFORM, 64, 1,
     false},
    {"hash x 1024", PS_KEYS_HASH, PS_ROW_DENSE, PS_UPDATER_ADD, PS_INIT_ZERO, 1024, 1, false},
    {"hash x 64", PS_KEYS_HASH, PS_ROW_DENSE, PS_UPDATER_ADD, PS_INIT_ZERO, 64, 1, false},
    {"hash x 1", PS_KEYS_HASH, PS_ROW_DENSE, PS_UPDATER_ADD, PS_INIT_ZERO, 1, 1, false},
    {"sparse, 64 of 1024", PS_KEYS_HASH, PS_ROW_SPARSE, PS_UPDATER_ADD, PS_INIT_ZERO, 64, 1, false},
};

static double now_s(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void must(bool good)
{
    if (!good) {
        (void)fprintf(stderr, "copy_rows: failed\n");
        abort();
    }
}

/* Rows first .. first + BATCH - 1, all of their columns 1. */
static void push(ps_store_t *store, const kind_t *kind, uint64_t first, uint64_t n)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    uint8_t *to = NULL;
    ps_slice_t slice = {
        .type = PS_TYPE_F32, .n_rows = n, .n_cols = kind->n_cols, .n_values = n * kind->n_cols};

    if (kind->format == PS_ROW_SPARSE) {
        slice.cols = PS_COLS_RANGE;
    }
    payload = ps_payload_room(8 * n, 0, 4 * slice.n_values, &to);
    must(payload != NULL);
    for (uint64_t i = 0; i < n; i++, to += 8) {
        ps_store_u64(to, kind->keys == PS_KEYS_HASH ? ps_hash_u64(first + i) : first + i);
    }
    for (uint64_t i = 0; i < slice.n_values; i++) {
        ps_store_f32(to + 4 * i, 1);
    }
    must(ps_store_push(store, &slice, payload, NULL) == PSD_OK);
}

static ps_table_spec_t spec_of(const kind_t *kind, uint64_t n_rows)
{
    ps_table_spec_t spec;

    ps_table_spec_init(&spec);
    (void)snprintf(spec.name, sizeof spec.name, "t");
    spec.keys = kind->keys;
    spec.row_format = kind->format;
    spec.updater.kind = kind->updater;
    spec.updater.alpha = 0.1;
    spec.updater.beta1 = 0.9;
    spec.updater.beta2 = 0.999;
    spec.updater.eps = 1e-8;
    spec.init.kind = kind->init;
    spec.init.b = kind->init == PS_INIT_UNIFORM ? 1 : 0;
    spec.n_rows = kind->keys == PS_KEYS_RANGE ? n_rows : 0;
    spec.n_cols = kind->format == PS_ROW_SPARSE ? 1024 : kind->n_cols;
    spec.versions = kind->versions;
    spec.n_col_slices = 1;
    spec.n_partitions = 1;
    must(ps_table_spec_check(&spec, NULL) == PSD_OK);
    return spec;
}

static void measure(const kind_t *kind, uint64_t bytes, size_t piece_bytes)
{
    uint64_t n_rows = bytes / (4 * (uint64_t)kind->n_cols * kind->n_arrays);
    ps_table_spec_t spec = spec_of(kind, n_rows);
    PSD_AUTO(ps_store_destroy) ps_store_t *from = NULL;
    PSD_AUTO(ps_store_destroy) ps_store_t *to = NULL;
    ps_store_cursor_t cursor = {0};
    double given = 0;
    double taken = 0;
    uint64_t n = 0;
    bool is_done = false;

    must(ps_store_new(&spec, 0, &from, NULL) == PSD_OK);
    must(ps_store_new(&spec, 0, &to, NULL) == PSD_OK);
    for (uint64_t i = 0; i < n_rows; i += BATCH) {
        push(from, kind, i, n_rows - i < BATCH ? n_rows - i : BATCH);
    }
    ps_store_set_partial(to, true);
    while (!is_done) {
        PSD_AUTO(ps_payload_destroy) ps_payload_t *piece = NULL;
        double begin = now_s();
        double middle = 0;

        must(ps_store_hand_out(from, &cursor, piece_bytes, &piece, &is_done, NULL) == PSD_OK);
        middle = now_s();
        must(ps_store_take_in(to, piece->span, NULL) == PSD_OK);
        given += middle - begin;
        taken += now_s() - middle;
        n += piece->span.size;
    }
    (void)printf("%-28s %8.2f %8.2f GB/s %8" PRIu64 " MiB\n", kind->name, (double)n / given / 1e9,
                 (double)n / taken / 1e9, n / MIB);
}

static void measure_memcpy(uint64_t bytes, size_t piece_bytes)
{
    uint8_t *from = ps_alloc(piece_bytes, 1);
    uint8_t *to = ps_alloc_raw(bytes, 1);
    double begin = 0;

    must(from != NULL && to != NULL);
    begin = now_s();
    for (uint64_t i = 0; i + piece_bytes <= bytes; i += piece_bytes) {
        memcpy(to + i, from, piece_bytes);
    }
    (void)printf("%-28s %8s %8.2f GB/s\n", "memcpy", "", (double)bytes / (now_s() - begin) / 1e9);
    ps_free(from);
    ps_free(to);
}

/* Memory that this machine has never used may cost its host more than us. */
static void warm(uint64_t bytes)
{
    ps_pages_t all = {0};

    must(ps_pages_init(&all, bytes));
    ps_pages_will_fill(&all);
    memset(all.data, 1, bytes);
    ps_pages_done(&all);
}

int main(int argc, char **argv)
{
    uint64_t bytes = (argc > 1 ? strtoull(argv[1], NULL, 10) : 256) * MIB;
    size_t piece = (argc > 2 ? strtoull(argv[2], NULL, 10) : 1024) * 1024;

    (void)printf("%-28s %8s %8s\n", "", "out", "in");
    warm(3 * bytes);
    measure_memcpy(bytes, piece);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (argc < 4 || strtoull(argv[3], NULL, 10) == i) {
            warm(3 * bytes);
            measure(&kinds[i], bytes, piece);
        }
    }
    return 0;
}
