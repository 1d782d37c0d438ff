/* SPDX-License-Identifier: Apache-2.0 */
/* What drives a member: its events, its effects, what it applies and answers. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "sim_quorum.h"

#define FLUSH_EVERY 12 /* entries, at least */

uint64_t place_now(const world_t *world, size_t at)
{
    return world->now + world->places[at].offset_ms;
}

uint64_t place_new_id(world_t *world, size_t at)
{
    (void)at;
    return ++world->next_id;
}

/* ---- state ---- */

static uint64_t mix(uint64_t a, uint64_t b)
{
    ps_rng_t rng = {.state = a ^ (b * UINT64_C(0x9e3779b97f4a7c15))};

    return ps_rng_u64(&rng) | 1;
}

static void check_applied(world_t *world, size_t at, uint64_t index, uint64_t id)
{
    db_t *db = &world->places[at].db;

    if (index >= INDEXES_MAX) {
        world_fail(world, "more entries than the world has room for");
    } else if (world->chain[index] == 0) {
        world->chain[index] = db->chain;
        world->command[index] = id;
        world->highest = index;
        world->members = db->at.members;
    } else if (world->chain[index] != db->chain) {
        world_fail(world, "place %zu has another state than others at index %" PRIu64, at, index);
    }
    if (!world->failed && world->answered[index] != 0 && world->answered[index] != id) {
        world_fail(world,
                   "index %" PRIu64 " was answered for command %" PRIu64 ", but has %" PRIu64,
                   index, world->answered[index], id);
    }
    if (index > ps_quorum_cache_last(&world->places[at].disk.log)) {
        world_fail(world, "place %zu applies index %" PRIu64 ", which is not on its disk", at,
                   index);
    }
}

static void apply(world_t *world, size_t at, uint64_t index)
{
    place_t *place = &world->places[at];
    const ps_quorum_entry_t *entry = ps_quorum_entry(place->quorum, index);
    db_t *db = &place->db;
    uint64_t id = 0;

    if (entry == NULL || index != db->at.index + 1) {
        world_fail(world, "place %zu has no entry %" PRIu64 " to apply", at, index);
        return;
    }
    db->at.index = index;
    db->at.term = entry->term;
    db->chain = mix(mix(db->chain, entry->term), entry->kind);
    if (entry->kind == PS_QUORUM_CHANGE) {
        db->at.members_index = index;
        if (ps_quorum_members_decode((ps_bytes_t){entry->bytes.data, entry->bytes.size},
                                     &db->at.members, NULL) != PSD_OK) {
            world_fail(world, "members that are none");
        }
        db->chain = mix(db->chain, db->at.members.n);
    } else if (entry->kind == PS_QUORUM_COMMAND) {
        id = ps_load_u64(entry->bytes.data);
        db->chain = mix(db->chain, id);
        if (id != 0) {
            db->written[id % KEYS] = index;
        }
    }
    check_applied(world, at, index, id);
}

static void answer(world_t *world, size_t at)
{
    place_t *place = &world->places[at];

    for (size_t i = 0; i < place->n_asked && !world->failed;) {
        asked_t asked = place->asked[i];

        if (!place_may_answer(place, asked.index)) {
            i++;
            continue;
        }
        place->asked[i] = place->asked[--place->n_asked];
        if (world->command[asked.index] == asked.id || world->chain[asked.index] == 0) {
            world->answered[asked.index] = asked.id;
            world->n_answered++;
            if (asked.index > world->last_answered[asked.key]) {
                world->last_answered[asked.key] = asked.index;
            }
        }
    }
}

/* ---- effects ---- */

static void take_role(world_t *world, size_t at, const ps_quorum_effect_t *effect)
{
    place_t *place = &world->places[at];

    world_note(world, "place %zu state %d term %" PRIu64 " leader %" PRIu64, at, (int)effect->state,
               effect->term, effect->leader);
    if (effect->state != PS_QUORUM_LEADER) {
        place->n_asked = 0;
        return;
    }
    world->n_leaders++;
    if (effect->term >= TERMS_MAX) {
        world_fail(world, "more terms than the world has room for");
    } else if (world->leaders[effect->term] != 0) {
        world_fail(world, "members %" PRIu64 " and %" PRIu64 " lead in term %" PRIu64,
                   world->leaders[effect->term], place->id, effect->term);
    } else {
        world->leaders[effect->term] = place->id;
    }
}

static void take_write(world_t *world, size_t at, const ps_quorum_effect_t *effect)
{
    place_t *place = &world->places[at];
    disk_t *disk = &place->disk;
    uint64_t due = world->now + world_below(world, world->weather.disk_ms + 1);

    if (disk->n_writes > 0 && disk->writes[disk->n_writes - 1].due_ms > due) {
        due = disk->writes[disk->n_writes - 1].due_ms;
    }
    disk_write(disk, effect, due, place->is_install ? &place->inbox : NULL);
    world->n_installs += place->is_install ? 1 : 0;
    place->is_install = false;
}

void place_effects(world_t *world, size_t at)
{
    place_t *place = &world->places[at];
    ps_quorum_effect_t effect;

    while (ps_quorum_next(place->quorum, &effect)) {
        world->digest = mix(world->digest, effect.kind * 1000 + effect.index + effect.op);
        switch ((int)effect.kind) {
        case PS_QUORUM_TERM:
            disk_set_term(&place->disk, effect.term, effect.vote);
            break;
        case PS_QUORUM_INSTALL:
            place->is_install = true;
            place->has_inbox = false;
            place->flush_ms = 0;
            break;
        case PS_QUORUM_BEGIN:
        case PS_QUORUM_CUT:
        case PS_QUORUM_EXTEND:
            world_note(world, "place %zu op %" PRIu64 " kind %d index %" PRIu64 " n %zu", at,
                       effect.op, (int)effect.kind, effect.index, effect.n_entries);
            take_write(world, at, &effect);
            break;
        case PS_QUORUM_SEND:
            world_send(world, at, effect.to, &effect, NULL);
            break;
        case PS_QUORUM_SEND_SNAPSHOT:
            world_send(world, at, effect.to, NULL, &place->db);
            break;
        case PS_QUORUM_ROLE:
            take_role(world, at, &effect);
            break;
        default: /* applied at the end of the ms */
            break;
        }
    }
}

static void check(world_t *world, size_t at, psd_status_t rc, psd_error_t *err)
{
    if (rc != PSD_OK) {
        world_fail(world, "place %zu: %s", at, psd_error_text(err));
    } else {
        place_effects(world, at);
    }
}

/* ---- events ---- */

void place_start(world_t *world, size_t at)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    place_t *place = &world->places[at];
    disk_t *disk = &place->disk;
    char node[8];
    const ps_quorum_args_t args = {.member = place->id,
                                   .node = node,
                                   .life = ++disk->life,
                                   .seed = ps_rng_u64(&world->rng),
                                   .now_ms = place_now(world, at),
                                   .election_ms = ELECTION_MS,
                                   .patience_ms = VOTES_PATIENCE_MS,
                                   .heartbeat_ms = HEARTBEAT_MS,
                                   .message_bytes = 1 + world_below(world, 200),
                                   .term = disk->term,
                                   .vote = disk->vote,
                                   .snapshot = disk->has_db ? &disk->db.at : NULL,
                                   .first = disk->log.base + 1,
                                   .entries = disk->log.at,
                                   .n_entries = disk->has_db ? disk->log.n : 0};
    psd_status_t rc = PSD_OK;

    (void)snprintf(node, sizeof node, "n%zu", at);
    world_note(world,
               "place %zu starts as member %" PRIu64 ": term %" PRIu64 ", database %" PRIu64
               ", log %" PRIu64 " to %" PRIu64,
               at, place->id, disk->term, disk->db.at.index, disk->log.base + 1,
               ps_quorum_cache_last(&disk->log));
    place->db = disk->db;
    place->has_inbox = false;
    place->is_install = false;
    place->flush_ms = 0;
    place->n_asked = 0;
    place->up_ms = 0;
    place->frozen_ms = 0;
    place->last_term = 0;
    rc = ps_quorum_new(&args, &place->quorum, err);
    check(world, at, rc, err);
}

void place_stop(world_t *world, size_t at)
{
    place_t *place = &world->places[at];
    bool has_power = world_below(world, 2) == 0;
    bool is_kept = has_power || world_below(world, 2) == 0;
    bool is_installing = false;

    for (size_t i = 0; i < place->disk.n_writes; i++) {
        is_installing = is_installing || place->disk.writes[i].is_install;
    }
    world_note(world, "place %zu stops, power %d", at, (int)has_power);
    ps_quorum_destroy(&place->quorum);
    if (is_kept && !is_installing && place->db.at.index > place->disk.db.at.index) {
        place->disk.db = place->db;
    }
    disk_crash(&place->disk, &world->rng, has_power);
    place->n_asked = 0;
}

/* A database came: the sender learns it at once, and then says which one it is. */
static void take_db(world_t *world, size_t at, const parcel_t *parcel)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    place_t *from = &world->places[parcel->from];
    place_t *place = &world->places[at];
    bool came = place->quorum != NULL && !place->is_install;

    for (size_t i = 0; came && i < place->disk.n_writes; i++) {
        came = !place->disk.writes[i].is_install;
    }
    if (came) {
        place->inbox = *parcel->db;
        place->has_inbox = true;
    }
    if (from->quorum != NULL) {
        check(world, parcel->from,
              ps_quorum_snapshot_sent(from->quorum, place_now(world, parcel->from), parcel->to,
                                      came ? &parcel->db->at : NULL, err),
              err);
    }
}

void place_take(world_t *world, size_t at, const parcel_t *parcel)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_quorum_message_done) ps_quorum_message_t message = {0};
    place_t *place = &world->places[at];
    ps_bytes_t bytes = {parcel->bytes.data, parcel->bytes.size};

    if (parcel->db != NULL) {
        take_db(world, at, parcel);
        return;
    }
    if (place->quorum == NULL) {
        return;
    }
    if (ps_quorum_message_decode(bytes, &message, err) != PSD_OK) {
        world_fail(world, "place %zu: %s", at, psd_error_text(err));
        return;
    }
    if (message.kind == PS_QUORUM_SNAPSHOT &&
        (!place->has_inbox || place->inbox.at.index != message.snapshot.index ||
         place->inbox.at.term != message.snapshot.term)) {
        return;
    }
    world_note(world,
               "place %zu takes %s %" PRIu64 " of place %zu, term %" PRIu64 ", last %" PRIu64
               ", n %zu, rejected %" PRIu64,
               at, ps_quorum_message_name(message.kind), message.number, parcel->from, message.term,
               message.last_index, message.n_entries, message.rejected);
    check(world, at, ps_quorum_receive(place->quorum, place_now(world, at), bytes, err), err);
}

static void flush_log(world_t *world, size_t at)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    place_t *place = &world->places[at];
    bool is_install = false;
    uint64_t op = disk_flush(&place->disk, world->now, &is_install);

    if (is_install) {
        place->db = place->disk.db;
        check(world, at, ps_quorum_installed(place->quorum, place_now(world, at), err), err);
    } else if (op != 0) {
        check(world, at, ps_quorum_flushed(place->quorum, place_now(world, at), op, err), err);
    }
}

static bool is_installing(const place_t *place)
{
    return place->is_install || (place->disk.n_writes > 0 && place->disk.writes[0].is_install);
}

static void flush_db(world_t *world, size_t at)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    place_t *place = &world->places[at];
    uint32_t trailing = (uint32_t)world_below(world, 8);
    uint64_t index = place->flushing.at.index;

    if (is_installing(place)) {
        return; /* the old database is of no use */
    }
    if (place->flush_ms == 0 && place->db.at.index >= place->disk.db.at.index + FLUSH_EVERY &&
        world_below(world, 40) == 0) {
        place->flushing = place->db;
        place->flush_ms = world->now + 1 + world_below(world, world->weather.disk_ms + 1);
    } else if (place->flush_ms != 0 && place->flush_ms <= world->now) {
        place->flush_ms = 0;
        place->disk.db = place->flushing;
        check(world, at,
              ps_quorum_snapshot_taken(place->quorum, place_now(world, at), index, trailing, err),
              err);
        if (index > trailing && index - trailing > place->disk.log.base) {
            ps_quorum_cache_forget(&place->disk.log, index - trailing);
        }
    }
}

/* n commands in one proposal, the first with that id; 0: TERM. */
static void propose_bytes(world_t *world, size_t at, uint64_t id, size_t n)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    place_t *place = &world->places[at];
    uint64_t ids[TOGETHER_MAX];
    ps_bytes_t commands[TOGETHER_MAX];
    uint64_t first = 0;
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; i < n; i++) {
        ids[i] = id + i;
        commands[i] = (ps_bytes_t){(const uint8_t *)&ids[i], sizeof ids[i]};
    }
    rc = ps_quorum_propose(place->quorum, place_now(world, at), commands, n, &first, err);
    if (rc == PSD_BUSY) {
        world->n_refused++;
        return;
    }
    for (size_t i = 0; rc == PSD_OK && id != 0 && i < n; i++) {
        place->asked[place->n_asked++] =
            (asked_t){.index = first + i, .id = ids[i], .key = ids[i] % KEYS};
    }
    if (rc == PSD_OK && id == 0) {
        place->last_term = ps_quorum_term(place->quorum);
    }
    check(world, at, rc, err);
}

void place_propose(world_t *world, size_t at)
{
    place_t *place = &world->places[at];

    size_t n = 1 + world_below(world, TOGETHER_MAX);

    if (place->n_asked + n <= ASKED_MAX && place->last_term == ps_quorum_term(place->quorum)) {
        propose_bytes(world, at, world->next_command + 1, n);
        world->next_command += n;
    }
}

void place_read(world_t *world, size_t at)
{
    const place_t *place = &world->places[at];
    uint64_t now = place_now(world, at);
    uint64_t heard = ps_quorum_heard_majority_ms(place->quorum, now);
    uint64_t key = world_below(world, KEYS);

    if (ps_quorum_state(place->quorum) != PS_QUORUM_LEADER ||
        place->db.at.term != ps_quorum_term(place->quorum) || heard == 0 ||
        now > heard + ELECTION_MS / 2) {
        return;
    }
    world->n_reads++;
    if (place->db.written[key] < world->last_answered[key]) {
        world_fail(world,
                   "place %zu serves index %" PRIu64 " of key %" PRIu64 ", after %" PRIu64
                   " was answered",
                   at, place->db.written[key], key, world->last_answered[key]);
    }
}

void place_pass(world_t *world, size_t at)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    place_t *place = &world->places[at];

    flush_log(world, at);
    if (!world->failed && place_now(world, at) >= ps_quorum_deadline(place->quorum)) {
        check(world, at, ps_quorum_tick(place->quorum, place_now(world, at), err), err);
    }
    while (!world->failed && !is_installing(place) &&
           place->db.at.index < ps_quorum_applicable(place->quorum)) {
        apply(world, at, place->db.at.index + 1);
    }
    answer(world, at);
    if (!world->failed) {
        flush_db(world, at);
    }
    if (!world->failed && ps_quorum_state(place->quorum) == PS_QUORUM_LEADER &&
        place->last_term != ps_quorum_term(place->quorum)) {
        propose_bytes(world, at, 0, 1); /* TERM */
    }
}
