/* SPDX-License-Identifier: Apache-2.0 */
/* A new copy takes the state and rows that its primary gives. */
#include "base/alloc.h"
#include "protocol/partition/partition_copy.h"
#include "protocol/partition/answer.h"
#include "protocol/replica/replicas.h"
#include "protocol/replica/rows_pace.h"
#include "protocol/replica/transfer.h"

bool ps_rows_are_whole(const ps_partition_t *partition)
{
    return !ps_store_is_partial(partition->store) &&
           (partition->replicas == NULL || !partition->replicas->diverged);
}

void ps_taking_break(ps_taking_t *self)
{
    if (self->stage != PS_TAKING_NOTHING) {
        self->stage = PS_TAKING_BROKEN;
    }
}

void ps_taking_done(ps_taking_t *self)
{
    ps_buffer_done(&self->item);
    *self = (ps_taking_t){.stage = PS_TAKING_NOTHING};
}

static uint8_t wants(const ps_taking_t *self)
{
    switch (self->stage) {
    case PS_TAKING_ROWS:
        return PS_TAKEN_ROWS;
    case PS_TAKING_WHOLE:
        return PS_TAKEN_NOTHING;
    case PS_TAKING_NOTHING:
    case PS_TAKING_STATE:
    case PS_TAKING_BROKEN:
    default:
        return PS_TAKEN_STATE;
    }
}

static void answer(ps_step_t *step, const ps_partition_t *partition, uint64_t conn,
                   const ps_msg_rows_t *rows, ps_taken_status_t status, uint64_t detail)
{
    const ps_taking_t *taking = &partition->replicas->taking;
    ps_effect_t *effect = ps_outbox_add(step->outbox, PS_EFFECT_SEND);

    if (effect == NULL) {
        return; /* it is sent again */
    }
    effect->to = conn;
    effect->message.kind = PS_KIND_TAKEN;
    effect->message.taken = (ps_msg_taken_t){.request = rows->request,
                                             .table = rows->table,
                                             .partition = rows->partition,
                                             .epoch = rows->epoch,
                                             .transfer = rows->transfer,
                                             .lsn = partition->lsn,
                                             .wants = wants(taking),
                                             .place = ps_store_n_taken(partition->store),
                                             .offset = taking->item.size,
                                             .status = (uint16_t)status,
                                             .detail = detail};
}

/* ---- memory ---- */

/* Whether this number of further bytes fits into the limits of node and
 * table. */
static bool fits(const ps_step_t *step, const ps_partition_t *partition, uint64_t more)
{
    const ps_table_use_t *use = partition->use;
    uint64_t node = ps_step_bytes(step) + step->other_bytes;
    uint64_t table = use->row_bytes + use->logged_bytes;

    return (step->args.memory_bytes == 0 ||
            (node <= step->args.memory_bytes && more <= step->args.memory_bytes - node)) &&
           (use->limit_bytes == 0 ||
            (table <= use->limit_bytes && more <= use->limit_bytes - table));
}

/* Drops the received parts of an incomplete item. */
static void drop_item(ps_partition_t *partition)
{
    ps_buffer_done(&partition->replicas->taking.item);
    partition->incoming_bytes = 0;
}

/* Keeps a part until the others have come. false: there is no room for it, and
 * those before are let go. */
static bool keep_part(ps_step_t *step, ps_partition_t *partition, ps_bytes_t part)
{
    ps_buffer_t *item = &partition->replicas->taking.item;
    bool is_kept = fits(step, partition, part.size) && ps_buffer_append(item, part.data, part.size);

    if (!is_kept) {
        drop_item(partition);
    }
    partition->incoming_bytes = item->capacity;
    ps_partition_count_rows(step, partition, false);
    return is_kept;
}

static void let_go(ps_step_t *step, ps_partition_t *partition)
{
    drop_item(partition);
    ps_partition_count_rows(step, partition, false);
}

/* ---- the state ---- */

/* Discards the copy's content. false: no memory; the copy is then useless. */
static bool begin_anew(ps_step_t *step, ps_partition_t *partition)
{
    partition->replicas->diverged = true;
    ps_replicas_begin_anew(step, partition);
    return !partition->replicas->diverged;
}

/* The whole state has come; it is taken into a partition that is as new. */
static ps_taken_status_t take_state(ps_step_t *step, ps_partition_t *partition,
                                    const ps_msg_rows_t *rows, ps_bytes_t state)
{
    ps_replicas_t *self = partition->replicas;
    uint64_t epoch = partition->epoch;
    psd_status_t rc = begin_anew(step, partition)
                          ? ps_partition_take_state(step, partition, state, NULL)
                          : PSD_NOMEM;

    if (rc == PSD_NOMEM) {
        self->taking.stage = PS_TAKING_STATE;
        return PS_TAKEN_NOMEM;
    }
    partition->epoch = epoch; /* the map's */
    if (rc != PSD_OK || partition->lsn != rows->lsn || partition->lsn_epoch != rows->lsn_epoch) {
        self->diverged = true;
        return PS_TAKEN_ANEW;
    }
    if (!ps_partition_log_anew(step, partition)) {
        self->diverged = true; /* it is given again */
        self->taking.stage = PS_TAKING_STATE;
        return PS_TAKEN_NOMEM;
    }
    ps_tail_restart(&self->tail, rows->lsn, rows->lsn_epoch);
    self->has_begun_anew = false;
    self->taking.stage = PS_TAKING_ROWS;
    ps_note(step, &(ps_note_t){.kind = PS_NOTE_COPY_BEGUN,
                               .table = partition->table,
                               .partition = partition->number,
                               .a = rows->transfer,
                               .b = rows->lsn});
    return PS_TAKEN_OK;
}

static ps_taken_status_t take_state_part(ps_step_t *step, ps_partition_t *partition,
                                         const ps_msg_rows_t *rows, ps_bytes_t part)
{
    ps_taking_t *taking = &partition->replicas->taking;
    ps_taken_status_t status = PS_TAKEN_OK;

    if (taking->stage == PS_TAKING_BROKEN) {
        return PS_TAKEN_ANEW;
    }
    if (taking->stage != PS_TAKING_STATE || rows->offset < taking->item.size) {
        return PS_TAKEN_OK; /* it is here */
    }
    if (rows->offset > taking->item.size) {
        return PS_TAKEN_GAP;
    }
    if (part.size == rows->size) {
        return take_state(step, partition, rows, part);
    }
    if (!keep_part(step, partition, part)) {
        return PS_TAKEN_NOMEM;
    }
    if (taking->item.size < rows->size) {
        return PS_TAKEN_OK;
    }
    status = take_state(step, partition, rows, (ps_bytes_t){taking->item.data, taking->item.size});
    let_go(step, partition);
    return status;
}

/* ---- pieces ---- */

static ps_taken_status_t take_piece(ps_step_t *step, ps_partition_t *partition,
                                    const ps_msg_rows_t *rows, ps_bytes_t piece)
{
    ps_replicas_t *self = partition->replicas;
    uint64_t more = ps_store_piece_growth(partition->store, piece.size);
    psd_status_t rc = fits(step, partition, more)
                          ? ps_partition_take_rows(step, partition, piece, rows->last != 0, NULL)
                          : PSD_NOMEM;

    if (rc == PSD_NOMEM) {
        return PS_TAKEN_NOMEM; /* rows that were taken stay */
    }
    if (rc != PSD_OK) {
        self->diverged = true;
        self->taking.stage = PS_TAKING_BROKEN;
        return PS_TAKEN_ANEW;
    }
    if (rows->last != 0) {
        self->taking.stage = PS_TAKING_WHOLE;
        step->wants_bases = step->wants_bases || partition->needs_base;
        ps_note(step, &(ps_note_t){.kind = PS_NOTE_COPY_WHOLE,
                                   .table = partition->table,
                                   .partition = partition->number,
                                   .a = rows->transfer,
                                   .b = partition->lsn});
    }
    return PS_TAKEN_OK;
}

/* Takes a part of the next piece, which must follow the rows and the record
 * that are here. */
static ps_taken_status_t take_piece_part(ps_step_t *step, ps_partition_t *partition,
                                         const ps_msg_rows_t *rows, ps_bytes_t part)
{
    ps_taking_t *taking = &partition->replicas->taking;
    ps_taken_status_t status = PS_TAKEN_OK;

    if (part.size == rows->size) {
        drop_item(partition);
        return take_piece(step, partition, rows, part);
    }
    if (rows->offset == 0) {
        drop_item(partition);
        taking->place = rows->place;
        taking->lsn = rows->lsn;
    } else if (rows->offset != taking->item.size || rows->place != taking->place ||
               rows->lsn != taking->lsn) {
        return PS_TAKEN_GAP;
    }
    if (!keep_part(step, partition, part)) {
        return PS_TAKEN_NOMEM;
    }
    if (taking->item.size < rows->size) {
        return PS_TAKEN_OK;
    }
    status = take_piece(step, partition, rows, (ps_bytes_t){taking->item.data, taking->item.size});
    let_go(step, partition);
    return status;
}

static ps_taken_status_t take_rows(ps_step_t *step, ps_partition_t *partition,
                                   const ps_msg_rows_t *rows, ps_bytes_t part)
{
    uint64_t place = ps_store_n_taken(partition->store);
    uint64_t epoch = 0;

    switch (partition->replicas->taking.stage) {
    case PS_TAKING_WHOLE:
        return PS_TAKEN_OK;
    case PS_TAKING_ROWS:
        break;
    case PS_TAKING_STATE:
        return PS_TAKEN_GAP;
    case PS_TAKING_NOTHING:
    case PS_TAKING_BROKEN:
    default:
        return PS_TAKEN_ANEW;
    }
    if (rows->place < place) {
        return PS_TAKEN_OK; /* they are here */
    }
    if (rows->place > place || rows->lsn != partition->lsn) {
        return PS_TAKEN_GAP;
    }
    if (!ps_tail_epoch(&partition->replicas->tail, rows->lsn, &epoch) || epoch != rows->lsn_epoch) {
        partition->replicas->diverged = true;
        partition->replicas->taking.stage = PS_TAKING_BROKEN;
        return PS_TAKEN_ANEW;
    }
    return take_piece_part(step, partition, rows, part);
}

/* ---- a transfer ---- */

/* Whether the transfer is not older than the one that is known here, which it
 * then is. */
static bool is_of_transfer(ps_step_t *step, ps_partition_t *partition, ps_shard_name_t from,
                           const ps_msg_rows_t *rows)
{
    ps_replicas_t *self = partition->replicas;
    ps_taking_t *taking = &self->taking;
    bool is_known = taking->stage != PS_TAKING_NOTHING && ps_shard_name_equal(taking->from, from);

    if (is_known && rows->transfer <= taking->transfer) {
        return rows->transfer == taking->transfer;
    }
    if (rows->kind == PS_GIVEN_STATE) {
        (void)begin_anew(step, partition); /* nothing to go on with */
    }
    drop_item(partition);
    ps_taking_done(taking);
    *taking =
        (ps_taking_t){.stage = rows->kind == PS_GIVEN_STATE ? PS_TAKING_STATE : PS_TAKING_BROKEN,
                      .from = from,
                      .transfer = rows->transfer};
    return true;
}

void ps_rows_take(ps_step_t *step, ps_partition_t *partition, ps_shard_name_t from, uint64_t conn,
                  const ps_msg_rows_t *rows, const ps_payload_t *payload)
{
    ps_replicas_t *self = partition->replicas;
    uint64_t least = self->fence > partition->epoch ? self->fence : partition->epoch;
    ps_taken_status_t status = PS_TAKEN_OK;

    if (rows->epoch < least) {
        answer(step, partition, conn, rows, PS_TAKEN_EPOCH, least);
        return;
    }
    if (rows->epoch > partition->epoch || !self->catching_up || self->primary ||
        !ps_shard_name_equal(from, self->from) || payload == NULL || payload->n_spans != 1 ||
        !is_of_transfer(step, partition, from, rows)) {
        return; /* from a map that is not known here yet, from no map, or old */
    }
    status = rows->kind == PS_GIVEN_STATE
                 ? take_state_part(step, partition, rows, payload->spans[0])
                 : take_rows(step, partition, rows, payload->spans[0]);
    answer(step, partition, conn, rows, status,
           status == PS_TAKEN_OK && ps_pace_is_busy(step) ? 1 : 0);
}
