/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong, and the operator who changes the members meanwhile. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "sim_quorum.h"

bool place_may_answer(const place_t *self, uint64_t index)
{
    return self->db.at.index >= index;
}

/* A place that is up and believes to lead; PLACES: none. */
static size_t find_leader(world_t *world)
{
    size_t first = (size_t)world_below(world, PLACES);

    for (size_t i = 0; i < PLACES; i++) {
        size_t at = (first + i) % PLACES;
        const place_t *place = &world->places[at];

        if (place->quorum != NULL && ps_quorum_state(place->quorum) == PS_QUORUM_LEADER) {
            return at;
        }
    }
    return PLACES;
}

/* A leader half of the time. */
static size_t find_victim(world_t *world)
{
    size_t at = world_below(world, 2) == 0 ? find_leader(world) : PLACES;

    return at < PLACES ? at : (size_t)world_below(world, PLACES);
}

static void crash(world_t *world)
{
    size_t at = find_victim(world);
    place_t *place = &world->places[at];

    if (place->quorum != NULL) {
        uint64_t most = world_below(world, 3) == 0 ? 1500 : 60;

        place_stop(world, at);
        place->up_ms = world->now + 1 + world_below(world, most);
        world->n_crashes++;
    }
}

static void freeze(world_t *world)
{
    size_t at = find_victim(world);

    world->places[at].frozen_ms = world->now + 1 + world_below(world, 1000);
    world_note(world, "place %zu is frozen until %" PRIu64, at, world->places[at].frozen_ms);
}

static void cut(world_t *world)
{
    size_t at = find_victim(world);
    size_t other = (size_t)world_below(world, PLACES);
    uint64_t how = world_below(world, 3); /* into, out of, both */

    world_note(world, "place %zu is cut, %" PRIu64, at, how);
    for (size_t i = 0; i < PLACES; i++) {
        if (world_below(world, 2) == 0 || i == other) {
            world->cut[at][i] = world->cut[at][i] || how != 0;
            world->cut[i][at] = world->cut[i][at] || how != 1;
        }
    }
}

/* Every place is up, all members live, and no change is under way anywhere. */
static bool is_quiet(const world_t *world)
{
    uint64_t index = 0;

    for (size_t i = 0; i < PLACES; i++) {
        ps_quorum_members_t members;
        uint64_t mine = 0;

        if (world->places[i].quorum == NULL || ps_quorum_is_changing(world->places[i].quorum)) {
            return false;
        }
        mine = ps_quorum_members(world->places[i].quorum, &members);
        if (ps_quorum_members_find(&world->members, world->places[i].id) == NULL) {
            continue;
        }
        if (index != 0 && mine != index) {
            return false;
        }
        index = mine;
    }
    for (uint32_t i = 0; i < world->members.n; i++) {
        if (world_place_of(world, world->members.at[i].id) == PLACES) {
            return false;
        }
    }
    return index != 0;
}

/* A disk is lost for good: with it the member. */
static void lose_disk(world_t *world)
{
    size_t at = find_victim(world);
    place_t *place = &world->places[at];
    const ps_quorum_member_t *member = ps_quorum_members_find(&world->members, place->id);
    bool is_voter = member != NULL && member->role == PS_QUORUM_VOTER;

    if (place->quorum == NULL ||
        (is_voter && (ps_quorum_members_voters(&world->members) < 3 || !is_quiet(world))) ||
        (member != NULL && !is_quiet(world))) {
        return;
    }
    world_note(world, "place %zu loses the disk of member %" PRIu64, at, place->id);
    place_stop(world, at);
    disk_done(&place->disk);
    place->db = (db_t){0};
    place->id = place_new_id(world, at);
    place->up_ms = world->now + 1 + world_below(world, 100);
}

static void change(world_t *world)
{
    size_t at = find_leader(world);
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_quorum_change_t kind = (ps_quorum_change_t)(1 + world_below(world, 4));
    ps_quorum_members_t members;
    uint64_t id = 0;
    uint64_t index = 0;
    char node[8] = "";
    psd_status_t rc = PSD_OK;

    if (at == PLACES || world->places[at].frozen_ms > world->now) {
        return;
    }
    (void)ps_quorum_members(world->places[at].quorum, &members);
    id = members.at[world_below(world, members.n)].id;
    for (uint32_t i = 0; i < members.n; i++) {
        if (world_place_of(world, members.at[i].id) == PLACES) { /* its disk is lost */
            id = members.at[i].id;
            kind = PS_QUORUM_REMOVE;
        }
    }
    if (kind == PS_QUORUM_ADD) {
        size_t new = (size_t)world_below(world, PLACES);

        (void)snprintf(node, sizeof node, "n%zu", new);
        id = world->places[new].id;
    }
    if ((kind == PS_QUORUM_REMOVE || kind == PS_QUORUM_DEMOTE) && world_below(world, 3) != 0 &&
        world_place_of(world, id) < PLACES) {
        kind = PS_QUORUM_PROMOTE; /* more come than go */
    }
    rc = world_below(world, 5) == 0
             ? ps_quorum_transfer(world->places[at].quorum, place_now(world, at),
                                  world_below(world, 2) * id, err)
             : ps_quorum_propose_members(world->places[at].quorum, place_now(world, at), kind, id,
                                         node, &index, err);
    if (rc == PSD_OK) {
        world_note(world, "place %zu changes the members: %d of %" PRIu64, at, (int)kind, id);
        world->n_changes++;
        place_effects(world, at);
    } else if (rc != PSD_BUSY && rc != PSD_INVALID) {
        world_fail(world, "place %zu: %s", at, psd_error_text(err));
    }
}

void faults_pass(world_t *world)
{
    for (size_t i = 0; i < PLACES; i++) {
        place_t *place = &world->places[i];

        if (place->quorum == NULL && place->up_ms <= world->now) {
            place_start(world, i);
        }
    }
    if (world->is_calm) {
        return;
    }
    if (world_below(world, world->weather.fault_ms) == 0) {
        switch (world_below(world, 12)) {
        case 0:
        case 1:
        case 2:
        case 3:
            crash(world);
            break;
        case 4:
        case 5:
            freeze(world);
            break;
        case 6:
        case 7:
        case 8:
            cut(world);
            break;
        case 9:
            lose_disk(world);
            break;
        default:
            memset(world->cut, 0, sizeof world->cut);
            world_note(world, "no place is cut off");
            break;
        }
    }
    if (world_below(world, world->weather.change_ms) == 0) {
        change(world);
    }
}

/* All is well; but one voter of three or more may stay away for a while. */
void faults_end(world_t *world)
{
    size_t away = (size_t)world_below(world, 2 * PLACES);

    world_note(world, "all is well");
    world->is_calm = true;
    world->weather.loss = 0;
    world->weather.repeat = 0;
    world->weather.late = 0;
    world->weather.has_order = true;
    memset(world->cut, 0, sizeof world->cut);
    for (size_t i = 0; i < PLACES; i++) {
        world->places[i].frozen_ms = 0;
        world->places[i].up_ms = world->now;
    }
    if (away < PLACES && is_quiet(world) && ps_quorum_members_voters(&world->members) >= 3) {
        place_stop(world, away);
        world->places[away].up_ms = UINT64_MAX;
    }
}
