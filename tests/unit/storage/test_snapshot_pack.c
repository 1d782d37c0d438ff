/* SPDX-License-Identifier: Apache-2.0 */
/* storage/snapshot/snapshot_file.h: what zstd is tried on, in files that are streamed.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "base/rng.h"
#include "storage/snapshot/snapshot_file.h"
#include "support/fail_alloc.h"
#include "support/temp_dir.h"

#define HEADS (56 + 48) /* of a file, and of a piece */

static const ps_snapshot_id_t ID = {.table = 1, .lsn = 7};

/* Writes a file with one piece; ret_bytes: how much, before its end. */
static psd_status_t write_piece(const char *dir, ps_bytes_t piece, uint64_t *ret_bytes)
{
    const ps_snapshot_dir_t in = {.disk = ps_disk_real(), .dir = dir, .streams = true};
    ps_snapshot_writer_t *writer = NULL;
    psd_status_t rc = ps_snapshot_begin(&in, &ID, 1, &writer, NULL);

    if (rc == PSD_OK) {
        rc = ps_snapshot_add(writer, ID.lsn, piece, NULL);
    }
    if (rc != PSD_OK) {
        ps_snapshot_abort(&writer);
        return rc;
    }
    *ret_bytes = ps_snapshot_bytes(writer);
    return ps_snapshot_commit(&writer, ID.lsn, NULL);
}

static uint64_t bytes_with(const temp_dir_t *temp, ps_bytes_t piece)
{
    uint64_t bytes = 0;

    cr_assert_eq(write_piece(temp->path, piece, &bytes), PSD_OK);
    return bytes;
}

/* Of a long piece, samples say whether it is worth the time. */
Test(snapshot_pack, what_hardly_shrinks_lies_as_it_is)
{
    static uint8_t bytes[256 << 10];
    const ps_bytes_t all = {bytes, sizeof bytes};
    const ps_bytes_t few = {bytes, 4000};
    ps_rng_t rng = {5};
    temp_dir_t temp;

    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)ps_rng_below(&rng, 160); /* zstd saves 8 % */
    }
    cr_assert(temp_dir_make(&temp));
    cr_expect_eq(bytes_with(&temp, all), HEADS + sizeof bytes);
    cr_expect_lt(bytes_with(&temp, few), HEADS + few.size);
    memset(bytes + sizeof bytes / 2, 7, sizeof bytes / 2);
    cr_expect_lt(bytes_with(&temp, all), HEADS + sizeof bytes * 3 / 5);
    temp_dir_drop(&temp);
}

/* Behind many pieces that were tried in vain, soon one is tried again. */
Test(snapshot_pack, what_shrinks_is_found_behind_what_does_not)
{
    enum { BEFORE = 40, BEHIND = 40, MISSED = 16 };
    static uint8_t noise[64 << 10];
    static uint8_t same[64 << 10];
    const ps_snapshot_dir_t in = {.disk = ps_disk_real(), .streams = true};
    ps_snapshot_dir_t at = in;
    ps_snapshot_writer_t *writer = NULL;
    ps_rng_t rng = {5};
    temp_dir_t temp;

    for (size_t i = 0; i < sizeof noise; i++) {
        noise[i] = (uint8_t)ps_rng_below(&rng, 256);
    }
    cr_assert(temp_dir_make(&temp));
    at.dir = temp.path;
    cr_assert_eq(ps_snapshot_begin(&at, &ID, 1, &writer, NULL), PSD_OK);
    for (int i = 0; i < BEFORE + BEHIND; i++) {
        const ps_bytes_t piece = {i < BEFORE ? noise : same, sizeof noise};

        cr_assert_eq(ps_snapshot_add(writer, ID.lsn, piece, NULL), PSD_OK);
    }
    cr_expect_gt(ps_snapshot_bytes(writer), BEFORE * sizeof noise);
    cr_expect_lt(ps_snapshot_bytes(writer), (BEFORE + MISSED) * sizeof noise);
    ps_snapshot_abort(&writer);
    temp_dir_drop(&temp);
}

static psd_status_t write_one(void *context)
{
    uint64_t bytes = 0;

    return write_piece(context, (ps_bytes_t){(const uint8_t *)"abcabcabc", 9}, &bytes);
}

Test(snapshot_pack, no_memory_for_a_stream_is_told)
{
    temp_dir_t temp;

    cr_assert(temp_dir_make(&temp));
    cr_assert_null(fail_alloc_sweep(write_one, temp.path));
    temp_dir_drop(&temp);
}
