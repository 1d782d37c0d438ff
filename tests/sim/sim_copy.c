/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of every shard that gets only the records, as bytes: at the end it
 * must equal the shard. */
#include <string.h>

#include "base/alloc.h"
#include "protocol/partition/replay.h"
#include "protocol/shard/shard_state.h"
#include "sim.h"
#include "sim_alike.h"

void sim_copy_start(sim_t *sim, const ps_shard_args_t *args, ps_event_t *table)
{
    ps_shard_args_t mine = *args;

    mine.log = false;
    mine.trace = false;
    sim_need(ps_shard_new(&mine, &sim->copies[args->shard], NULL) == PSD_OK &&
                 ps_shard_step(sim->copies[args->shard], table, &sim->copied, NULL) == PSD_OK,
             "memory for a copy");
}

static ps_partition_t *partition_of(const ps_shard_t *shard, uint32_t number)
{
    const ps_local_table_t *table = ps_map_get(&shard->step.tables, SIM_TABLE);

    return table->partitions[number];
}

/* The record as another node would read it. */
static void replay(sim_t *sim, ps_shard_t *copy, ps_bytes_t bytes)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    ps_record_t record;
    ps_body_t body;
    size_t size = 0;

    if (ps_record_read(bytes, &size, &record, &body, NULL) != PSD_OK || size != bytes.size) {
        sim_fail(sim, "log: a record of %zu bytes cannot be read again", bytes.size);
        return;
    }
    if (body.keys.size + body.index.size + body.values.size > 0) {
        payload = ps_payload_copy(body.keys, body.index, body.values);
        sim_need(payload != NULL, "memory for a payload");
    }
    copy->step.outbox = &sim->copied;
    copy->step.now_ms = sim->now_ms;
    if (!ps_partition_replay(&copy->step, partition_of(copy, record.partition), &record, payload)) {
        sim_fail(sim, "log: lsn %llu of partition %u cannot be replayed",
                 (unsigned long long)record.lsn, record.partition);
    }
    copy->step.outbox = NULL;
    ps_outbox_clear(&sim->copied);
}

void sim_copy_record(sim_t *sim, uint32_t shard, const ps_record_t *record,
                     const ps_payload_t *payload)
{
    size_t size = ps_record_size(record, payload);
    uint8_t *bytes = ps_alloc_raw(1, size);

    sim_need(size > 0 && bytes != NULL, "memory for a record");
    ps_record_write(record, payload, bytes);
    replay(sim, sim->copies[shard], (ps_bytes_t){bytes, size});
    ps_free(bytes);
}

/* All rows that a partition has, as bytes. */
static ps_payload_t *rows_of(const sim_t *sim, ps_partition_t *partition, uint32_t number)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *rows = NULL;
    uint64_t keys[SIM_ROWS_MAX];
    ps_slice_t want = {.rows = PS_ROWS_LIST,
                       .cols = PS_COLS_ALL,
                       .type = sim->plan.spec.type,
                       .n_cols = sim->plan.spec.n_cols};
    ps_slice_t got;
    ps_payload_t *values = NULL;
    uint64_t done = 0;

    for (uint32_t i = 0; i < sim->plan.n_rows; i++) {
        if (sim_partition_of(&sim->plan, i) == number) {
            keys[want.n_rows++] = sim->plan.keys[i];
        }
    }
    if (want.n_rows == 0) {
        return NULL;
    }
    rows = ps_payload_copy((ps_bytes_t){(const uint8_t *)keys, want.n_rows * sizeof *keys},
                           (ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0});
    sim_need(rows != NULL &&
                 ps_store_gather(partition->store, &want, rows, SIZE_MAX, (ps_room_t){NULL, 0},
                                 &got, &values, &done, NULL) == PSD_OK &&
                 done == want.n_rows && values->n_spans <= 1,
             "memory for rows");
    return values;
}

static bool has_same_rows(const sim_t *sim, ps_partition_t *one, ps_partition_t *other,
                          uint32_t number)
{
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *mine = rows_of(sim, one, number);
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *theirs = rows_of(sim, other, number);

    return mine == NULL || (mine->span.size == theirs->span.size &&
                            memcmp(mine->span.data, theirs->span.data, mine->span.size) == 0);
}

void sim_copy_check(sim_t *sim)
{
    for (uint32_t i = 0; i < sim->plan.spec.n_partitions && !sim->failed; i++) {
        uint32_t shard = sim->routes[i].shard;
        ps_partition_t *mine = partition_of(sim->shards[shard], i);
        ps_partition_t *copy = partition_of(sim->copies[shard], i);
        const char *what = sim_difference(mine, copy);

        if (what == NULL && !has_same_rows(sim, mine, copy, i)) {
            what = "rows";
        }
        if (what != NULL) {
            sim_fail(sim, "log: a copy of partition %u has other %s", i, what);
        }
    }
}

void sim_copy_done(sim_t *sim)
{
    for (uint32_t i = 0; i < SIM_SHARDS_MAX; i++) {
        ps_shard_destroy(&sim->copies[i]);
    }
    ps_outbox_done(&sim->copied);
}
