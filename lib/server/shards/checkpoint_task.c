/* SPDX-License-Identifier: Apache-2.0 */
/* The checkpoint commands of a shard, and its answers. */
#include "server/shards/checkpoint_task.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "server/shards/checkpoint_inner.h"

#define TABLES_MAX 65536
#define FILES_MAX 65536
#define HOLD_MS 2000 /* marks wait for `begin`, or `end` */

/* ---- start and end ---- */

/* Marks may still wait for images to begin. */
static void forget(ps_checkpoint_task_t *self, ps_shard_t *shard)
{
    for (size_t i = 0; shard != NULL && !self->restores && i < self->n_items; i++) {
        ps_shard_image_end(shard, self->items[i].id.table, self->items[i].id.partition);
    }
    ps_piece_thread_stop(&self->thread); /* borrows dirs */
    for (size_t i = 0; i < self->n_dirs; i++) {
        ps_buffer_done(&self->dirs[i]);
    }
    self->n_dirs = 0;
    ps_payload_destroy(&self->piece);
    psd_error_clear(self->err);
    self->n_items = 0;
    self->at = 0;
    self->bytes = 0;
    self->next = 0;
    self->n_partitions = 0;
    self->n_mine = 0;
    ps_free(self->mine);
    self->mine = NULL;
    self->number = 0;
    self->is_done = false;
    self->reached = 0;
    self->moved_ms = 0;
    self->status = PSD_OK;
}

void ps_checkpoint_end(ps_checkpoint_task_t *self, ps_shard_t *shard)
{
    forget(self, shard);
    if (shard != NULL) {
        ps_shard_image_disarm(shard);
    }
}

psd_status_t ps_checkpoint_task_new(const ps_shard_args_t *args, ps_turns_t *turns,
                                    ps_checkpoint_task_t **ret, psd_error_t *err)
{
    ps_checkpoint_task_t *self = ps_alloc(1, sizeof *self);

    if (self != NULL) {
        self->cluster = args->cluster;
        self->incarnation = args->incarnation;
        self->shard = args->shard;
        self->turns = turns;
        self->err = psd_error_new();
    }
    if (self == NULL || self->err == NULL) {
        ps_free(self);
        return psd_error_set(err, PSD_NOMEM, "no memory for checkpoints");
    }
    *ret = self;
    return PSD_OK;
}

void ps_checkpoint_task_destroy(ps_checkpoint_task_t **self_p)
{
    ps_checkpoint_task_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    ps_checkpoint_end(self, NULL);
    psd_error_destroy(&self->err);
    ps_free(self->items);
    ps_free(self->dirs);
    ps_free(self);
    *self_p = NULL;
}

void ps_checkpoint_fail(ps_checkpoint_task_t *self, psd_status_t status)
{
    self->status = status;
}

psd_status_t ps_checkpoint_no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for a checkpoint");
}

psd_status_t ps_checkpoint_add_item(ps_checkpoint_task_t *self, const ps_checkpoint_item_t *item,
                                    psd_error_t *err)
{
    if (!ps_grow(&self->items, &self->items_capacity, self->n_items + 1, sizeof *self->items)) {
        return ps_checkpoint_no_memory(err);
    }
    self->items[self->n_items++] = *item;
    return PSD_OK;
}

psd_status_t ps_checkpoint_start(ps_checkpoint_task_t *self, const ps_image_step_t *step,
                                 const ps_id_t *cluster, const char *dir, uint64_t number,
                                 psd_error_t *err)
{
    const ps_snapshot_dir_t in = {
        .disk = ps_disk_real(), .cluster = *cluster, .dir = dir, .streams = true};
    psd_status_t rc = ps_piece_thread_start(&in, self->shard, self->turns, &self->thread, err);

    if (rc == PSD_OK) {
        self->number = number;
        self->seen_ms = step->now_ms;
    }
    return rc;
}

/* ---- arm, begin ---- */

static psd_status_t read_table(const ps_doc_t *tables, size_t i, const ps_doc_t **ret_doc,
                               ps_image_order_t *ret, psd_error_t *err)
{
    uint64_t id = 0;
    uint64_t job = 0;
    psd_status_t rc = ps_doc_at_object(tables, i, ret_doc, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(*ret_doc, "id", 1, UINT32_MAX, &id, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64_or(*ret_doc, "job", 0, UINT32_MAX, 0, &job, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64_or(*ret_doc, "clock", 0, UINT64_MAX, 0, &ret->clock, err);
    }
    ret->table = (uint32_t)id;
    ret->job = (uint32_t)job;
    return rc;
}

static psd_status_t do_arm(ps_checkpoint_task_t *self, ps_shard_t *shard,
                           const ps_image_step_t *step, const ps_doc_t *doc, ps_doc_t *answer,
                           psd_error_t *err)
{
    const ps_doc_t *tables = NULL;
    uint64_t most = 0;
    bool exact = false;
    psd_status_t rc = ps_doc_get_array(doc, "tables", TABLES_MAX, &tables, err);

    ps_checkpoint_end(self, shard);
    if (rc == PSD_OK && ps_doc_has(doc, "exact")) {
        rc = ps_doc_get_bool(doc, "exact", &exact, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < ps_doc_count(tables); i++) {
        ps_image_order_t order = {0};
        const ps_doc_t *item = NULL;
        uint64_t clock = 0;

        order.exact = exact;
        rc = read_table(tables, i, &item, &order, err);
        if (rc == PSD_OK && order.job != 0) {
            clock = ps_shard_image_arm(shard, step, &order, HOLD_MS);
            most = clock > most ? clock : most;
        }
    }
    if (rc == PSD_OK && !ps_doc_set_u64(answer, "clock", most)) {
        rc = ps_checkpoint_no_memory(err);
    }
    if (rc != PSD_OK) {
        ps_shard_image_disarm(shard);
    }
    return rc;
}

/* What earlier images had, three numbers a partition. */
static psd_status_t read_since(const ps_doc_t *doc, ps_image_since_t **ret, uint32_t *ret_n,
                               psd_error_t *err)
{
    const ps_doc_t *array = NULL;
    ps_image_since_t *since = NULL;
    psd_status_t rc = PSD_OK;

    if (!ps_doc_has(doc, "since")) {
        return PSD_OK;
    }
    rc = ps_doc_get_array(doc, "since", 3 * FILES_MAX, &array, err);
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_n = (uint32_t)(ps_doc_count(array) / 3);
    since = ps_alloc(*ret_n + 1, sizeof *since);
    if (since == NULL) {
        return ps_checkpoint_no_memory(err);
    }
    *ret = since;
    for (size_t i = 0; rc == PSD_OK && i < 3 * (size_t)*ret_n; i++) {
        ps_image_since_t *each = &since[i / 3];
        uint64_t *const numbers[3] = {&each->version, &each->lsn, &each->epoch};

        rc = ps_doc_at_u64(array, i, numbers[i % 3], err);
    }
    return rc;
}

/* The images of one table; an item for each partition that is primary here. */
static psd_status_t begin_table(ps_checkpoint_task_t *self, ps_shard_t *shard,
                                const ps_image_step_t *step, const ps_doc_t *doc,
                                ps_image_order_t *order, psd_error_t *err)
{
    PSD_AUTO(ps_free_at) ps_image_since_t *since = NULL;
    uint32_t n_since = 0;
    ps_image_view_t view = {0};
    uint32_t n = ps_shard_image_partitions(shard, order->table);
    psd_status_t rc = read_since(doc, &since, &n_since, err);

    if (rc == PSD_OK && since != NULL && n_since != n && n > 0) {
        return psd_error_set(err, PSD_INVALID,
                             "since is of %" PRIu32 " partitions; allowed: %" PRIu32, n_since, n);
    }
    order->since = since;
    for (uint32_t i = 0; rc == PSD_OK && i < n; i++) {
        const ps_checkpoint_item_t item = {.id = {.table = order->table, .partition = i}};

        if (ps_shard_image_look(shard, order->table, i, &view)) {
            rc = ps_checkpoint_add_item(self, &item, err);
        }
    }
    if (rc == PSD_OK) {
        ps_shard_image_begin(shard, step, order);
    }
    return rc;
}

static psd_status_t do_begin(ps_checkpoint_task_t *self, ps_shard_t *shard,
                             const ps_image_step_t *step, const ps_doc_t *doc, ps_doc_t *answer,
                             psd_error_t *err)
{
    const ps_doc_t *tables = NULL;
    const char *dir = NULL;
    uint64_t early_bytes = 0;
    uint64_t number = 0;
    bool exact = false;
    psd_status_t rc = ps_doc_get_u64(doc, "number", 1, UINT64_MAX, &number, err);

    (void)answer;
    forget(self, shard);
    self->restores = false;
    if (rc == PSD_OK) {
        rc = ps_doc_get_text(doc, "dir", 4096, &dir, err);
    }
    if (rc == PSD_OK) {
        rc = ps_checkpoint_start(self, step, &self->cluster, dir, number, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "early_bytes", 0, UINT64_MAX, &early_bytes, err);
    }
    if (rc == PSD_OK && ps_doc_has(doc, "exact")) {
        rc = ps_doc_get_bool(doc, "exact", &exact, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_array(doc, "tables", TABLES_MAX, &tables, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < ps_doc_count(tables); i++) {
        ps_image_order_t order = {.early_bytes = early_bytes, .exact = exact, .in_turn = !exact};
        const ps_doc_t *item = NULL;

        rc = read_table(tables, i, &item, &order, err);
        if (rc == PSD_OK) {
            rc = begin_table(self, shard, step, item, &order, err);
        }
    }
    if (rc != PSD_OK) {
        ps_checkpoint_end(self, shard);
    }
    return rc;
}

/* ---- look, end ---- */

static bool add_view(const ps_checkpoint_item_t *item, ps_doc_t *array)
{
    ps_doc_t *doc = ps_doc_append_object(array);

    return doc != NULL && ps_doc_set_u64(doc, "table", item->id.table) &&
           ps_doc_set_u64(doc, "partition", item->id.partition) &&
           ps_doc_set_u64(doc, "lsn", item->id.lsn) &&
           ps_doc_set_u64(doc, "lsn_epoch", item->view.lsn_epoch) &&
           ps_doc_set_u64(doc, "epoch", item->view.epoch) &&
           ps_doc_set_u64(doc, "since", item->view.since) &&
           ps_doc_set_u64(doc, "version", item->view.version) &&
           ps_doc_set_u64(doc, "clock", item->view.clock) &&
           ps_doc_set_u64(doc, "exact", item->view.exact ? 1 : 0) &&
           ps_doc_set_u64(doc, "rows", item->view.rows) &&
           ps_doc_set_u64(doc, "bytes", item->bytes) && ps_doc_set_u64(doc, "sum", item->sum);
}

/* Images of ours that have begun. */
static uint64_t count_begun(const ps_checkpoint_task_t *self, const ps_shard_t *shard)
{
    uint64_t n = 0;

    for (size_t i = 0; !self->restores && i < self->n_items; i++) {
        const ps_checkpoint_item_t *item = &self->items[i];
        ps_image_view_t view = {0};

        n += item->state != PS_ITEM_WAITING ||
                     (ps_shard_image_look(shard, item->id.table, item->id.partition, &view) &&
                      view.state == PS_IMAGE_BEGUN)
                 ? 1
                 : 0;
    }
    return n;
}

static psd_status_t do_look(ps_checkpoint_task_t *self, ps_shard_t *shard,
                            const ps_image_step_t *step, const ps_doc_t *doc, ps_doc_t *answer,
                            psd_error_t *err)
{
    ps_doc_t *items = ps_doc_add_array(answer, "items");
    uint64_t n_done = 0;
    uint64_t number = 0;
    bool fits = items != NULL;
    psd_status_t rc = ps_doc_get_u64(doc, "number", 1, UINT64_MAX, &number, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (number != self->number) {
        return psd_error_set(err, PSD_INVALID,
                             "checkpoint work %" PRIu64
                             " is not known here: it was cancelled, or psd was restarted",
                             number);
    }
    self->seen_ms = step->now_ms;
    if (self->restores) {
        ps_checkpoint_check_done(self, shard, step);
    }
    for (size_t i = 0; fits && i < self->n_items; i++) {
        n_done += self->items[i].state == PS_ITEM_DONE ? 1 : 0;
        fits = self->restores || !self->is_done || add_view(&self->items[i], items);
    }
    fits =
        fits && ps_doc_set_bool(answer, "is_done", self->is_done) &&
        ps_doc_set_u64(answer, "status", (uint64_t)self->status) &&
        ps_doc_set_text(answer, "text", self->status == PSD_OK ? "" : psd_error_text(self->err)) &&
        ps_doc_set_u64(answer, "row_bytes", self->bytes) &&
        ps_doc_set_u64(answer, "partitions", self->n_mine) &&
        ps_doc_set_u64(answer, "begun", count_begun(self, shard)) &&
        ps_doc_set_u64(answer, "done", n_done) && ps_doc_set_u64(answer, "of", self->n_items);
    return fits ? PSD_OK : ps_checkpoint_no_memory(err);
}

static psd_status_t do_end(ps_checkpoint_task_t *self, ps_shard_t *shard,
                           const ps_image_step_t *step, const ps_doc_t *doc, ps_doc_t *answer,
                           psd_error_t *err)
{
    (void)step;
    (void)doc;
    (void)answer;
    (void)err;
    ps_checkpoint_end(self, shard);
    return PSD_OK;
}

static const struct {
    const char *name;
    psd_status_t (*run)(ps_checkpoint_task_t *self, ps_shard_t *shard, const ps_image_step_t *step,
                        const ps_doc_t *doc, ps_doc_t *answer, psd_error_t *err);
} ACTIONS[] = {
    {"arm", do_arm},   {"begin", do_begin}, {"restore", ps_checkpoint_restore},
    {"look", do_look}, {"end", do_end},
};

static psd_status_t run(ps_checkpoint_task_t *self, ps_shard_t *shard, const ps_image_step_t *step,
                        const ps_doc_t *doc, ps_doc_t *answer, psd_error_t *err)
{
    const char *name = NULL;
    psd_status_t rc = ps_doc_get_text(doc, "do", 32, &name, err);

    for (size_t i = 0; rc == PSD_OK && i < sizeof ACTIONS / sizeof ACTIONS[0]; i++) {
        if (strcmp(name, ACTIONS[i].name) == 0) {
            return ACTIONS[i].run(self, shard, step, doc, answer, err);
        }
    }
    return rc == PSD_OK ? psd_error_set(err, PSD_PROTO,
                                        "do is not known; allowed: arm, begin, "
                                        "restore, look, end")
                        : rc;
}

/* {"status":…,"text":…}: why it could not be done. */
static bool print_refusal(psd_status_t status, const psd_error_t *why, ps_buffer_t *to)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *answer = ps_doc_new();

    return answer != NULL && ps_doc_set_u64(answer, "status", (uint64_t)status) &&
           ps_doc_set_text(answer, "text", psd_error_text(why)) && ps_doc_print(answer, to);
}

psd_status_t ps_checkpoint_task_call(ps_checkpoint_task_t *self, ps_shard_t *shard,
                                     const ps_image_step_t *step, ps_bytes_t argument,
                                     ps_buffer_t *ret_answer, psd_error_t *err)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *why = psd_error_new();
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;
    PSD_AUTO(ps_doc_destroy) ps_doc_t *answer = ps_doc_new();
    psd_status_t rc = ps_doc_parse(argument, &doc, why);

    if (why == NULL || answer == NULL) {
        return ps_checkpoint_no_memory(err);
    }
    if (rc == PSD_OK) {
        rc = run(self, shard, step, doc, answer, why);
    }
    return (rc == PSD_OK ? ps_doc_print(answer, ret_answer) : print_refusal(rc, why, ret_answer))
               ? PSD_OK
               : ps_checkpoint_no_memory(err);
}

uint64_t ps_checkpoint_task_work(ps_checkpoint_task_t *self, ps_shard_t *shard,
                                 const ps_image_step_t *step)
{
    char text[PS_PIECE_TEXT_SIZE];
    psd_status_t rc = PSD_OK;

    if (self->number == 0) {
        return UINT64_MAX;
    }
    if (self->seen_ms + PS_CHECKPOINT_LEASE_MS < step->now_ms) {
        ps_checkpoint_end(self, shard);
        return UINT64_MAX;
    }
    rc = ps_piece_thread_look(self->thread, text);
    if (rc != PSD_OK && self->status == PSD_OK) {
        ps_checkpoint_fail(self, psd_error_set(self->err, rc, "%s", text));
    }
    if (self->status != PSD_OK || self->is_done) {
        return PS_CHECKPOINT_LEASE_MS;
    }
    return self->restores ? ps_checkpoint_take_in(self, shard, step)
                          : ps_checkpoint_put_out(self, shard, step);
}
