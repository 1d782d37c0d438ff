/* SPDX-License-Identifier: Apache-2.0 */
/* storage/snapshot/snapshot_file.h: a file is whole or ignored, and what is wrong with a
 * whole one is found. */
#include "storage/snapshot/snapshot_block.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "support/fail_alloc.h"
#include "support/sim_disk.h"
#include "support/temp_dir.h"

#define DIR_NAME "data/snapshots"
#define N_PIECES 4
#define PIECE_MAX 700

static const ps_snapshot_id_t ID = {7, 3, 41, 0};
#define PATH DIR_NAME "/snap-7-3-0-41.rows"

typedef struct fixture {
    sim_disk_t *sim;
    ps_snapshot_dir_t dir;
    size_t n_whole;
    uint64_t written_sum; /* of what was written last … */
    uint64_t read_sum;    /* … and read */
} fixture_t;

static void begin(fixture_t *self, uint64_t seed)
{
    memset(self, 0, sizeof *self);
    self->sim = sim_disk_new(seed);
    self->dir = (ps_snapshot_dir_t){
        .disk = sim_disk_face(self->sim), .dir = DIR_NAME, .cluster = {{1, 2, 3}}};
}

static void end(fixture_t *self)
{
    sim_disk_destroy(&self->sim);
}

/* Piece i of a snapshot of this kind: noise, zeros, few bytes, none. */
static ps_bytes_t piece_of(uint64_t kind, size_t i, uint8_t bytes[PIECE_MAX])
{
    static const size_t sizes[N_PIECES] = {PIECE_MAX, 600, 9, 0};
    ps_rng_t rng = {kind * 100 + i};

    for (size_t k = 0; k < sizes[i]; k++) {
        bytes[k] = i == 1 ? (uint8_t)(k / 100) : (uint8_t)ps_rng_u64(&rng);
    }
    return (ps_bytes_t){bytes, sizes[i]};
}

static psd_status_t write_one(fixture_t *self, uint64_t kind, int level)
{
    ps_snapshot_writer_t *writer = NULL;
    uint8_t bytes[PIECE_MAX];
    psd_status_t rc = ps_snapshot_begin(&self->dir, &ID, level, &writer, NULL);

    for (size_t i = 0; i < N_PIECES && rc == PSD_OK; i++) {
        rc = ps_snapshot_add(writer, ID.lsn + i, piece_of(kind, i, bytes), NULL);
    }
    if (rc != PSD_OK) {
        ps_snapshot_abort(&writer);
        return rc;
    }
    self->written_sum = ps_snapshot_sum(writer);
    return ps_snapshot_commit(&writer, ID.lsn + 99, NULL);
}

/* Reads all; ret_kind: the kind that all pieces are of. */
static psd_status_t read_one(fixture_t *self, const uint64_t *kind, psd_error_t *err)
{
    ps_snapshot_reader_t *reader = NULL;
    ps_snapshot_piece_t piece = {0};
    uint8_t bytes[PIECE_MAX];
    size_t n = 0;
    psd_status_t rc = ps_snapshot_open(&self->dir, &ID, &reader, err);

    while (rc == PSD_OK && !piece.is_end) {
        rc = ps_snapshot_next(reader, &piece, err);
        if (rc == PSD_OK && !piece.is_end) {
            ps_bytes_t wanted = piece_of(*kind, n, bytes);

            cr_assert_lt(n, N_PIECES);
            cr_assert_eq(piece.lsn, ID.lsn + n);
            cr_assert_eq(piece.bytes.size, wanted.size);
            cr_assert(wanted.size == 0 || memcmp(piece.bytes.data, wanted.data, wanted.size) == 0);
            n++;
        }
    }
    if (rc == PSD_OK) {
        cr_assert_eq(n, N_PIECES);
        cr_assert_eq(piece.lsn, ID.lsn + 99);
        cr_assert_eq(piece.bytes.size, 0);
        self->read_sum = piece.sum;
    }
    ps_snapshot_close(&reader);
    return rc;
}

static psd_status_t count_whole(void *context, const ps_snapshot_id_t *id, psd_error_t *err)
{
    fixture_t *self = context;

    (void)err;
    cr_assert(id->table == ID.table && id->partition == ID.partition && id->lsn == ID.lsn);
    self->n_whole++;
    return PSD_OK;
}

Test(snapshot_file, pieces_come_back)
{
    for (int level = 0; level <= 3; level += 3) {
        PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
        fixture_t fixture;
        uint64_t kind = 1;

        begin(&fixture, 1);
        cr_assert_eq(write_one(&fixture, kind, level), PSD_OK);
        cr_assert_eq(read_one(&fixture, &kind, err), PSD_OK, "%s", psd_error_text(err));
        /* Only the zeros become smaller; noise lies as it is. */
        if (level == 0) {
            cr_assert_eq(sim_disk_content(fixture.sim, PATH).size,
                         56 + (N_PIECES + 1) * 48 + PIECE_MAX + 600 + 9);
        } else {
            cr_assert_lt(sim_disk_content(fixture.sim, PATH).size,
                         56 + (N_PIECES + 1) * 48 + PIECE_MAX + 100 + 9);
            cr_assert_gt(sim_disk_content(fixture.sim, PATH).size,
                         56 + (N_PIECES + 1) * 48 + PIECE_MAX + 9);
        }
        end(&fixture);
    }
}

/* Who reads a file comes to the sum that its writer had, and of other pieces to
 * another one. */
Test(snapshot_file, has_a_sum_of_its_pieces)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    fixture_t fixture;
    uint64_t sums[2];

    begin(&fixture, 1);
    for (uint64_t kind = 0; kind < 2; kind++) {
        cr_assert_eq(write_one(&fixture, kind, 1), PSD_OK);
        cr_assert_eq(read_one(&fixture, &kind, err), PSD_OK, "%s", psd_error_text(err));
        cr_expect_eq(fixture.read_sum, fixture.written_sum);
        sums[kind] = fixture.read_sum;
    }
    cr_expect_neq(sums[0], sums[1]);
    end(&fixture);
}

Test(snapshot_file, tells_how_much_is_written)
{
    ps_snapshot_writer_t *writer = NULL;
    fixture_t fixture;

    begin(&fixture, 1);
    cr_assert_eq(ps_snapshot_begin(&fixture.dir, &ID, 0, &writer, NULL), PSD_OK);
    cr_assert_eq(ps_snapshot_bytes(writer), 56);
    cr_assert_eq(ps_snapshot_add(writer, 1, (ps_bytes_t){(const uint8_t *)"abc", 3}, NULL), PSD_OK);
    cr_assert_eq(ps_snapshot_bytes(writer), 56 + 48 + 3);
    ps_snapshot_abort(&writer);
    cr_assert_null(writer);
    ps_snapshot_abort(&writer);
    cr_assert_eq(sim_disk_count(fixture.sim), 0);
    end(&fixture);
}

/* ---- the directory ------------------------------------------------------- */

static void make_file(fixture_t *self, const char *path)
{
    ps_disk_file_t *file = NULL;

    cr_assert_eq(self->dir.disk->open(self->dir.disk, path, PS_DISK_NEW, &file, NULL), PSD_OK);
    self->dir.disk->close(self->dir.disk, &file);
}

Test(snapshot_file, lists_what_is_whole_and_removes_what_is_not)
{
    static const char *const others[] = {
        DIR_NAME "/snap-7-3-0-41.rowsx",
        DIR_NAME "/snap-7-3-0-41.rows.damaged",
        DIR_NAME "/snap-7-3-0-41.rows.tmpx",
        DIR_NAME "/log-flushed",
    };
    fixture_t fixture;

    begin(&fixture, 1);
    cr_assert_eq(write_one(&fixture, 1, 1), PSD_OK);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        make_file(&fixture, others[i]);
    }
    make_file(&fixture, DIR_NAME "/snap-7-3-0-42.rows.tmp");
    cr_assert_eq(ps_snapshot_list(&fixture.dir, count_whole, &fixture, NULL), PSD_OK);
    cr_assert_eq(fixture.n_whole, 1);
    cr_assert(!sim_disk_has(fixture.sim, DIR_NAME "/snap-7-3-0-42.rows.tmp"));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        cr_assert(sim_disk_has(fixture.sim, others[i]), "%s", others[i]);
    }
    cr_assert_eq(ps_snapshot_remove(&fixture.dir, &ID, NULL), PSD_OK);
    cr_assert(!sim_disk_has(fixture.sim, PATH));
    cr_assert_eq(ps_snapshot_remove(&fixture.dir, &ID, NULL), PSD_OK);
    end(&fixture);
}

/* Passed over, the rows in it would be missed by nobody. */
Test(snapshot_file, one_of_another_version_is_refused_by_name)
{
    static const char *const strange[] = {
        "snap-07-3-0-41.rows",
        "snap-7-3-41.rows",
        "snap-7-3-0-99999999999999999999.rows",
        "snap-4294967296-3-0-1.rows",
    };

    for (size_t i = 0; i < sizeof strange / sizeof strange[0]; i++) {
        PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
        fixture_t fixture;
        char path[128];

        begin(&fixture, 1);
        (void)snprintf(path, sizeof path, "%s/%s", DIR_NAME, strange[i]);
        make_file(&fixture, path);
        cr_assert_eq(ps_snapshot_list(&fixture.dir, count_whole, &fixture, err), PSD_FOREIGN, "%s",
                     path);
        cr_assert_eq(strncmp(psd_error_text(err), path, strlen(path)), 0, "%s",
                     psd_error_text(err));
        cr_assert(sim_disk_has(fixture.sim, path));
        end(&fixture);
    }
}

/* ---- damage -------------------------------------------------------------- */

static void assert_damaged(fixture_t *self, size_t at)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    uint64_t kind = 1;

    cr_assert_eq(read_one(self, &kind, err), PSD_DAMAGED, "byte %zu", at);
    cr_assert_eq(strncmp(psd_error_text(err), PATH ": byte ", strlen(PATH ": byte ")), 0, "%s",
                 psd_error_text(err));
}

Test(snapshot_file, every_flipped_bit_is_found)
{
    fixture_t fixture;
    size_t size = 0;

    begin(&fixture, 1);
    cr_assert_eq(write_one(&fixture, 1, 1), PSD_OK);
    size = sim_disk_content(fixture.sim, PATH).size;
    for (size_t at = 0; at < 8 * size; at++) {
        sim_disk_flip(fixture.sim, PATH, at / 8, (uint8_t)(1U << at % 8));
        assert_damaged(&fixture, at / 8);
        sim_disk_flip(fixture.sim, PATH, at / 8, (uint8_t)(1U << at % 8));
    }
    end(&fixture);
}

Test(snapshot_file, every_truncation_is_found)
{
    fixture_t fixture;
    size_t size = 0;

    begin(&fixture, 1);
    cr_assert_eq(write_one(&fixture, 1, 1), PSD_OK);
    size = sim_disk_content(fixture.sim, PATH).size;
    while (size > 0) {
        sim_disk_cut(fixture.sim, PATH, --size);
        assert_damaged(&fixture, size);
    }
    end(&fixture);
}

static void append_bytes(fixture_t *self, ps_bytes_t bytes)
{
    uint64_t size = sim_disk_content(self->sim, PATH).size;
    ps_disk_t *disk = self->dir.disk;
    ps_disk_file_t *file = NULL;

    cr_assert_eq(disk->open(disk, PATH, PS_DISK_KEEP, &file, NULL), PSD_OK);
    cr_assert_eq(disk->write(disk, file, size, &bytes, 1, NULL), PSD_OK);
    disk->close(disk, &file);
}

Test(snapshot_file, bytes_behind_the_end_are_found)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    fixture_t fixture;
    uint64_t kind = 1;

    begin(&fixture, 1);
    cr_assert_eq(write_one(&fixture, 1, 1), PSD_OK);
    append_bytes(&fixture, (ps_bytes_t){(const uint8_t *)"x", 1});
    cr_assert_eq(read_one(&fixture, &kind, err), PSD_DAMAGED);
    cr_assert_not_null(strstr(psd_error_text(err), ": there are bytes after the end"));
    end(&fixture);
}

/* Every piece is sound, and one is not there: piece 0 is cut out. */
Test(snapshot_file, a_piece_that_is_missing_is_found)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    fixture_t fixture;
    uint64_t kind = 1;
    uint8_t *rest = NULL;
    size_t from = 56 + 48 + PIECE_MAX;
    size_t size = 0;

    begin(&fixture, 1);
    cr_assert_eq(write_one(&fixture, 1, 0), PSD_OK);
    size = sim_disk_content(fixture.sim, PATH).size - from;
    rest = malloc(size);
    cr_assert_not_null(rest);
    memcpy(rest, sim_disk_content(fixture.sim, PATH).data + from, size);
    sim_disk_cut(fixture.sim, PATH, 56);
    append_bytes(&fixture, (ps_bytes_t){rest, size});
    free(rest);
    cr_assert_eq(read_one(&fixture, &kind, err), PSD_DAMAGED);
    cr_assert_str_eq(psd_error_text(err), PATH ": byte 56: a piece is missing");
    end(&fixture);
}

Test(snapshot_file, anothers_is_refused_by_name)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_snapshot_reader_t *reader = NULL;
    const ps_snapshot_id_t other = {7, 3, 42, 0};
    fixture_t fixture;

    begin(&fixture, 1);
    cr_assert_eq(write_one(&fixture, 1, 1), PSD_OK);
    fixture.dir.cluster.bytes[0] = 9;
    cr_assert_eq(ps_snapshot_open(&fixture.dir, &ID, &reader, err), PSD_FOREIGN);
    cr_assert_str_eq(psd_error_text(err),
                     PATH " is of cluster 01020300-0000-0000-0000-000000000000; "
                          "this one is 09020300-0000-0000-0000-000000000000");
    psd_error_clear(err);
    fixture.dir.cluster.bytes[0] = 1;
    cr_assert_eq(
        fixture.dir.disk->rename(fixture.dir.disk, PATH, DIR_NAME "/snap-7-3-0-42.rows", err),
        PSD_OK);
    cr_assert_eq(ps_snapshot_open(&fixture.dir, &other, &reader, err), PSD_DAMAGED);
    cr_assert_not_null(strstr(psd_error_text(err), "lsn 41; the name says"));
    cr_assert_null(reader);
    end(&fixture);
}

/* ---- pieces of several blocks -------------------------------------------- */

Test(snapshot_file, a_piece_larger_than_a_block_comes_back_whole)
{
    const size_t size = PS_BLOCK_MAX + 1000;
    PSD_AUTO(ps_free_at) uint8_t *bytes = ps_alloc(size, 1);
    ps_snapshot_writer_t *writer = NULL;
    ps_snapshot_reader_t *reader = NULL;
    ps_snapshot_piece_t piece;
    fixture_t fixture;

    cr_assert_not_null(bytes);
    for (size_t i = 0; i < size; i += 4096) {
        bytes[i] = (uint8_t)(i >> 12);
    }
    begin(&fixture, 1);
    cr_assert_eq(ps_snapshot_begin(&fixture.dir, &ID, 1, &writer, NULL), PSD_OK);
    cr_assert_eq(ps_snapshot_add(writer, 41, (ps_bytes_t){bytes, size}, NULL), PSD_OK);
    cr_assert_eq(ps_snapshot_add(writer, 43, (ps_bytes_t){bytes, 5}, NULL), PSD_OK);
    cr_assert_eq(ps_snapshot_commit(&writer, 43, NULL), PSD_OK);
    cr_assert_eq(ps_snapshot_open(&fixture.dir, &ID, &reader, NULL), PSD_OK);
    cr_assert_eq(ps_snapshot_next(reader, &piece, NULL), PSD_OK);
    cr_expect_eq(piece.lsn, 41);
    cr_assert_eq(piece.bytes.size, size);
    cr_expect(memcmp(piece.bytes.data, bytes, size) == 0);
    cr_assert_eq(ps_snapshot_next(reader, &piece, NULL), PSD_OK);
    cr_expect_eq(piece.bytes.size, 5);
    cr_assert_eq(ps_snapshot_next(reader, &piece, NULL), PSD_OK);
    cr_expect(piece.is_end);
    ps_snapshot_close(&reader);
    end(&fixture);
}

Test(snapshot_file, a_piece_that_does_not_go_on_is_damage)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    const ps_bytes_t stored = {(const uint8_t *)"abc", 3};
    const ps_snapshot_head_t head = {
        PS_SNAPSHOT_MAGIC, PS_SNAPSHOT_VERSION, ID.table, ID.partition, ID.lsn,
        ID.life,           {{1, 2, 3}}};
    const ps_snapshot_block_t block = {
        PS_PIECE_MAGIC, PS_PIECE_RAW | PS_PIECE_GOES_ON, 0, 41, 3, 3};
    const ps_snapshot_block_t last = {PS_END_MAGIC, PS_PIECE_RAW, 1, 41, 3, 0};
    uint8_t bytes[PS_SNAPSHOT_HEAD + 2 * PS_BLOCK_HEAD + 3];
    uint64_t kind = 0;
    fixture_t fixture;

    begin(&fixture, 1);
    ps_snapshot_head_write(&head, bytes);
    ps_block_write(&block, stored, bytes + PS_SNAPSHOT_HEAD);
    memcpy(bytes + PS_SNAPSHOT_HEAD + PS_BLOCK_HEAD, stored.data, stored.size);
    ps_block_write(&last, (ps_bytes_t){NULL, 0},
                   bytes + PS_SNAPSHOT_HEAD + PS_BLOCK_HEAD + stored.size);
    make_file(&fixture, PATH);
    sim_disk_cut(fixture.sim, PATH, 0);
    append_bytes(&fixture, (ps_bytes_t){bytes, sizeof bytes});
    cr_assert_eq(read_one(&fixture, &kind, err), PSD_DAMAGED);
    cr_assert_str_eq(psd_error_text(err), PATH ": byte 107: a piece does not continue");
    end(&fixture);
}

/* ---- faults of the disk -------------------------------------------------- */

/* A crash while a second one is written over a first: one of them is there,
 * whole. false: there are fewer operations. */
static bool crash_at(uint64_t seed, uint64_t op, sim_disk_fault_t fault)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    fixture_t fixture;
    uint64_t old = 1;
    uint64_t new = 2;
    psd_status_t rc = PSD_OK;
    bool more = false;

    begin(&fixture, seed);
    cr_assert_eq(write_one(&fixture, old, 1), PSD_OK);
    sim_disk_plan(fixture.sim, sim_disk_ops(fixture.sim) + op, 1, fault);
    op += sim_disk_ops(fixture.sim);
    rc = write_one(&fixture, new, 1);
    more = sim_disk_ops(fixture.sim) > op;
    sim_disk_restart(fixture.sim);
    cr_assert_eq(ps_snapshot_list(&fixture.dir, count_whole, &fixture, NULL), PSD_OK);
    cr_assert_eq(fixture.n_whole, 1);
    cr_assert_eq(sim_disk_count(fixture.sim), 1); /* nothing beside it */
    if (rc == PSD_OK) {
        cr_assert_eq(read_one(&fixture, &new, err), PSD_OK, "%s", psd_error_text(err));
    } else {
        uint64_t *kind = &old;
        ps_bytes_t content = sim_disk_content(fixture.sim, PATH);
        uint8_t bytes[PIECE_MAX];

        /* The first piece is noise and lies behind two heads. */
        cr_assert_gt(content.size, 96 + PIECE_MAX);
        if (memcmp(content.data + 104, piece_of(new, 0, bytes).data, PIECE_MAX) == 0) {
            kind = &new;
        }
        cr_assert_eq(read_one(&fixture, kind, err), PSD_OK, "%s", psd_error_text(err));
    }
    end(&fixture);
    return more;
}

Test(snapshot_file, a_crash_at_any_operation_leaves_a_whole_one)
{
    size_t n = 0;

    for (uint64_t seed = 1; seed <= 40; seed++) {
        for (uint64_t op = 0; crash_at(seed, op, SIM_DISK_CRASH); op++) {
            n++;
        }
    }
    cr_assert_gt(n, 300);
}

Test(snapshot_file, any_call_that_fails_leaves_a_whole_one)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        for (uint64_t op = 0; crash_at(seed, op, SIM_DISK_FAIL); op++) {
        }
    }
}

Test(snapshot_file, a_full_disk_is_told_and_leaves_nothing)
{
    fixture_t fixture;

    for (uint64_t room = 0; room < 1000; room += 50) {
        begin(&fixture, 1);
        sim_disk_set_capacity(fixture.sim, room);
        cr_assert_eq(write_one(&fixture, 1, 0), PSD_LIMIT);
        cr_assert_eq(sim_disk_count(fixture.sim), 0);
        sim_disk_set_capacity(fixture.sim, UINT64_MAX);
        cr_assert_eq(write_one(&fixture, 1, 0), PSD_OK);
        end(&fixture);
    }
}

/* ---- memory -------------------------------------------------------------- */

static psd_status_t write_and_read(void *context)
{
    fixture_t fixture;
    uint64_t kind = 1;
    psd_status_t rc = PSD_OK;

    (void)context;
    begin(&fixture, 1);
    rc = write_one(&fixture, kind, 1);
    if (rc == PSD_OK) {
        rc = ps_snapshot_list(&fixture.dir, count_whole, &fixture, NULL);
    }
    if (rc == PSD_OK) {
        rc = read_one(&fixture, &kind, NULL);
    }
    if (rc == PSD_OK) {
        rc = ps_snapshot_remove(&fixture.dir, &ID, NULL);
    }
    end(&fixture);
    return rc;
}

Test(snapshot_file, no_memory_is_told_and_leaks_nothing)
{
    cr_assert_null(fail_alloc_sweep(write_and_read, NULL));
}

Test(snapshot_file, works_on_the_systems_disk)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    fixture_t fixture;
    temp_dir_t temp;
    uint64_t kind = 1;

    cr_assert(temp_dir_make(&temp));
    begin(&fixture, 1);
    fixture.dir.disk = ps_disk_real();
    fixture.dir.dir = temp.path;
    cr_assert_eq(write_one(&fixture, 2, 1), PSD_OK);
    fixture.dir.streams = true;
    cr_assert_eq(write_one(&fixture, kind, 1), PSD_OK);
    cr_assert_eq(ps_snapshot_list(&fixture.dir, count_whole, &fixture, err), PSD_OK);
    cr_assert_eq(fixture.n_whole, 1);
    cr_assert_eq(read_one(&fixture, &kind, err), PSD_OK, "%s", psd_error_text(err));
    end(&fixture);
    temp_dir_drop(&temp);
}
