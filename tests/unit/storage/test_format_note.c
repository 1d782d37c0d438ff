/* SPDX-License-Identifier: Apache-2.0 */
/* storage/disk/format_note.h: a directory of another format is refused by name, and
 * one that is new, or of before the note, gets one. */
#include "storage/disk/format_note.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"
#include "support/sim_disk.h"
#include "wire/messages/formats.h"

#define DIR "data"
#define OPS_MAX 10 /* more than a note takes */

static sim_disk_t *sim;
static psd_error_t *err;

static void begin(void)
{
    sim = sim_disk_new(1);
    err = psd_error_new();
    cr_assert_eq(sim_disk_face(sim)->make_dir(sim_disk_face(sim), DIR, NULL), PSD_OK);
}

static void finish(void)
{
    sim_disk_destroy(&sim);
    psd_error_destroy(&err);
}

TestSuite(format_note, .init = begin, .fini = finish);

static psd_status_t settle(uint64_t format)
{
    psd_error_clear(err);
    return ps_format_note_settle(sim_disk_face(sim), DIR, format, err);
}

static void put(const char *path, const char *text)
{
    cr_assert_eq(ps_disk_make(sim_disk_face(sim), DIR, path,
                              (ps_bytes_t){.data = (const uint8_t *)text, .size = strlen(text)},
                              NULL, NULL),
                 PSD_OK);
}

static void expect(psd_status_t wanted, uint64_t format, const char *part)
{
    cr_assert_eq(settle(format), wanted, "%s", psd_error_text(err));
    cr_assert_not_null(strstr(psd_error_text(err), part), "%s", psd_error_text(err));
}

Test(format_note, new_directory_gets_the_number_and_keeps_it)
{
    cr_assert_eq(settle(7), PSD_OK);
    cr_assert_eq(settle(7), PSD_OK);
    expect(PSD_FOREIGN, 8,
           DIR " has data format 7, and this psd reads and writes 8; start the "
               "psd that wrote it");
    expect(PSD_FOREIGN, 1, "has data format 7");
}

Test(format_note, used_directory_without_a_note_is_format_1)
{
    put(DIR "/registry.db", "x");
    expect(PSD_FOREIGN, 9, "has data format 1, and this psd reads and writes 9");
    cr_assert_eq(settle(1), PSD_OK);
    put(DIR "/registry.db", "x");
    cr_assert_eq(settle(1), PSD_OK);
}

Test(format_note, an_older_format_that_is_read_becomes_the_new_one)
{
    put(DIR "/registry.db", "x");
    cr_assert_eq(settle(1), PSD_OK);
    cr_assert_eq(settle(PS_DISK_FORMAT), PSD_OK);
    cr_assert_eq(settle(PS_DISK_FORMAT), PSD_OK);
    expect(PSD_FOREIGN, 1, "has data format 4");
}

Test(format_note, each_file_of_a_node_makes_it_used)
{
    static const char *const files[] = {DIR "/member.json", DIR "/log-0"};

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        put(files[i], "x");
        expect(PSD_FOREIGN, 9, "has data format 1");
        cr_assert_eq(sim_disk_face(sim)->remove(sim_disk_face(sim), files[i], NULL), PSD_OK);
    }
    put(DIR "/notes.txt", "x");
    cr_assert_eq(settle(2), PSD_OK);
}

Test(format_note, other_text_is_damage)
{
    static const char *const texts[] = {
        "",
        "1\n",
        "psd data format \n",
        "psd data format 1",
        "psd data format 1\nmore\n",
        "psd data format -1\n",
        "psd data format 99999999999999999999999\n",
        "psd data format 1                                              more\n",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        put(DIR "/format", texts[i]);
        expect(PSD_DAMAGED, 1, DIR "/format: byte 0: not a line");
    }
}

static void walk(sim_disk_fault_t fault)
{
    for (uint64_t i = 0; i < OPS_MAX; i++) {
        psd_status_t rc = PSD_OK;

        finish();
        begin();
        sim_disk_plan(sim, sim_disk_ops(sim) + i, 1, fault);
        rc = settle(PS_DISK_FORMAT);
        cr_assert(rc == PSD_OK || rc == PSD_IO, "operation %d", (int)i);
        cr_assert(i > 0 || rc == PSD_IO);
        if (fault == SIM_DISK_CRASH) {
            sim_disk_restart(sim);
        }
        cr_assert_eq(settle(PS_DISK_FORMAT), PSD_OK, "operation %d: %s", (int)i,
                     psd_error_text(err));
        expect(PSD_FOREIGN, PS_DISK_FORMAT + 1, "has data format 4");
    }
}

Test(format_note, failing_disk_leaves_no_half_of_it)
{
    walk(SIM_DISK_FAIL);
}

Test(format_note, loss_of_power_leaves_no_half_of_it)
{
    walk(SIM_DISK_CRASH);
}
