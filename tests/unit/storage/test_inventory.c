/* SPDX-License-Identifier: Apache-2.0 */
/* storage/log/inventory.h: a file that somebody has removed is missed, and none
 * that psd has. */
#include "storage/log/inventory.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "support/fail_alloc.h"
#include "support/sim_disk.h"

#define DIR "data/log-0"
#define FILE_PATH DIR "/inventory"
#define TABLE "table-7.spec"
#define SNAPSHOT "snap-7-0-1-6.rows"
#define SEGMENT "log-0000000000000001.seg"

static sim_disk_t *sim;
static ps_inventory_t inventory;
static char missed[500]; /* names, a blank behind each */

static void open_anew(void)
{
    ps_inventory_done(&inventory);
    inventory = (ps_inventory_t){.disk = sim_disk_face(sim), .dir = DIR};
}

static psd_status_t make(const char *name)
{
    char path[100];

    (void)snprintf(path, sizeof path, DIR "/%s", name);
    return ps_disk_make(sim_disk_face(sim), DIR, path,
                        (ps_bytes_t){(const uint8_t *)name, strlen(name)}, NULL, NULL);
}

static void begin_on(uint64_t seed)
{
    sim = sim_disk_new(seed);
    open_anew();
    cr_assert_eq(make(TABLE), PSD_OK);
    cr_assert_eq(make(SNAPSHOT), PSD_OK);
    cr_assert_eq(make(SEGMENT), PSD_OK);
}

static void begin(void)
{
    begin_on(1);
}

static void finish(void)
{
    ps_inventory_done(&inventory);
    sim_disk_destroy(&sim);
}

TestSuite(inventory, .init = begin, .fini = finish);

static psd_status_t miss(void *context, const char *name, psd_error_t *err)
{
    size_t size = strlen(missed);

    (void)context;
    (void)err;
    (void)snprintf(missed + size, sizeof missed - size, "%s ", name);
    return PSD_OK;
}

/* As a start does it; what was missed. */
static const char *check(void)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();

    missed[0] = '\0';
    open_anew();
    cr_assert_eq(ps_inventory_check(&inventory, miss, NULL, err), PSD_OK, "%s",
                 psd_error_text(err));
    return missed;
}

static bool is_named(const void *context, const char *name)
{
    return context != NULL && strcmp(context, name) == 0;
}

static psd_status_t write_without(const char *name)
{
    return ps_inventory_write(&inventory, is_named, name, NULL);
}

Test(inventory, misses_what_was_removed_behind_it)
{
    cr_expect_str_eq(check(), "", "there is none yet");
    cr_assert_eq(write_without(NULL), PSD_OK);
    cr_expect_str_eq(check(), "");
    sim_disk_drop(sim, DIR "/" SEGMENT);
    cr_expect_str_eq(check(), "", "their log knows their numbers");
    sim_disk_drop(sim, DIR "/" SNAPSHOT);
    cr_expect_str_eq(check(), SNAPSHOT " ");
    sim_disk_drop(sim, DIR "/" TABLE);
    cr_expect_not_null(strstr(check(), TABLE " "));
    cr_expect_not_null(strstr(missed, SNAPSHOT " "));
    cr_assert_eq(write_without(NULL), PSD_OK);
    cr_expect_str_eq(check(), "", "that was known");
}

Test(inventory, is_written_when_it_changes_only)
{
    uint64_t ops = 0;

    cr_assert_eq(write_without(NULL), PSD_OK);
    ops = sim_disk_ops(sim);
    cr_assert_eq(write_without(NULL), PSD_OK);
    cr_expect_eq(sim_disk_ops(sim), ops);
    cr_assert_eq(write_without(TABLE), PSD_OK);
    cr_expect_gt(sim_disk_ops(sim), ops);
}

Test(inventory, is_refused_when_a_byte_is_wrong_or_missing)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    uint64_t size = 0;

    cr_assert_eq(write_without(NULL), PSD_OK);
    size = sim_disk_content(sim, FILE_PATH).size;
    for (uint64_t at = 0; at < size; at++) {
        sim_disk_flip(sim, FILE_PATH, at, (uint8_t)(1U << (at % 8)));
        open_anew();
        cr_assert_eq(ps_inventory_check(&inventory, miss, NULL, err), PSD_DAMAGED);
        cr_assert_not_null(strstr(psd_error_text(err), FILE_PATH ": byte "));
        sim_disk_flip(sim, FILE_PATH, at, (uint8_t)(1U << (at % 8)));
    }
    while (size-- > 0) {
        sim_disk_cut(sim, FILE_PATH, size);
        open_anew();
        cr_assert_eq(ps_inventory_check(&inventory, miss, NULL, err), PSD_DAMAGED);
    }
    cr_assert_eq(write_without(NULL), PSD_OK, "it is written anew");
    cr_expect_str_eq(check(), "");
}

/* What takes room must not keep others from making some. */
Test(inventory, goes_when_there_is_no_room_for_another)
{
    cr_assert_eq(write_without(NULL), PSD_OK);
    sim_disk_set_capacity(sim, sim_disk_bytes(sim));
    cr_assert_eq(write_without(TABLE), PSD_OK);
    sim_disk_drop(sim, DIR "/" TABLE);
    cr_expect_str_eq(check(), "");
    sim_disk_set_capacity(sim, UINT64_MAX);
    cr_assert_eq(write_without(NULL), PSD_OK);
    sim_disk_drop(sim, DIR "/" SNAPSHOT);
    cr_expect_str_eq(check(), SNAPSHOT " ");
}

/* A file comes, and another one goes; false: it has crashed. */
static bool come_and_go(void)
{
    return write_without(NULL) == PSD_OK && make("snap-7-0-1-9.rows") == PSD_OK &&
           write_without(SNAPSHOT) == PSD_OK &&
           inventory.disk->remove(inventory.disk, DIR "/" SNAPSHOT, NULL) == PSD_OK &&
           inventory.disk->flush_dir(inventory.disk, DIR, NULL) == PSD_OK;
}

Test(inventory, a_crash_at_any_step_makes_nothing_missing)
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        bool is_through = false;

        for (uint64_t op = 0; !is_through; op++) {
            finish();
            begin_on(seed);
            sim_disk_plan(sim, sim_disk_ops(sim) + op, 1, SIM_DISK_CRASH);
            is_through = come_and_go();
            sim_disk_restart(sim);
            cr_assert_str_eq(check(), "", "operation %d, seed %d: %s", (int)op, (int)seed, missed);
        }
    }
}

static psd_status_t write_and_check(void *context)
{
    psd_status_t rc = PSD_OK;

    (void)context;
    open_anew();
    rc = write_without(NULL);
    if (rc == PSD_OK) {
        open_anew();
        rc = ps_inventory_check(&inventory, miss, NULL, NULL);
    }
    return rc;
}

Test(inventory, no_memory_is_told)
{
    cr_assert_null(fail_alloc_sweep(write_and_check, NULL));
}
