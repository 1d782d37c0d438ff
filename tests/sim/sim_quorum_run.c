/* SPDX-License-Identifier: Apache-2.0 */
/* The world: its network, its time, its end; and the search through many seeds. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "sim_quorum.h"
#include "sim_story.h"

#define PATIENCE_MS 8000

void world_fail(world_t *world, const char *format, ...)
{
    va_list list;

    if (world->failed) {
        return;
    }
    world->failed = true;
    va_start(list, format);
    (void)vsnprintf(world->violation, sizeof world->violation, format, list);
    va_end(list);
}

void world_note(world_t *world, const char *format, ...)
{
    va_list list;

    if (world->trace == NULL) {
        return;
    }
    (void)fprintf(world->trace, "[%6" PRIu64 "] ", world->now);
    va_start(list, format);
    (void)vfprintf(world->trace, format, list);
    va_end(list);
    (void)fputc('\n', world->trace);
}

uint64_t world_below(world_t *world, uint64_t bound)
{
    return ps_rng_below(&world->rng, bound);
}

size_t world_place_of(const world_t *world, uint64_t id)
{
    size_t at = 0;

    while (at < PLACES && world->places[at].id != id) {
        at++;
    }
    return at;
}

/* ---- network ---- */

static void put(world_t *world, uint64_t at_ms, const parcel_t *parcel)
{
    slot_t *slot = &world->slots[at_ms % SLOTS];

    if (!ps_grow(&slot->at, &slot->capacity, slot->n + 1, sizeof *slot->at)) {
        abort();
    }
    slot->at[slot->n++] = *parcel;
}

static uint64_t travel_ms(world_t *world)
{
    return 1 + world_below(world, world_below(world, 1000) < world->weather.late ? 500 : 12);
}

static uint64_t arrival_ms(world_t *world, size_t from, size_t to)
{
    uint64_t ms = world->now + travel_ms(world);
    uint64_t *last = to < PLACES ? &world->last_ms[from][to] : &ms;

    if (world->weather.has_order && *last > ms) {
        ms = *last;
    }
    *last = ms;
    return ms;
}

void world_send(world_t *world, size_t from, uint64_t to, const ps_quorum_effect_t *effect,
                const db_t *db)
{
    size_t at = world_place_of(world, to);
    uint64_t copies = effect != NULL && world_below(world, 1000) < world->weather.repeat ? 2 : 1;

    if (effect != NULL &&
        (at == PLACES || world->cut[from][at] || world_below(world, 1000) < world->weather.loss)) {
        return;
    }
    while (copies-- > 0) {
        parcel_t parcel = {.from = from, .to = to};

        if (effect != NULL) {
            if (!ps_buffer_append(&parcel.bytes, effect->bytes.data, effect->bytes.size)) {
                abort();
            }
        } else {
            parcel.db = ps_alloc(1, sizeof *parcel.db);
            if (parcel.db == NULL) {
                abort();
            }
            *parcel.db = *db;
        }
        put(world, arrival_ms(world, from, at) + (db != NULL ? 20 : 0), &parcel);
    }
}

static void parcel_done(parcel_t *self)
{
    ps_buffer_done(&self->bytes);
    ps_free(self->db);
    *self = (parcel_t){0};
}

/* A database that cannot be delivered: its sender learns that. */
static void deliver(world_t *world, parcel_t *parcel)
{
    size_t at = world_place_of(world, parcel->to);
    uint64_t thaw = at < PLACES ? world->places[at].frozen_ms : 0;
    uint64_t own = world->places[parcel->from].frozen_ms;

    thaw = parcel->db != NULL && own > thaw ? own : thaw;
    if (thaw > world->now && thaw < world->now + SLOTS) {
        put(world, thaw, parcel);
        return;
    }
    if (at < PLACES && !(parcel->db != NULL && world->cut[parcel->from][at])) {
        place_take(world, at, parcel);
    } else if (parcel->db != NULL && world->places[parcel->from].quorum != NULL) {
        if (ps_quorum_snapshot_sent(world->places[parcel->from].quorum,
                                    place_now(world, parcel->from), parcel->to, NULL,
                                    NULL) != PSD_OK) {
            world_fail(world, "a database that was not sent");
        }
        place_effects(world, parcel->from);
    }
    parcel_done(parcel);
}

static void deliver_all(world_t *world)
{
    slot_t slot = world->slots[world->now % SLOTS];

    world->slots[world->now % SLOTS] = (slot_t){0};
    for (size_t i = 0; i < slot.n; i++) {
        size_t other = world->weather.has_order ? i : i + (size_t)world_below(world, slot.n - i);
        parcel_t parcel = slot.at[other];

        slot.at[other] = slot.at[i];
        if (world->failed) {
            parcel_done(&parcel);
        } else {
            deliver(world, &parcel);
        }
    }
    ps_free(slot.at);
}

/* ---- time ---- */

static void pass_ms(world_t *world, bool has_clients)
{
    world->now++;
    faults_pass(world);
    deliver_all(world);
    for (size_t i = 0; i < PLACES && !world->failed; i++) {
        place_t *place = &world->places[i];

        if (place->quorum == NULL || place->frozen_ms > world->now) {
            continue;
        }
        if (world_below(world, 4) == 0) {
            place_read(world, i);
        }
        if (!world->failed) {
            place_pass(world, i);
        }
        if (!world->failed && has_clients && world_below(world, 10) == 0 &&
            ps_quorum_state(place->quorum) == PS_QUORUM_LEADER) {
            place_propose(world, i);
        }
    }
}

static bool are_equal(const world_t *world)
{
    for (uint32_t i = 0; i < world->members.n; i++) {
        size_t at = world_place_of(world, world->members.at[i].id);

        if (at < PLACES &&
            (world->places[at].quorum == NULL || world->places[at].db.at.index != world->highest ||
             world->places[at].db.chain != world->chain[world->highest])) {
            return false;
        }
    }
    return true;
}

static void check_answers(world_t *world)
{
    for (uint64_t index = 1; index <= world->highest && !world->failed; index++) {
        if (world->answered[index] != 0 && world->answered[index] != world->command[index]) {
            world_fail(world, "index %" PRIu64 " was answered and is lost", index);
        }
    }
}

static void run_calm(world_t *world)
{
    uint64_t end = world->now + PATIENCE_MS;
    uint64_t answered = 0;

    faults_end(world);
    for (int i = 0; i < SLOTS && !world->failed; i++) { /* what travels arrives */
        pass_ms(world, true);
    }
    answered = world->n_answered;
    while (!world->failed && world->n_answered < answered + 3) {
        pass_ms(world, true);
        if (world->now > end) {
            world_fail(world, "no command is answered though all is well");
        }
    }
    for (size_t i = 0; i < PLACES; i++) {
        world->places[i].up_ms = 0;
    }
    end = world->now + PATIENCE_MS;
    while (!world->failed && (world->now + PATIENCE_MS < end + 400 || !are_equal(world))) {
        pass_ms(world, false);
        if (world->now > end) {
            world_fail(world, "members differ though all is well");
        }
    }
    check_answers(world);
}

static void begin(world_t *world, uint64_t seed)
{
    static const uint32_t sizes[] = {1, 3, 3, 5};
    ps_quorum_snapshot_t first = {.index = 2, .term = 1, .members_index = 1};
    uint32_t n = sizes[world_below(world, 4)];
    bool has_order = world_below(world, 3) == 0;

    world->next_id = PLACES;
    world->weather = (weather_t){.loss = world_below(world, 60),
                                 .repeat = has_order ? 0 : world_below(world, 40),
                                 .late = has_order ? 0 : world_below(world, 30),
                                 .has_order = has_order,
                                 .fault_ms = 40 + world_below(world, 200),
                                 .change_ms = 30 + world_below(world, 300),
                                 .disk_ms = world_below(world, 2) == 0 ? 4 : 40};
    for (uint32_t i = 0; i < n; i++) {
        ps_quorum_member_t *member = &first.members.at[i];

        *member = (ps_quorum_member_t){.id = i + 1, .role = PS_QUORUM_VOTER};
        (void)snprintf(member->node, sizeof member->node, "n%u", (unsigned)i);
    }
    first.members.n = n;
    world->members = first.members;
    world->highest = 2;
    world->chain[2] = 1;
    for (size_t i = 0; i < PLACES; i++) {
        place_t *place = &world->places[i];

        place->id = i + 1;
        place->offset_ms = 1000 + world_below(world, 1000000);
        if (i < n) {
            place->disk.term = 1;
            place->disk.has_db = true;
            place->disk.db = (db_t){.at = first, .chain = 1};
            ps_quorum_cache_begin(&place->disk.log, 2);
        }
        place_start(world, i);
    }
    world_note(world, "seed %" PRIu64 ", %" PRIu32 " members", seed, n);
}

void world_run(world_t *world, uint64_t seed, FILE *trace)
{
    uint64_t end = 0;

    memset(world, 0, sizeof *world);
    world->rng.state = seed;
    world->trace = trace;
    begin(world, seed);
    end = 2000 + world_below(world, 5000);
    while (!world->failed && world->now < end) {
        pass_ms(world, true);
    }
    if (!world->failed) {
        run_calm(world);
    }
}

void world_done(world_t *world)
{
    for (size_t i = 0; i < PLACES; i++) {
        ps_quorum_destroy(&world->places[i].quorum);
        disk_done(&world->places[i].disk);
    }
    for (size_t i = 0; i < SLOTS; i++) {
        for (size_t k = 0; k < world->slots[i].n; k++) {
            parcel_done(&world->slots[i].at[k]);
        }
        ps_free(world->slots[i].at);
    }
}

/* ---- search ---- */

static void tell_story(void *context, FILE *trace)
{
    const uint64_t *seed = context;
    world_t *world = ps_alloc(1, sizeof *world);

    if (world != NULL) {
        world_run(world, *seed, trace);
        world_done(world);
    }
    ps_free(world);
}

static void add(world_t *sum, const world_t *world)
{
    sum->n_answered += world->n_answered;
    sum->n_leaders += world->n_leaders;
    sum->n_crashes += world->n_crashes;
    sum->n_installs += world->n_installs;
    sum->n_changes += world->n_changes;
    sum->n_reads += world->n_reads;
}

uint64_t sim_quorum_search(uint64_t first, uint64_t n, bool verbose)
{
    world_t *world = ps_alloc(2, sizeof *world);
    world_t *sum = world + 1;
    uint64_t failed = UINT64_MAX;

    if (world == NULL) {
        return first;
    }
    for (uint64_t seed = first; seed < first + n && failed == UINT64_MAX; seed++) {
        uint64_t digest = 0;

        world_run(world, seed, verbose ? stdout : NULL);
        world_done(world);
        digest = world->digest;
        add(sum, world);
        if (!world->failed && seed % 50 == 0) {
            world_run(world, seed, NULL);
            world_done(world);
            if (world->digest != digest) {
                world_fail(world, "another story the second time");
            }
        }
        if (world->failed) {
            failed = seed;
            (void)printf("seed %" PRIu64 ": %s\n", seed, world->violation);
            sim_story_show(tell_story, &failed);
            (void)printf("seed %" PRIu64 ": %s\n", seed, world->violation);
        }
    }
    (void)printf("%" PRIu64 " answered, %" PRIu64 " leaders, %" PRIu64 " crashes, %" PRIu64
                 " installs, %" PRIu64 " changes, %" PRIu64 " reads\n",
                 sum->n_answered, sum->n_leaders, sum->n_crashes, sum->n_installs, sum->n_changes,
                 sum->n_reads);
    ps_free(world);
    return failed;
}
