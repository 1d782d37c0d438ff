/* SPDX-License-Identifier: Apache-2.0 */
/* A restore is done when its rows have reached the level of their table. */
#include "server/shards/checkpoint_task.h"

#include <inttypes.h>
#include <sched.h>

#include "../protocol/shard_bench.h"
#include "storage/snapshot/snapshot_file.h"
#include "support/temp_dir.h"
#include "wire/messages/doc.h"

#define LAST_LSN 2 /* each of the file's pieces becomes a record */

static bench_t bench;
static ps_checkpoint_task_t *task;
static uint64_t life; /* of the partition, which the disk tells of */
static temp_dir_t dir;

/* Tells the task words; its answer. */
static ps_doc_t *call(const char *words)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    const ps_image_step_t now = {.now_ms = bench.now_ms, .outbox = &bench.outbox};
    ps_doc_t *doc = NULL;
    uint64_t status = 0;

    ps_outbox_clear(&bench.outbox);
    cr_assert_eq(ps_checkpoint_task_call(task, bench.shard, &now,
                                         (ps_bytes_t){(const uint8_t *)words, strlen(words)}, &text,
                                         NULL),
                 PSD_OK);
    if (text.size == 0) {
        return NULL;
    }
    cr_assert_eq(ps_doc_parse((ps_bytes_t){text.data, text.size}, &doc, NULL), PSD_OK);
    cr_assert_eq(ps_doc_get_u64_or(doc, "status", 0, UINT16_MAX, 0, &status, NULL), PSD_OK);
    return doc;
}

/* It goes on for some steps of a millisecond, more than its words take. */
static void work(void)
{
    for (int i = 0; i < 10; i++) {
        const ps_image_step_t now = {.now_ms = ++bench.now_ms, .outbox = &bench.outbox};

        ps_outbox_clear(&bench.outbox);
        (void)ps_checkpoint_task_work(task, bench.shard, &now);
    }
}

typedef struct look {
    bool is_done;
    uint64_t n_read; /* files */
    psd_status_t status;
    char text[1000];
} look_t;

static look_t look(void)
{
    PSD_AUTO(ps_doc_destroy)
    ps_doc_t *doc = call("{\"do\":\"look\",\"number\":7}");
    look_t found = {.is_done = false};
    const char *text = NULL;
    uint64_t status = 0;

    cr_assert_eq(ps_doc_get_bool(doc, "is_done", &found.is_done, NULL), PSD_OK);
    cr_assert_eq(ps_doc_get_u64(doc, "done", 0, 1, &found.n_read, NULL), PSD_OK);
    cr_assert_eq(ps_doc_get_u64(doc, "status", 0, UINT16_MAX, &status, NULL), PSD_OK);
    cr_assert_eq(ps_doc_get_text(doc, "text", 999, &text, NULL), PSD_OK);
    found.status = (psd_status_t)status;
    (void)snprintf(found.text, sizeof found.text, "%s", text);
    return found;
}

static void flush_up_to(uint64_t lsn)
{
    const ps_position_t position = {.table = 1, .partition = 0, .lsn = lsn, .life = life};

    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_FLUSHED,
                                            .flushed = &position,
                                            .n_flushed = lsn > 0 ? 1 : 0}),
                 PSD_OK);
}

/* A file of two pieces, each with row 0 of a table; their checksum. */
static uint64_t make_file(void)
{
    const ps_snapshot_dir_t in = {.disk = ps_disk_real(), .dir = dir.path};
    const ps_snapshot_id_t id = {.table = 1};
    const ps_image_order_t order = {.table = 1};
    PSD_AUTO(ps_payload_destroy) ps_payload_t *piece = NULL;
    ps_snapshot_writer_t *writer = NULL;
    bench_t source;
    ps_image_step_t now = {0};
    bool is_last = false;
    uint64_t sum = 0;

    cr_assert_eq(open_bench(&source), PSD_OK);
    cr_assert_eq(push(&source, 1, 0, 1), PSD_OK);
    ps_outbox_clear(&source.outbox);
    now = (ps_image_step_t){.now_ms = source.now_ms, .outbox = &source.outbox};
    ps_shard_image_begin(source.shard, &now, &order);
    cr_assert_eq(ps_shard_image_next(source.shard, 1, 0, 1 << 20, &piece, &is_last, NULL), PSD_OK);
    cr_assert_eq(ps_snapshot_begin(&in, &id, 1, &writer, NULL), PSD_OK);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(ps_snapshot_add(writer, 1, piece->span, NULL), PSD_OK);
    }
    sum = ps_snapshot_sum(writer);
    cr_assert_eq(ps_snapshot_commit(&writer, 1, NULL), PSD_OK);
    close_bench(&source);
    return sum;
}

/* A table of that level whose partition here is restored from that file. */
static void restore(ps_ack_t level)
{
    const ps_shard_args_t args = {.incarnation = INCARNATION,
                                  .credit_requests = 8,
                                  .credit_bytes = 1 << 20,
                                  .chunk_bytes = 1 << 20,
                                  .slice_bytes = 1 << 20,
                                  .held_bytes = 1 << 20,
                                  .keys_bytes = 1 << 20,
                                  .sessions_max = 8,
                                  .disk = true,
                                  .log_queue_bytes = 1 << 20};
    ps_doc_t *doc = NULL;
    char words[PATH_MAX + 400];
    uint64_t sum = 0;

    cr_assert(temp_dir_make(&dir));
    sum = make_file();
    bench = (bench_t){.now_ms = 100};
    ps_table_spec_init(&bench.spec);
    (void)snprintf(bench.spec.name, sizeof bench.spec.name, "w");
    bench.spec.n_rows = N_ROWS;
    bench.spec.n_partitions = 2;
    bench.spec.n_col_slices = 1;
    bench.spec.ack = level;
    for (uint32_t i = 0; i < 2; i++) {
        bench.routes[i] =
            (ps_route_t){.partition = i, .shard = i, .epoch = 4, .incarnation = INCARNATION};
    }
    cr_assert_eq(ps_shard_new(&args, &bench.shard, NULL), PSD_OK);
    cr_assert_eq(set_table(&bench), PSD_OK);
    for (size_t i = 0; i < bench.outbox.n_effects; i++) {
        if (bench.outbox.effects[i].kind == PS_EFFECT_RECORD) {
            life = bench.outbox.effects[i].record.seq;
        }
    }
    cr_assert_eq(ps_checkpoint_task_new(&args, NULL, &task, NULL), PSD_OK);
    (void)snprintf(words, sizeof words,
                   "{\"do\":\"restore\",\"number\":7,\"dirs\":[\"%s\"],"
                   "\"cluster\":\"00000000-0000-0000-0000-000000000000\","
                   "\"table\":1,\"reader\":1001,\"files\":[{\"dir\":0,"
                   "\"table\":1,\"partition\":0,\"lsn\":0,\"sum\":\"%" PRIu64 "\"}]}",
                   dir.path, sum);
    doc = call(words);
    ps_doc_destroy(&doc);
    while (look().n_read == 0) { /* another thread reads it */
        cr_assert_eq(look().status, PSD_OK, "%s", look().text);
        work();
        (void)sched_yield();
    }
    work();
}

static void finish(void)
{
    ps_checkpoint_task_destroy(&task);
    close_bench(&bench);
    temp_dir_drop(&dir);
}

TestSuite(checkpoint_task, .fini = finish);

Test(checkpoint_task, rows_in_memory_are_all_that_memory_asks_for)
{
    restore(PS_ACK_MEMORY);
    cr_expect(look().is_done);
}

Test(checkpoint_task, a_restore_is_done_when_its_rows_are_on_the_disk)
{
    restore(PS_ACK_DISK);
    cr_expect_not(look().is_done, "nothing is flushed");
    flush_up_to(LAST_LSN - 1);
    work();
    cr_expect_not(look().is_done, "the last rows are not flushed");
    flush_up_to(LAST_LSN);
    work();
    cr_expect(look().is_done);
    cr_expect_eq(look().status, PSD_OK);
}

/* Somebody looks on, until a millisecond before that time. */
static void pass(uint64_t ms)
{
    for (uint64_t end = bench.now_ms + ms; bench.now_ms + 1000 < end;) {
        bench.now_ms += 990;
        work();
        cr_assert_eq(look().status, PSD_OK);
        cr_assert_not(look().is_done);
    }
}

Test(checkpoint_task, a_disk_that_stands_still_ends_it_with_the_reason)
{
    restore(PS_ACK_DISK);
    pass(PS_CHECKPOINT_LEVEL_MS);
    flush_up_to(LAST_LSN - 1); /* it moves: it has the whole time again */
    pass(PS_CHECKPOINT_LEVEL_MS);
    bench.now_ms += 2000;
    work();
    cr_expect_not(look().is_done);
    cr_expect_eq(look().status, PSD_DEADLINE);
    cr_expect_not_null(strstr(look().text, "ack level disk: 1 of 2 records are on the disk"), "%s",
                       look().text);
}

Test(checkpoint_task, holds_no_marks_when_it_ends_before_it_has_begun)
{
    const ps_shard_args_t args = {.incarnation = INCARNATION};
    ps_doc_t *doc = NULL;

    cr_assert(temp_dir_make(&dir));
    cr_assert_eq(open_bench(&bench), PSD_OK);
    cr_assert_eq(ps_checkpoint_task_new(&args, NULL, &task, NULL), PSD_OK);
    doc = call("{\"do\":\"arm\",\"tables\":[{\"id\":1,\"job\":3}]}");
    ps_doc_destroy(&doc);
    cr_expect_gt(ps_shard_deadline(bench.shard), bench.now_ms);
    doc = call("{\"do\":\"end\"}");
    ps_doc_destroy(&doc);
    cr_expect_leq(ps_shard_deadline(bench.shard), bench.now_ms);
}
