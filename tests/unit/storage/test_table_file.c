/* SPDX-License-Identifier: Apache-2.0 */
/* A table's spec as a file: read again as it was; every flip and every cut is
 * noticed; another cluster and another number of shards are refused. */
#include <criterion/criterion.h>

#include <stdio.h>

#include "storage/snapshot/table_file.h"
#include "support/sim_disk.h"

#define PATH "log-0/table-7.spec"

static sim_disk_t *sim;
static ps_table_dir_t dir;
static psd_error_t *err;

static void begin(void)
{
    ps_table_spec_t spec;

    sim = sim_disk_new(1);
    err = psd_error_new();
    dir = (ps_table_dir_t){.disk = sim_disk_face(sim), .dir = "log-0", .n_shards = 2};
    ps_table_spec_init(&spec);
    (void)snprintf(spec.name, sizeof spec.name, "weights");
    spec.n_rows = 12;
    spec.n_partitions = 3;
    spec.n_col_slices = 1;
    spec.ack = PS_ACK_DISK;
    cr_assert_eq(ps_table_file_write(&dir, 7, &spec, err), PSD_OK);
    ps_table_spec_done(&spec);
}

static void finish(void)
{
    psd_error_destroy(&err);
    sim_disk_destroy(&sim);
}

static psd_status_t each(void *context, uint32_t table, const ps_table_spec_t *spec, psd_error_t *e)
{
    unsigned *n = context;

    (void)e;
    cr_expect_eq(table, 7);
    cr_expect_str_eq(spec->name, "weights");
    cr_expect_eq(spec->n_rows, 12);
    cr_expect_eq(spec->ack, PS_ACK_DISK);
    (*n)++;
    return PSD_OK;
}

static psd_status_t list(unsigned *ret_n)
{
    psd_error_clear(err);
    *ret_n = 0;
    return ps_table_file_list(&dir, each, NULL, ret_n, err);
}

TestSuite(table_file, .init = begin, .fini = finish);

Test(table_file, is_read_as_it_was_written_and_outlives_the_power)
{
    unsigned n = 0;

    sim_disk_restart(sim);
    cr_expect_eq(list(&n), PSD_OK);
    cr_expect_eq(n, 1);
    cr_assert_eq(ps_table_file_remove(&dir, 7, err), PSD_OK);
    cr_expect_eq(list(&n), PSD_OK);
    cr_expect_eq(n, 0);
    cr_expect_eq(ps_table_file_remove(&dir, 7, err), PSD_OK);
}

Test(table_file, every_flip_and_every_cut_is_noticed)
{
    size_t size = sim_disk_content(sim, PATH).size;
    unsigned n = 0;

    cr_assert_gt(size, 48);
    for (size_t i = 0; i < size; i++) {
        uint8_t mask = (uint8_t)(1U << (i % 8));

        sim_disk_flip(sim, PATH, i, mask);
        cr_expect_eq(list(&n), PSD_DAMAGED, "byte %zu", i);
        cr_expect_eq(n, 0);
        sim_disk_flip(sim, PATH, i, mask);
    }
    cr_expect_eq(list(&n), PSD_OK);
    while (size > 0) {
        sim_disk_cut(sim, PATH, --size);
        cr_expect_eq(list(&n), PSD_DAMAGED, "%zu bytes", size);
    }
}

Test(table_file, of_somebody_else_is_refused_by_name)
{
    unsigned n = 0;

    dir.n_shards = 3;
    cr_expect_eq(list(&n), PSD_FOREIGN);
    cr_expect_str_eq(psd_error_text(err), PATH " was written by a node with 2 shards; this one has "
                                               "3: start it with shards: 2, or without its logs");
    dir.n_shards = 2;
    dir.cluster.bytes[0] = 1;
    cr_expect_eq(list(&n), PSD_FOREIGN);
    cr_expect_eq(n, 0);
}

Test(table_file, a_full_disk_leaves_nothing)
{
    ps_table_spec_t spec;
    unsigned n = 0;

    ps_table_spec_init(&spec);
    (void)snprintf(spec.name, sizeof spec.name, "v");
    sim_disk_set_capacity(sim, 10);
    cr_expect_eq(ps_table_file_write(&dir, 8, &spec, err), PSD_LIMIT);
    sim_disk_set_capacity(sim, UINT64_MAX);
    cr_expect_eq(list(&n), PSD_OK);
    cr_expect_eq(n, 1, "only the first one");
    ps_table_spec_done(&spec);
}
