/* SPDX-License-Identifier: Apache-2.0 */
/* The disk of a node: the log of each shard, the thread that writes it in
 * turns, and the state after a crash. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/shard/shard_recover.h"
#include "sim_cluster.h"
#include "storage/log/fresh_note.h"

#define TURN_WRITES 6 /* taken in a turn, at most */
#define RETRY_MS 20   /* after a flush that failed */
#define SEGMENT_BYTES 700
#define DATA_DIR "data"
#define DIR_SIZE 16

static cluster_writer_t *writer_of(cluster_t *self, uint32_t number, uint32_t at)
{
    return &self->nodes[number].shards[at].writer;
}

/* ---- turns ---- */

static void plan_turn(cluster_t *self, uint32_t number, uint32_t at)
{
    cluster_writer_t *writer = writer_of(self, number, at);
    uint64_t at_ms = self->now_ms + 1 + cluster_below(self, self->plan.disk_ms);
    uint64_t still_ms = cluster_disk_still(self, number);
    cluster_event_t *event = NULL;

    if (writer->turn_planned || (writer->first == writer->n && writer->unflushed == 0)) {
        return;
    }
    at_ms += writer->in_trouble ? RETRY_MS : 0;
    at_ms = at_ms > still_ms ? at_ms : still_ms;
    writer->turn_planned = true;
    event = cluster_at(self, at_ms, CLUSTER_DISK_TURN, number);
    event->b = at;
    event->incarnation = self->nodes[number].incarnation;
}

void cluster_disk_give(cluster_t *self, uint32_t number, uint32_t at, const ps_effect_t *effect)
{
    cluster_writer_t *writer = writer_of(self, number, at);
    cluster_write_t *write = NULL;

    if (writer->journal == NULL) {
        return;
    }
    cluster_need(ps_grow(&writer->writes, &writer->capacity, writer->n + 1, sizeof *writer->writes),
                 "memory for a write");
    write = &writer->writes[writer->n++];
    *write = (cluster_write_t){
        .is_piece = effect->kind == PS_EFFECT_PIECE,
        .payload = effect->payload == NULL ? NULL : ps_payload_keep(effect->payload)};
    if (write->is_piece) {
        write->piece = effect->piece;
        write->size = ps_payload_size(effect->payload);
    } else {
        write->record = effect->record;
        write->size = ps_record_size(&effect->record, effect->payload);
    }
    plan_turn(self, number, at);
}

/* The next one, which exists. */
static void take(cluster_t *self, cluster_writer_t *writer)
{
    cluster_write_t *write = &writer->writes[writer->first++];

    if (write->is_piece) {
        psd_status_t rc =
            ps_journal_piece(writer->journal, &write->piece, write->payload->span, NULL);

        if (rc != PSD_OK) {
            cluster_trace(self, "  a snapshot of partition %u has failed", write->piece.partition);
            writer->snapshot_failed = true;
        }
    } else if (ps_journal_append(writer->journal, &write->record, write->payload, NULL) != PSD_OK) {
        cluster_fail(self, "a log does not take a record");
    }
    writer->unflushed += write->size;
    ps_payload_destroy(&write->payload);
    if (writer->first == writer->n) {
        writer->first = 0;
        writer->n = 0;
    }
}

static void trace_flushed(cluster_t *self, uint32_t number, const ps_position_t *positions,
                          size_t n)
{
    for (size_t i = 0; i < n; i++) {
        cluster_trace(self, "  node %u has flushed partition %u, life %" PRIu64 ", up to %" PRIu64,
                      number, positions[i].partition, positions[i].life, positions[i].lsn);
    }
}

static void flush(cluster_t *self, uint32_t number, uint32_t at)
{
    cluster_writer_t *writer = writer_of(self, number, at);
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    const ps_position_t *positions = NULL;
    size_t n = 0;
    psd_status_t rc = ps_journal_flush(writer->journal, &positions, &n, err);
    ps_event_t event = {.kind = PS_EVENT_FLUSHED, .snapshot_failed = writer->snapshot_failed};

    writer->in_trouble = rc != PSD_OK;
    writer->snapshot_failed = false;
    if (rc == PSD_OK) {
        trace_flushed(self, number, positions, n);
        event.flushed = positions;
        event.n_flushed = n;
        event.flushed_bytes = writer->unflushed;
        writer->unflushed = 0;
        (void)!ps_journal_tidy(writer->journal, NULL); /* tried again */
    } else {
        cluster_trace(self, "  the disk of node %u: %s", number, psd_error_text(err));
        event.disk_trouble = psd_error_text(err);
    }
    event.log_bytes = ps_journal_log_bytes(writer->journal);
    cluster_node_step(self, number, at, &event);
}

void cluster_disk_turn(cluster_t *self, uint32_t number, uint32_t at)
{
    cluster_writer_t *writer = writer_of(self, number, at);
    uint64_t n = 1 + cluster_below(self, TURN_WRITES);

    writer->turn_planned = false;
    if (writer->journal == NULL) {
        return;
    }
    if (cluster_disk_still(self, number) == 0) {
        for (; n > 0 && writer->first < writer->n; n--) {
            take(self, writer);
        }
        if (writer->in_trouble || cluster_below(self, 4) > 0) {
            flush(self, number, at);
        }
    }
    plan_turn(self, number, at);
}

/* ---- the registry ---- */

bool cluster_disk_joined(cluster_t *self, uint32_t number)
{
    cluster_node_t *node = &self->nodes[number];
    ps_fresh_note_t note = {0}; /* a life ends without undoing anything */

    if (!self->plan.disk || !node->is_fresh) {
        return true;
    }
    node->is_fresh =
        ps_fresh_note_remove(&note, sim_disk_face(node->disk), DATA_DIR, NULL) != PSD_OK;
    return !node->is_fresh;
}

bool cluster_disk_table(cluster_t *self, uint32_t number, uint32_t at, const ps_table_spec_t *spec)
{
    const cluster_shard_t *shard = &self->nodes[number].shards[at];

    return shard->writer.journal == NULL || spec->ack != PS_ACK_DISK ||
           ps_shard_recover_knows(shard->machine, self->table) ||
           ps_journal_put_table(shard->writer.journal, self->table, spec, NULL) == PSD_OK;
}

/* ---- lives ---- */

static psd_status_t recover(cluster_t *self, uint32_t number, uint32_t at, psd_error_t *err)
{
    cluster_node_t *node = &self->nodes[number];
    cluster_shard_t *shard = &node->shards[at];
    char dir[DIR_SIZE];
    char name[CLUSTER_NAME_SIZE];
    const ps_journal_args_t args = {.disk = sim_disk_face(node->disk),
                                    .dir = dir,
                                    .cluster = {.bytes = {1}},
                                    .node = name,
                                    .shard = at,
                                    .n_shards = self->plan.n_shards[number],
                                    .segment_bytes = SEGMENT_BYTES};
    ps_journal_found_t found;
    psd_status_t rc = PSD_OK;

    cluster_name(number, name);
    (void)snprintf(dir, sizeof dir, DATA_DIR "/log-%u", at);
    rc = ps_journal_open(&args, &shard->writer.journal, err);
    if (rc == PSD_OK) {
        rc = ps_journal_recover(shard->writer.journal, shard->machine, NULL, NULL, &found, err);
    }
    if (rc == PSD_OK) {
        node->kept = node->kept && found.was_there;
        cluster_trace(self, "  node %u shard %u reads %u snapshots, %" PRIu64 " records", number,
                      at, found.n_snapshots, found.log.n_records);
    }
    return rc;
}

bool cluster_disk_open(cluster_t *self, uint32_t number, uint32_t at)
{
    cluster_node_t *node = &self->nodes[number];
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    psd_status_t rc = PSD_OK;

    if (!self->plan.disk) {
        return true;
    }
    if (node->disk == NULL) {
        node->disk = sim_disk_new(self->plan.seed + node->incarnation);
        node->disk_from = node->incarnation;
        node->loses_disk = false;
    }
    if (at == 0) {
        PSD_AUTO(ps_fresh_note_done) ps_fresh_note_t note = {0};

        rc = ps_fresh_note_settle(sim_disk_face(node->disk), DATA_DIR, self->plan.n_shards[number],
                                  &note, err);
        node->is_fresh = note.is_fresh;
        node->kept = !node->is_fresh;
    }
    if (rc == PSD_OK) {
        rc = recover(self, number, at, err);
    }
    if (rc == PSD_LIMIT || rc == PSD_IO) {
        cluster_trace(self, "node %u cannot start: %s", number, psd_error_text(err));
    } else if (rc != PSD_OK) {
        cluster_fail(self, "node %u cannot start: %s", number, psd_error_text(err));
    }
    return rc == PSD_OK;
}

/* Power fails a little later, in the middle of an operation. */
static void write_on(cluster_t *self, uint32_t number)
{
    sim_disk_t *disk = self->nodes[number].disk;

    sim_disk_plan(disk, sim_disk_ops(disk) + cluster_below(self, 8), 1, SIM_DISK_CRASH);
    for (uint32_t at = 0; at < self->plan.n_shards[number]; at++) {
        cluster_writer_t *writer = writer_of(self, number, at);
        uint64_t n = cluster_below(self, 2 * TURN_WRITES);
        const ps_position_t *positions = NULL;
        size_t n_positions = 0;

        for (; n > 0 && writer->first < writer->n; n--) {
            take(self, writer);
        }
        if (cluster_below(self, 2) == 0) {
            (void)!ps_journal_flush(writer->journal, &positions, &n_positions, NULL);
        }
    }
}

void cluster_disk_crash(cluster_t *self, uint32_t number, cluster_loss_t loss)
{
    cluster_node_t *node = &self->nodes[number];

    if (node->disk == NULL) {
        return;
    }
    if (loss == CLUSTER_FLUSHED && cluster_disk_still(self, number) == 0) {
        write_on(self, number);
    }
    for (uint32_t at = 0; at < CLUSTER_SHARDS_MAX; at++) {
        cluster_disk_close(&node->shards[at]);
    }
    if (loss == CLUSTER_FLUSHED) {
        sim_disk_restart(node->disk);
    } else if (loss == CLUSTER_DISK) {
        sim_disk_destroy(&node->disk);
    }
}

void cluster_disk_close(cluster_shard_t *shard)
{
    cluster_writer_t *writer = &shard->writer;

    for (size_t i = writer->first; i < writer->n; i++) {
        ps_payload_destroy(&writer->writes[i].payload);
    }
    ps_free(writer->writes);
    ps_journal_close(&writer->journal);
    *writer = (cluster_writer_t){0};
}
