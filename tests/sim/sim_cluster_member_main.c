/* SPDX-License-Identifier: Apache-2.0 */
/* A member's main thread: its state, what it proposes, whether it leads. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/registry/command_code.h"
#include "sim_cluster_member_inner.h"

#define FRESH_MS 100   /* a leader's state is the newest for so long after a majority's word */
#define COMMIT_MS 1000 /* for a majority to agree */

/* ---- the database ---- */

void cluster_db_put(cluster_db_t *self, uint64_t n, ps_applied_t at)
{
    self->n = n;
    self->applied = at;
}

/* A member applies this entry: the first one says what it is. */
static void note_entry(cluster_t *self, uint64_t index, const ps_quorum_entry_t *entry)
{
    cluster_story_t *story = &self->story;
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    cluster_entry_t *own = NULL;

    if (index <= story->n) {
        own = &story->entries[index - 1];
        if (own->term != entry->term || own->kind != entry->kind ||
            own->bytes.size != entry->bytes.size ||
            (own->bytes.size > 0 &&
             memcmp(own->bytes.data, entry->bytes.data, own->bytes.size) != 0)) {
            cluster_fail(self,
                         "L2: entry %" PRIu64 " of term %" PRIu64 " was another of term %" PRIu64,
                         index, entry->term, own->term);
        }
        return;
    }
    cluster_need(index == story->n + 1 && ps_grow(&story->entries, &story->capacity, story->n + 1,
                                                  sizeof *story->entries),
                 "memory for an entry");
    own = &story->entries[story->n++];
    *own = (cluster_entry_t){.term = entry->term, .kind = entry->kind};
    cluster_need(entry->bytes.size == 0 ||
                     ps_buffer_append(&own->bytes, entry->bytes.data, entry->bytes.size),
                 "memory for an entry");
    if (entry->kind == PS_QUORUM_COMMAND) {
        cluster_need(ps_command_decode((ps_bytes_t){entry->bytes.data, entry->bytes.size}, &command,
                                       NULL) == PSD_OK,
                     "a command that can be read");
        cluster_job_note(self, &command);
        cluster_request_note(self, &command);
    }
    self->changed_ms = self->now_ms;
}

void cluster_story_begin(cluster_t *self, const ps_command_t *commands, size_t n)
{
    cluster_story_t *story = &self->story;

    cluster_need(ps_grow(&story->entries, &story->capacity, n, sizeof *story->entries),
                 "memory for entries");
    for (; story->n < n; story->n++) {
        cluster_entry_t *entry = &story->entries[story->n];

        *entry = (cluster_entry_t){.term = CLUSTER_FIRST_TERM, .kind = PS_QUORUM_COMMAND};
        cluster_need(ps_command_encode(&commands[story->n], &entry->bytes), "a command in bytes");
    }
}

typedef struct shelf {
    cluster_t *world;
    uint32_t at;
} shelf_t;

static psd_status_t put_members(void *context, const ps_quorum_members_t *members, ps_applied_t at,
                                psd_error_t *err)
{
    const shelf_t *shelf = context;
    cluster_db_t *db = &shelf->world->members[shelf->at].db;

    (void)err;
    if (members != NULL) {
        db->members = *members;
        db->members_index = at.index;
    }
    cluster_db_put(db, at.index, at);
    return PSD_OK;
}

static psd_status_t put(void *context, const ps_registry_t *registry, const ps_command_t *command,
                        ps_applied_t at, psd_error_t *err)
{
    (void)registry;
    (void)command;
    return put_members(context, NULL, at, err);
}

/* The state after entry `index` is that of others. */
static void check_state(cluster_t *self, uint32_t at, uint64_t index)
{
    cluster_entry_t *entry = &self->story.entries[index - 1];
    uint64_t hash = ps_registry_hash(self->members[at].state);

    if (entry->hash == 0) {
        entry->hash = hash;
    } else if (entry->hash != hash) {
        cluster_fail(self, "L3: after entry %" PRIu64 " member %u has another state", index, at);
    }
}

/* As ps_registry_db_load. */
void member_load(cluster_t *self, uint32_t at)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    cluster_member_t *member = &self->members[at];
    uint64_t n = member->db.n;

    member->state = cluster_registry_new(self);
    for (uint64_t i = 0; i < n && !self->failed; i++) {
        PSD_AUTO(ps_command_done) ps_command_t command = {0};
        const cluster_entry_t *entry = &self->story.entries[i];

        if (entry->kind == PS_QUORUM_COMMAND &&
            (ps_command_decode((ps_bytes_t){entry->bytes.data, entry->bytes.size}, &command,
                               NULL) != PSD_OK ||
             ps_registry_apply(member->state, &command, self->now_ms, err) != PSD_OK)) {
            cluster_fail(self, "L3: member %u cannot load entry %" PRIu64 ": %s", at, i + 1,
                         psd_error_text(err));
        }
    }
    if (n > 0 && !self->failed) {
        check_state(self, at, n);
    }
}

static void apply_all(cluster_t *self, uint32_t at)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    cluster_member_t *member = &self->members[at];
    shelf_t context = {.world = self, .at = at};
    const ps_shelf_t shelf = {.context = &context, .put = put, .put_members = put_members};

    while (!self->failed && member->db.applied.index < ps_quorum_applicable(member->quorum)) {
        uint64_t index = member->db.applied.index + 1;
        const ps_quorum_entry_t *entry = ps_quorum_entry(member->quorum, index);
        ps_registry_entry_t row;

        cluster_need(entry != NULL, "an entry that may be applied");
        note_entry(self, index, entry);
        row = (ps_registry_entry_t){.index = index,
                                    .term = entry->term,
                                    .kind = (ps_registry_entry_kind_t)entry->kind,
                                    .bytes = {entry->bytes.data, entry->bytes.size}};
        if (ps_shelf_apply(member->state, &shelf, &row, self->now_ms, err) != PSD_OK) {
            cluster_fail(self, "L3: member %u cannot apply entry %" PRIu64 ": %s", at, index,
                         psd_error_text(err));
        } else {
            check_state(self, at, index);
        }
    }
}

/* ---- its turns ---- */

/* The database that came is its own now; its node may fall before the log follows. */
static void install(cluster_t *self, uint32_t at)
{
    cluster_member_t *member = &self->members[at];

    cluster_trace(self, "member %u installs a database of entry %" PRIu64, at,
                  member->inbox.applied.index);
    self->story.n_installs++;
    member->db = member->inbox;
    member->has_inbox = false;
    ps_registry_destroy(&member->state);
    member_load(self, at);
    member->installs = CLUSTER_INSTALL_BEGINS;
    member_turn(self, at);
}

void cluster_member_take(cluster_t *self, uint32_t at)
{
    cluster_member_t *member = &self->members[at];
    cluster_registry_t *registry = &self->registries[at];

    member->takes = false;
    if (registry->waits) {
        return; /* it looks when its wait has ended */
    }
    if (ps_quorum_state(member->quorum) != PS_QUORUM_LEADER) {
        cluster_stop_leading(self, at);
    }
    if (member->installs == CLUSTER_INSTALL_WAITS) {
        install(self, at);
    }
    if (member->quorum == NULL || self->failed) {
        return;
    }
    apply_all(self, at);
    if (self->failed) {
        return;
    }
    switch (ps_quorum_duty(ps_quorum_state(member->quorum), ps_quorum_term(member->quorum),
                           ps_quorum_last_index(member->quorum), member->db.applied.index,
                           registry->machine == NULL ? 0 : registry->term)) {
    case PS_DUTY_LEAD:
        cluster_stop_leading(self, at);
        cluster_lead(self, at, ps_quorum_term(member->quorum));
        break;
    case PS_DUTY_WAIT:
    case PS_DUTY_FOLLOW:
        cluster_stop_leading(self, at);
        break;
    case PS_DUTY_STAY:
    default:
        break;
    }
}

/* What it leads is over: its main thread looks what has become of it. */
static bool give_up(cluster_t *self, uint32_t at, uint64_t life)
{
    if (self->members[at].life == life && self->members[at].quorum != NULL) {
        cluster_stop_leading(self, at);
        member_wake_main(self, at);
    }
    return false;
}

/* The world goes on until the condition holds, the member falls, or time is up. */
static bool await(cluster_t *self, uint32_t at, uint64_t life, uint64_t index, uint64_t term,
                  uint64_t until_ms)
{
    const cluster_member_t *member = &self->members[at];

    for (;;) {
        if (member->life != life || member->quorum == NULL || self->failed) {
            return false;
        }
        if (index == 0 ? !member->flushes && member->installs == CLUSTER_NO_INSTALL
                       : ps_quorum_applicable(member->quorum) >= index &&
                             ps_quorum_term(member->quorum) == term) {
            return true;
        }
        if (self->now_ms >= until_ms || ps_quorum_state(member->quorum) != PS_QUORUM_LEADER ||
            ps_quorum_term(member->quorum) != term || !cluster_step(self)) {
            return false;
        }
    }
}

static bool propose(cluster_t *self, uint32_t at, uint64_t life, const ps_buffer_t *bytes)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    cluster_member_t *member = &self->members[at];
    uint64_t term = self->registries[at].term;
    uint64_t until_ms = self->now_ms + COMMIT_MS;
    const ps_bytes_t command = {bytes->data, bytes->size};
    uint64_t index = 0;

    if (!await(self, at, life, 0, term, until_ms) || ps_quorum_term(member->quorum) != term ||
        ps_quorum_propose(member->quorum, member_clock(self, at), &command, 1, &index, err) !=
            PSD_OK) {
        return false; /* nothing was proposed */
    }
    member_turn(self, at);
    if (!await(self, at, life, index, term, until_ms)) {
        self->story.n_lost++;
        return false;
    }
    apply_all(self, at);
    return !self->failed;
}

bool cluster_member_commit(cluster_t *self, const ps_command_t *command)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    cluster_registry_t *registry = self->registry;
    uint32_t at = registry->at;
    uint64_t life = self->members[at].life;
    bool done = false;

    if (ps_registry_try(registry->machine, command, self->now_ms, err) != PSD_OK) {
        cluster_fail(self, "a planned command does not fit: %s", psd_error_text(err));
        return give_up(self, at, life);
    }
    ps_registry_undo(registry->machine);
    cluster_need(ps_command_encode(command, &bytes), "a command in bytes");
    registry->waits = true;
    done = propose(self, at, life, &bytes);
    self->registry = registry;
    if (self->members[at].life == life) {
        registry->waits = false;
        cluster_lead_release(self, registry);
    }
    return done || give_up(self, at, life);
}

/* ---- queries ---- */

bool cluster_member_may_answer(const cluster_t *self)
{
    uint32_t at = self->registry->at;
    uint64_t now_ms = member_clock(self, at);

    return ps_quorum_heard_majority_ms(self->members[at].quorum, now_ms) + FRESH_MS >= now_ms;
}

uint32_t cluster_member_leader(const cluster_t *self, uint32_t at)
{
    const cluster_member_t *member = &self->members[at];
    uint64_t leader = member->quorum == NULL ? 0 : ps_quorum_leader(member->quorum);

    return leader == 0 ? CLUSTER_NOBODY : (uint32_t)leader - 1;
}

ps_registry_t *cluster_members_state(const cluster_t *self)
{
    const cluster_member_t *best = NULL;

    for (uint32_t i = 0; i < self->plan.n_members; i++) {
        const cluster_member_t *member = &self->members[i];

        if (member->quorum != NULL &&
            (best == NULL || member->db.applied.index > best->db.applied.index)) {
            best = member;
        }
    }
    return best == NULL ? NULL : best->state;
}

bool cluster_members_know_all(const cluster_t *self)
{
    for (uint32_t i = 0; i < self->plan.n_members; i++) {
        if (self->members[i].quorum != NULL && self->members[i].db.applied.index == self->story.n) {
            return true;
        }
    }
    return false;
}

bool cluster_members_are_level(const cluster_t *self)
{
    for (uint32_t i = 0; i < self->plan.n_members; i++) {
        const cluster_member_t *member = &self->members[i];

        if (member->quorum == NULL || member->db.applied.index != self->story.n) {
            return false;
        }
    }
    return true;
}
