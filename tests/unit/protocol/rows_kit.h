/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_kit - shards with copies of a story's partition, and the way between
 *
 * What     Node 0 begins as the primary; its records are a story's
 *          (copy_kit.h). The world carries messages, which it delays, loses and
 *          doubles until it is calm; tells maps; makes a copy in sync that has
 *          caught up; and can break links, let a copy diverge, and end nodes,
 *          which then begin with nothing. Everything follows from a seed.
 * Units    virtual ms
 * Owner    A test embeds a world_t: world_open, world_close.
 */
#ifndef PS_TESTS_ROWS_KIT_H
#define PS_TESTS_ROWS_KIT_H

#include "copy_compare.h"
#include "protocol/replica/replicas.h"
#include "support/fail_alloc.h"

#define WORLD_NODES 3
#define WORLD_CONNS 64    /* links that one node may open */
#define WORLD_CONN_BASE 1 /* conns that come in: by node and number */

typedef struct parcel_on_way {
    uint64_t at_ms;
    uint64_t order;
    uint32_t to;
    uint64_t incarnation; /* of the node that is meant */
    uint64_t conn;        /* as the receiver knows it */
    ps_buffer_t bytes;    /* owned */
} parcel_on_way_t;

typedef struct world_node {
    ps_shard_t *shard; /* owned; NULL: it has ended */
    uint64_t incarnation;
    uint32_t link_to[WORLD_CONNS];
    uint64_t link_incarnation[WORLD_CONNS];
    uint64_t n_opened;
} world_node_t;

typedef struct world {
    story_t story;
    uint32_t n_nodes;
    uint32_t primary;
    ps_copies_t copies[8]; /* of all partitions; the story's is one */
    ps_route_t routes[8];
    world_node_t nodes[WORLD_NODES];
    ps_shard_args_t args;
    uint64_t now_ms;
    uint64_t order;
    parcel_on_way_t *parcels; /* owned */
    size_t n_parcels;
    size_t capacity;
    uint64_t n_incarnations;
    bool fails;     /* an allocation of a shard is to fail … */
    size_t fail_at; /* … after so many */
    size_t n_calls; /* of the allocator, by shards */
    bool calm;
    uint32_t loss;   /* of 100 */
    uint32_t repeat; /* of 100 */
    uint32_t delay_ms;
    uint64_t bytes_per_ms;         /* that a node takes; 0: any */
    uint64_t free_us[WORLD_NODES]; /* what it takes has come by then */
    uint64_t n_rows;               /* ROWS that were sent */
    uint64_t n_begun;              /* copies made anew of a state */
    uint64_t n_whole;              /* … that became whole */
    uint64_t n_ahead;              /* pushes that were told of only */
    uint64_t most_step;            /* bytes of ROWS that one step sent */
} world_t;

static inline ps_partition_t *world_partition(const world_t *self, uint32_t node)
{
    ps_shard_t *shard = self->nodes[node].shard;
    ps_local_table_t *table = shard == NULL ? NULL : ps_map_get(&shard->step.tables, KIT_TABLE);

    return table == NULL ? NULL : table->partitions[self->story.number];
}

static inline ps_copies_t *world_map(world_t *self)
{
    return &self->copies[self->story.number];
}

/* ---- the way ---- */

/* When something sent now arrives: behind what went that way before, as a
 * rule, for connections keep their order. */
static inline uint64_t world_arrival(world_t *self, uint32_t to, uint64_t conn)
{
    uint64_t at_ms = self->now_ms + 1 + below(&self->story, self->delay_ms);

    if (!self->calm && below(&self->story, 100) < self->loss) {
        return at_ms;
    }
    for (size_t i = 0; i < self->n_parcels; i++) {
        const parcel_on_way_t *parcel = &self->parcels[i];

        if (parcel->to == to && parcel->conn == conn && parcel->at_ms > at_ms) {
            at_ms = parcel->at_ms;
        }
    }
    return at_ms;
}

static inline void world_put(world_t *self, uint32_t to, uint64_t incarnation, uint64_t conn,
                             const ps_effect_t *effect)
{
    uint8_t header[PS_HEADER_MAX];
    size_t size = ps_message_encode(&effect->message, header);
    parcel_on_way_t *parcel = NULL;
    uint64_t at_ms = world_arrival(self, to, conn);

    if (self->bytes_per_ms > 0) {
        uint64_t bytes = size + ps_payload_size(effect->payload);
        uint64_t *free_us = &self->free_us[to];

        *free_us = *free_us > self->now_ms * 1000 ? *free_us : self->now_ms * 1000;
        *free_us += bytes * 1000 / self->bytes_per_ms;
        at_ms = at_ms > *free_us / 1000 ? at_ms : *free_us / 1000;
    }
    cr_assert(ps_grow(&self->parcels, &self->capacity, self->n_parcels + 1, sizeof *self->parcels));
    parcel = &self->parcels[self->n_parcels++];
    *parcel = (parcel_on_way_t){
        .at_ms = at_ms, .order = self->order++, .to = to, .incarnation = incarnation, .conn = conn};
    cr_assert(ps_buffer_append(&parcel->bytes, header, size));
    for (size_t i = 0; effect->payload != NULL && i < effect->payload->n_spans; i++) {
        cr_assert(ps_buffer_append(&parcel->bytes, effect->payload->spans[i].data,
                                   effect->payload->spans[i].size));
    }
}

/* A conn of the core is the node that opened it, and its number there. */
static inline void world_send(world_t *self, uint32_t from, const ps_effect_t *effect)
{
    world_node_t *node = &self->nodes[from];
    bool is_out = effect->to >= PS_LINK_CONN;
    uint64_t k = is_out ? effect->to - PS_LINK_CONN : (effect->to - WORLD_CONN_BASE) % WORLD_CONNS;
    uint32_t to = is_out ? node->link_to[k % WORLD_CONNS]
                         : (uint32_t)((effect->to - WORLD_CONN_BASE) / WORLD_CONNS % WORLD_NODES);
    uint64_t incarnation = is_out ? node->link_incarnation[k % WORLD_CONNS]
                                  : 70 + (effect->to - WORLD_CONN_BASE) / WORLD_CONNS / WORLD_NODES;
    uint64_t conn = is_out ? WORLD_CONN_BASE + k % WORLD_CONNS +
                                 WORLD_CONNS * (from + WORLD_NODES * (node->incarnation - 70))
                           : PS_LINK_CONN + k;
    uint64_t n = !self->calm && below(&self->story, 100) < self->repeat ? 2 : 1;

    if (!self->calm && below(&self->story, 100) < self->loss) {
        n = 0;
    }
    for (; n > 0; n--) {
        world_put(self, to, incarnation, conn, effect);
    }
}

/* ---- steps ---- */

static inline void world_tell(world_t *self);

/* It is whole; or a fault has let it diverge since it said so. */
static inline bool world_may_be_in_sync(const world_t *self, uint64_t incarnation)
{
    bool may = true;

    for (uint32_t i = 0; i < self->n_nodes; i++) {
        const ps_partition_t *partition = world_partition(self, i);

        if (self->nodes[i].incarnation == incarnation && partition != NULL) {
            may = !ps_store_is_partial(partition->store) || partition->replicas->diverged;
        }
    }
    return may;
}

/* What the registry would do. */
static inline void world_report(world_t *self, const ps_report_t *report)
{
    ps_copies_t *map = world_map(self);

    for (uint32_t i = 1; i < map->n; i++) {
        ps_copy_t *copy = &map->at[i];

        if (copy->incarnation != report->incarnation || report->epoch != map->epoch) {
            continue;
        }
        if (report->kind == PS_REPORT_CAUGHT_UP) {
            cr_assert(world_may_be_in_sync(self, copy->incarnation),
                      "a copy has caught up and is not whole");
            ps_copies_set_state(map, i, PS_COPY_IN_SYNC);
        } else if (report->kind == PS_REPORT_DIVERGED) {
            ps_copies_set_state(map, i, PS_COPY_CATCHING_UP);
        } else {
            return;
        }
        map->epoch++;
        self->routes[self->story.number].epoch = map->epoch;
        world_tell(self);
        return;
    }
}

static inline void world_perform(world_t *self, uint32_t number, ps_outbox_t *outbox)
{
    world_node_t *node = &self->nodes[number];
    uint64_t bytes = 0;

    for (size_t i = 0; i < outbox->n_effects; i++) {
        const ps_effect_t *effect = &outbox->effects[i];

        if (effect->kind == PS_EFFECT_SEND) {
            if (effect->message.kind == PS_KIND_ROWS) {
                self->n_rows++;
                bytes += effect->payload->span.size;
            }
            world_send(self, number, effect);
        } else if (effect->kind == PS_EFFECT_OPEN) {
            uint64_t k = (effect->to - PS_LINK_CONN) % WORLD_CONNS;

            node->n_opened++;
            node->link_incarnation[k] = effect->copy.incarnation;
            node->link_to[k] = effect->copy.shard;
        } else if (effect->kind == PS_EFFECT_NOTE) {
            self->n_begun += effect->note.kind == PS_NOTE_COPY_BEGUN ? 1 : 0;
            self->n_whole += effect->note.kind == PS_NOTE_COPY_WHOLE ? 1 : 0;
        }
    }
    self->most_step = bytes > self->most_step ? bytes : self->most_step;
    for (size_t i = 0; i < outbox->n_effects; i++) {
        if (outbox->effects[i].kind == PS_EFFECT_REPORT) {
            world_report(self, &outbox->effects[i].report);
        }
    }
}

/* The event into the shard; one of its allocations may fail. */
static inline psd_status_t world_try(world_t *self, ps_shard_t *shard, const ps_event_t *event,
                                     ps_outbox_t *outbox)
{
    psd_status_t rc = PSD_OK;

    if (self->fails) {
        fail_alloc_at(self->fail_at - self->n_calls);
    }
    rc = ps_shard_step(shard, event, outbox, NULL);
    if (self->fails) {
        self->n_calls += fail_alloc_calls();
        self->fails = !fail_alloc_happened();
        fail_alloc_off();
    }
    return rc;
}

static inline void world_step(world_t *self, uint32_t number, ps_event_t *event)
{
    PSD_AUTO(ps_outbox_done) ps_outbox_t outbox = {0};

    event->now_ms = self->now_ms;
    if (self->nodes[number].shard != NULL) {
        ps_shard_t *shard = self->nodes[number].shard;
        psd_status_t rc = world_try(self, shard, event, &outbox);

        cr_assert(rc == PSD_OK || rc == PSD_NOMEM);
        if (rc == PSD_NOMEM && event->kind == PS_EVENT_TABLE) { /* told anew */
            cr_assert_eq(world_try(self, shard, event, &outbox), PSD_OK);
        }
        world_perform(self, number, &outbox);
    }
}

/* Everybody learns the map at once. */
static inline void world_tell(world_t *self)
{
    for (uint32_t i = 0; i < self->n_nodes; i++) {
        world_step(self, i,
                   &(ps_event_t){.kind = PS_EVENT_TABLE,
                                 .table = KIT_TABLE,
                                 .spec = &self->story.spec,
                                 .routes = self->routes,
                                 .n_routes = self->story.spec.n_partitions,
                                 .copies = self->copies});
    }
    self->story.primary.shard = self->nodes[self->primary].shard;
    self->story.primary.partition = world_partition(self, self->primary);
}

static inline void world_arrive(world_t *self, parcel_on_way_t *parcel)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    ps_bytes_t frame = {parcel->bytes.data, parcel->bytes.size};
    ps_message_t message;
    ps_body_t body = {{NULL, 0}, {NULL, 0}, {NULL, 0}};

    cr_assert_eq(ps_message_decode(&frame, 1, &message, &body, NULL), PSD_OK);
    if (body.values.size > 0) {
        payload = ps_payload_copy(body.keys, body.index, body.values);
        cr_assert_not_null(payload);
    }
    if (self->nodes[parcel->to].incarnation == parcel->incarnation) {
        world_step(self, parcel->to,
                   &(ps_event_t){.kind = PS_EVENT_MESSAGE,
                                 .conn = parcel->conn,
                                 .message = &message,
                                 .payload = payload});
    }
}

/* The next thing that happens: a message arrives or a shard wakes. false:
 * nothing will, before until_ms. */
static inline bool world_next(world_t *self, uint64_t until_ms)
{
    size_t first = SIZE_MAX;
    uint64_t at_ms = until_ms;
    uint32_t waker = WORLD_NODES;

    for (size_t i = 0; i < self->n_parcels; i++) {
        const parcel_on_way_t *parcel = &self->parcels[i];

        if (parcel->at_ms < at_ms || (parcel->at_ms == at_ms && first != SIZE_MAX &&
                                      parcel->order < self->parcels[first].order)) {
            at_ms = parcel->at_ms;
            first = i;
        }
    }
    for (uint32_t i = 0; i < self->n_nodes; i++) {
        uint64_t wants =
            self->nodes[i].shard == NULL ? UINT64_MAX : ps_shard_deadline(self->nodes[i].shard);

        if (wants < at_ms) {
            at_ms = wants;
            waker = i;
        }
    }
    if (at_ms >= until_ms) {
        self->now_ms = until_ms > self->now_ms ? until_ms : self->now_ms;
        return false;
    }
    self->now_ms = at_ms > self->now_ms ? at_ms : self->now_ms;
    if (waker < WORLD_NODES) {
        world_step(self, waker, &(ps_event_t){.kind = PS_EVENT_TICK});
    } else {
        parcel_on_way_t parcel = self->parcels[first];

        self->parcels[first] = self->parcels[--self->n_parcels];
        world_arrive(self, &parcel);
        ps_buffer_done(&parcel.bytes);
    }
    return true;
}

/* ---- life ---- */

static inline void world_start_node(world_t *self, uint32_t number)
{
    world_node_t *node = &self->nodes[number];
    ps_shard_args_t args = self->args;

    *node = (world_node_t){.incarnation = 70 + self->n_incarnations++};
    args.incarnation = node->incarnation;
    args.shard = number;
    cr_assert_eq(ps_shard_new(&args, &node->shard, NULL), PSD_OK);
}

static inline void world_open(world_t *self, uint64_t seed, const ps_shard_args_t *args)
{
    *self = (world_t){.now_ms = 1000, .delay_ms = 1};
    story_open(&self->story, seed);
    side_close(&self->story.primary);
    self->story.primary = (side_t){.shard = NULL};
    self->args = *args;
    self->n_nodes = 2 + (uint32_t)below(&self->story, 2);
    for (uint32_t i = 0; i < self->n_nodes; i++) {
        world_start_node(self, i);
    }
    for (uint32_t i = 0; i < self->story.spec.n_partitions; i++) {
        bool here = i == self->story.number;

        self->routes[i] = (ps_route_t){.partition = i, .epoch = 4, .incarnation = here ? 70 : 69};
        self->copies[i] = (ps_copies_t){
            .epoch = 4, .n = 1, .at = {{.incarnation = here ? 70 : 69, .state = PS_COPY_PRIMARY}}};
    }
    world_tell(self);
}

static inline void world_close(world_t *self)
{
    for (uint32_t i = 0; i < self->n_nodes; i++) {
        ps_shard_destroy(&self->nodes[i].shard);
    }
    for (size_t i = 0; i < self->n_parcels; i++) {
        ps_buffer_done(&self->parcels[i].bytes);
    }
    ps_free(self->parcels);
    self->story.primary = (side_t){.shard = NULL};
    story_close(&self->story);
}

/* The map with that node as a copy that begins. */
static inline void world_join(world_t *self, uint32_t number)
{
    ps_copies_t *map = world_map(self);

    map->epoch++;
    self->routes[self->story.number].epoch = map->epoch;
    ps_copies_add(map, &(ps_copy_t){.incarnation = self->nodes[number].incarnation,
                                    .shard = number,
                                    .state = PS_COPY_CATCHING_UP});
    world_tell(self);
}

static inline ps_copy_t *world_copy(world_t *self, uint32_t number, uint32_t *ret_at)
{
    ps_copies_t *map = world_map(self);

    for (uint32_t i = 0; i < map->n; i++) {
        if (map->at[i].incarnation == self->nodes[number].incarnation) {
            *ret_at = i;
            return &map->at[i];
        }
    }
    return NULL;
}

/* The next record of the story, at the primary; false: not now. */
static inline bool world_record(world_t *self)
{
    PSD_AUTO(ps_outbox_done) ps_outbox_t outbox = {0};
    story_t *story = &self->story;
    ps_partition_t *partition = story->primary.partition;
    ps_shard_t *shard = story->primary.shard;
    bool done = false;
    uint64_t lowest = 0;

    if (shard == NULL ||
        (partition->replicas != NULL &&
         (!partition->replicas->serving || !ps_replicas_has_room(&shard->step, partition)))) {
        return false;
    }
    do {
        story_next(story);
    } while ((story->record.kind == PS_RECORD_PUSH && story->record.op.op == PS_CHANGE_AXPY) ||
             (partition->replicas != NULL && /* it would wait */
              ps_replicas_any_counts(partition->replicas) &&
              !ps_replicas_can_send(&shard->step, partition, &story->record.op, story->payload)));
    if (story->record.job != 0) {
        const ps_job_t *job = &story->jobs[story->record.job - 3];

        story->record.joins = job->workers[story->record.worker].joins;
    }
    shard->step.outbox = &outbox;
    shard->step.now_ms = self->now_ms;
    shard->step.given_bytes = 0;
    if (story->record.kind == PS_RECORD_PUSH &&
        ps_rows_lie_ahead(partition, story->record.job, &story->record.op, &story->record.slice,
                          story->payload, &lowest)) {
        self->n_ahead++;
    }
    done = ps_partition_takes_record(&shard->step, partition, &story->record, story->payload) &&
           ps_replicas_record(&shard->step, partition, &story->record, story->payload);
    shard->step.outbox = NULL;
    world_perform(self, self->primary, &outbox);
    return done;
}

/* ---- faults ---- */

/* One connection between two nodes, if there is one, is gone at both. */
static inline void world_break_link(world_t *self, uint32_t number)
{
    world_node_t *node = &self->nodes[number];
    uint64_t k = node->n_opened == 0 ? 0 : below(&self->story, node->n_opened);

    if (node->n_opened > 0) {
        world_step(self, number, &(ps_event_t){.kind = PS_EVENT_GONE, .conn = PS_LINK_CONN + k});
    }
}

/* A node ends with all that it knew; another life of it joins, or, if it was
 * the primary, one in sync takes its place first. */
static inline void world_end_node(world_t *self, uint32_t number)
{
    ps_copies_t *map = world_map(self);
    uint32_t at = 0;
    ps_copy_t *copy = world_copy(self, number, &at);

    if (copy == NULL || (at == 0 && (map->n == 1 || map->at[1].state != PS_COPY_IN_SYNC))) {
        return;
    }
    ps_shard_destroy(&self->nodes[number].shard);
    if (at == 0) {
        ps_copies_fence(map);
        ps_copies_remove(map, 0);
        ps_copies_promote(map, 0);
        self->primary = map->at[0].shard;
        self->routes[self->story.number].incarnation = map->at[0].incarnation;
    } else {
        ps_copies_remove(map, at);
    }
    world_start_node(self, number);
    world_join(self, number);
}

/* A copy that is not in sync has, by a fault, other records. */
static inline void world_diverge(world_t *self, uint32_t number)
{
    uint32_t at = 0;
    const ps_copy_t *copy = world_copy(self, number, &at);

    ps_partition_t *partition = world_partition(self, number);

    if (copy != NULL && copy->state == PS_COPY_CATCHING_UP && partition != NULL) {
        partition->replicas->diverged = true;
    }
}

static inline bool world_is_in_sync(const world_t *self)
{
    const ps_copies_t *map = &self->copies[self->story.number];

    return map->n == self->n_nodes && ps_copies_n_whole(map) == map->n;
}

/* All copies are in sync, and nothing is under way but leases. */
static inline bool world_is_done(world_t *self)
{
    const ps_copies_t *map = world_map(self);
    bool done = map->n == self->n_nodes;

    for (uint32_t i = 0; i < self->n_nodes; i++) {
        const ps_partition_t *partition = world_partition(self, i);

        done = done && partition != NULL && partition->lsn == self->story.primary.partition->lsn &&
               (i == 0 || map->at[i].state == PS_COPY_IN_SYNC);
    }
    return done;
}
#endif
