/* SPDX-License-Identifier: Apache-2.0 */
/* A member's thread: its log, its machine, its life. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "sim_cluster_member_inner.h"

#define DIR "registry-log"
#define ELECTION_MS 200
#define PATIENCE_MS 800
#define HEARTBEAT_MS 40
#define MESSAGE_BYTES 4000
#define SEGMENT_BYTES 4000
#define OFFSET_MS 100000 /* most between two members' clocks */
#define TAKE_MS 3        /* most until the main thread wakes */

bool cluster_has_member(const cluster_t *self, uint32_t place)
{
    return place < self->plan.n_members;
}

void member_wake_main(cluster_t *self, uint32_t at)
{
    cluster_member_t *member = &self->members[at];

    if (!member->takes) {
        member->takes = true;
        cluster_at(self, self->now_ms + cluster_below(self, TAKE_MS), CLUSTER_MEMBER_TAKE, at)
            ->incarnation = member->life;
    }
}

/* ---- effects ---- */

static void note_lead(cluster_t *self, uint32_t at, uint64_t term)
{
    cluster_story_t *story = &self->story;
    uint64_t life = self->members[at].life;

    cluster_need(term < CLUSTER_TERMS_MAX, "fewer terms");
    if (story->leaders[term] != 0 && story->leaders[term] != life) {
        cluster_fail(self, "L1: two members lead in term %" PRIu64, term);
    }
    story->leaders[term] = life;
}

static void obey(cluster_t *self, uint32_t at, const ps_quorum_effect_t *effect)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    cluster_member_t *member = &self->members[at];
    psd_status_t rc = PSD_OK;

    switch (effect->kind) {
    case PS_QUORUM_TERM:
        rc = ps_registry_log_set_term(member->log, effect->term, effect->vote, err);
        break;
    case PS_QUORUM_BEGIN:
    case PS_QUORUM_CUT:
    case PS_QUORUM_EXTEND:
        member->op = effect->op;
        rc = ps_quorum_log_obey(member->log, member->quorum, effect, err);
        break;
    case PS_QUORUM_SEND:
        cluster_send_member(self, at, (uint32_t)effect->to - 1, effect->bytes);
        break;
    case PS_QUORUM_ROLE:
        if (effect->state == PS_QUORUM_LEADER) {
            note_lead(self, at, effect->term);
        }
        cluster_trace(self, "member %u: state %d, term %" PRIu64 ", leader %" PRIu64, at,
                      (int)effect->state, effect->term, effect->leader);
        member_wake_main(self, at);
        break;
    case PS_QUORUM_COMMITTED:
        member_wake_main(self, at);
        break;
    case PS_QUORUM_SEND_SNAPSHOT:
        cluster_send_database(self, at, (uint32_t)effect->to - 1, &member->db);
        break;
    case PS_QUORUM_INSTALL:
    default:
        member->installs = CLUSTER_INSTALL_WAITS;
        member_wake_main(self, at);
        break;
    }
    if (rc != PSD_OK && sim_disk_crashed(member->disk)) {
        member->dies = true;
    } else if (rc != PSD_OK) {
        cluster_fail(self, "member %u cannot write: %s", at, psd_error_text(err));
    }
}

/* Its disk stopped in the middle of an operation: so does the registry's part of
 * the node, or all of it. */
static void die(cluster_t *self, uint32_t at)
{
    cluster_plan_t *plan = &self->plan;
    uint64_t end_ms = self->now_ms + 20 + cluster_below(self, 400);

    self->story.n_falls++;
    cluster_member_crash(self, at, true);
    cluster_need(plan->n_faults < CLUSTER_FAULTS_MAX, "room for a fault");
    plan->faults[plan->n_faults++] = (cluster_fault_t){.kind = CLUSTER_CRASH,
                                                       .who = CLUSTER_REGISTRY,
                                                       .to = at,
                                                       .begun = true,
                                                       .at_ms = self->now_ms,
                                                       .end_ms = end_ms};
    (void)cluster_at(self, end_ms, CLUSTER_FAULTS, 0);
}

static bool may_tear(cluster_t *self)
{
    const cluster_plan_t *plan = &self->plan;

    return plan->tears > 0 && !self->begins && self->now_ms < CLUSTER_CALM_MS &&
           plan->n_faults + CLUSTER_NODES_MAX < CLUSTER_FAULTS_MAX &&
           cluster_below(self, 1000) < plan->tears;
}

static void plan_tick(cluster_t *self, uint32_t at)
{
    cluster_member_t *member = &self->members[at];
    uint64_t due_ms = ps_quorum_deadline(member->quorum);
    uint64_t here_ms = member_clock(self, at);
    uint64_t at_ms = self->now_ms + (due_ms > here_ms ? due_ms - here_ms : 0);

    if (due_ms != UINT64_MAX && at_ms < member->wake_ms) {
        member->wake_ms = at_ms;
        cluster_at(self, at_ms, CLUSTER_MEMBER_TICK, at)->incarnation = member->life;
    }
}

/* The log begins again after the database that is there now. */
static void end_install(cluster_t *self, uint32_t at)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    cluster_member_t *member = &self->members[at];

    member->installs = CLUSTER_NO_INSTALL;
    member->op = 0;
    if (ps_registry_log_flush(member->log, err) != PSD_OK ||
        ps_quorum_installed(member->quorum, member_clock(self, at), err) != PSD_OK) {
        member->dies = sim_disk_crashed(member->disk);
        if (!member->dies) {
            cluster_fail(self, "member %u cannot install: %s", at, psd_error_text(err));
        }
    }
}

static void carry_out(cluster_t *self, uint32_t at)
{
    cluster_member_t *member = &self->members[at];
    ps_quorum_effect_t effect;

    for (;;) {
        while (!self->failed && !member->dies && member->installs != CLUSTER_INSTALL_WAITS &&
               ps_quorum_next(member->quorum, &effect)) {
            obey(self, at, &effect);
        }
        if (self->failed || member->dies || member->installs != CLUSTER_INSTALL_BEGINS) {
            return;
        }
        end_install(self, at);
    }
}

/* What the database has may leave the log. */
static void cut_log(cluster_t *self, uint32_t at)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    cluster_member_t *member = &self->members[at];
    uint64_t applied = member->db.applied.index;
    uint32_t trailing = (uint32_t)cluster_below(self, 8);
    psd_status_t rc = PSD_OK;

    if (self->plan.cut_every == 0 || applied < member->cut + self->plan.cut_every ||
        applied <= trailing) {
        return;
    }
    member->cut = applied;
    rc = ps_quorum_snapshot_taken(member->quorum, member_clock(self, at), applied, trailing, err);
    if (rc == PSD_OK) {
        rc = ps_registry_log_cut_head(member->log, applied - trailing, err);
    }
    member->dies = rc != PSD_OK && sim_disk_crashed(member->disk);
    if (rc != PSD_OK && !member->dies) {
        cluster_fail(self, "member %u cannot cut its log: %s", at, psd_error_text(err));
    }
}

/* A turn of its thread: does what the machine wants, then begins a flush. */
void member_turn(cluster_t *self, uint32_t at)
{
    cluster_member_t *member = &self->members[at];

    if (may_tear(self)) {
        sim_disk_plan(member->disk, sim_disk_ops(member->disk) + cluster_below(self, 6), 1,
                      SIM_DISK_CRASH);
    }
    carry_out(self, at);
    if (member->op == 0 && member->installs == CLUSTER_NO_INSTALL && !member->dies) {
        cut_log(self, at);
        carry_out(self, at);
    }
    if (!member->dies && member->op != 0 && member->installs == CLUSTER_NO_INSTALL) {
        member->flushes = true;
        member->flushed_ms =
            self->now_ms + cluster_below(self, self->begins ? 1 : self->plan.disk_ms + 1);
        cluster_at(self, member->flushed_ms, CLUSTER_MEMBER_FLUSH, at)->incarnation = member->life;
    }
    if (member->dies) {
        die(self, at);
        return;
    }
    plan_tick(self, at);
}

static void check_event(cluster_t *self, uint32_t at, psd_status_t rc, const psd_error_t *err)
{
    if (rc != PSD_OK) {
        cluster_fail(self, "member %u: %s", at, psd_error_text(err));
    } else {
        member_turn(self, at);
    }
}

uint64_t cluster_member_busy(const cluster_t *self, uint32_t at)
{
    const cluster_member_t *member = &self->members[at];

    if (member->quorum == NULL) {
        return 0;
    }
    if (member->installs != CLUSTER_NO_INSTALL) {
        return self->now_ms + 1;
    }
    return member->flushes ? member->flushed_ms + 1 : 0;
}

void cluster_member_flushed(cluster_t *self, uint32_t at)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    cluster_member_t *member = &self->members[at];
    uint64_t op = member->op;

    member->flushes = false;
    member->op = 0;
    if (ps_registry_log_flush(member->log, err) == PSD_OK) {
        check_event(self, at, ps_quorum_flushed(member->quorum, member_clock(self, at), op, err),
                    err);
    } else if (sim_disk_crashed(member->disk)) {
        die(self, at);
    } else {
        cluster_fail(self, "member %u cannot flush: %s", at, psd_error_text(err));
    }
}

void cluster_member_tick(cluster_t *self, uint32_t at)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    cluster_member_t *member = &self->members[at];
    uint64_t now_ms = member_clock(self, at);

    member->wake_ms = UINT64_MAX;
    if (now_ms >= ps_quorum_deadline(member->quorum)) {
        check_event(self, at, ps_quorum_tick(member->quorum, now_ms, err), err);
    } else {
        plan_tick(self, at);
    }
}

static bool is_wanted(const cluster_member_t *member, ps_bytes_t bytes)
{
    return ps_quorum_message_kind(bytes) != PS_QUORUM_SNAPSHOT ||
           ps_quorum_describes(bytes, member->has_inbox ? member->inbox.applied.index : 0);
}

bool cluster_member_database(cluster_t *self, uint32_t at, const cluster_db_t *db)
{
    cluster_member_t *member = &self->members[at];

    if (member->quorum == NULL || member->installs != CLUSTER_NO_INSTALL) {
        return false;
    }
    member->inbox = *db;
    member->has_inbox = true;
    return true;
}

ps_quorum_snapshot_t member_snapshot(const cluster_db_t *db)
{
    return (ps_quorum_snapshot_t){.index = db->applied.index,
                                  .term = db->applied.term,
                                  .members_index = db->members_index,
                                  .members = db->members};
}

void cluster_member_sent(cluster_t *self, uint32_t at, uint32_t to, const cluster_db_t *db)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    cluster_member_t *member = &self->members[at];
    ps_quorum_snapshot_t snapshot;

    if (db != NULL) {
        snapshot = member_snapshot(db);
    }
    check_event(self, at,
                ps_quorum_snapshot_sent(member->quorum, member_clock(self, at), member_id(to),
                                        db == NULL ? NULL : &snapshot, err),
                err);
}

void cluster_member_message(cluster_t *self, uint32_t at, ps_bytes_t bytes)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    cluster_member_t *member = &self->members[at];

    if (member->quorum != NULL && is_wanted(member, bytes)) {
        check_event(self, at, ps_quorum_receive(member->quorum, member_clock(self, at), bytes, err),
                    err);
    }
}

/* ---- lives ---- */

static ps_registry_log_args_t log_args(const cluster_t *self, uint32_t at)
{
    return (ps_registry_log_args_t){.disk = sim_disk_face(self->members[at].disk),
                                    .dir = DIR,
                                    .cluster = CLUSTER_UUID,
                                    .member = member_id(at),
                                    .segment_bytes = SEGMENT_BYTES};
}

/* What the daemon does at an install: an empty log after the database. */
static void make(cluster_t *self, uint32_t at, const ps_quorum_members_t *members)
{
    PSD_AUTO(ps_registry_log_close) ps_registry_log_t *log = NULL;
    cluster_member_t *member = &self->members[at];
    const ps_id_t lineage = CLUSTER_UUID;
    ps_registry_log_args_t args;

    member->disk = sim_disk_new(cluster_below(self, UINT32_MAX));
    member->offset_ms = 1 + cluster_below(self, OFFSET_MS);
    member->db = (cluster_db_t){.applied = {.index = self->story.n, .term = CLUSTER_FIRST_TERM},
                                .n = self->story.n,
                                .members_index = self->story.n,
                                .members = *members};
    args = log_args(self, at);
    cluster_need(ps_registry_log_create(&args, &lineage, self->story.n + 1, NULL) == PSD_OK &&
                     ps_registry_log_open(&args, &log, NULL) == PSD_OK &&
                     ps_registry_log_set_term(log, CLUSTER_FIRST_TERM, 0, NULL) == PSD_OK,
                 "a new log");
}

void cluster_member_start(cluster_t *self, uint32_t at)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    cluster_member_t *member = &self->members[at];
    ps_quorum_snapshot_t snapshot = member_snapshot(&member->db);
    char name[CLUSTER_NAME_SIZE];
    const ps_quorum_args_t args = {.node = name,
                                   .cluster = CLUSTER_UUID,
                                   .seed = cluster_below(self, UINT32_MAX),
                                   .now_ms = member_clock(self, at),
                                   .election_ms = ELECTION_MS,
                                   .patience_ms = PATIENCE_MS,
                                   .heartbeat_ms = HEARTBEAT_MS,
                                   .message_bytes = MESSAGE_BYTES,
                                   .snapshot = &snapshot};
    ps_registry_log_args_t log;
    uint64_t life = 0;
    psd_status_t rc = PSD_OK;

    if (member->quorum != NULL || member->disk == NULL) {
        return;
    }
    cluster_name(at, name);
    log = log_args(self, at);
    rc = ps_registry_log_open(&log, &member->log, err);
    if (rc == PSD_OK) {
        cluster_need(member->log != NULL, "a log that is there");
        rc = ps_quorum_start(member->log, &args, &member->quorum, &life, err);
    }
    if (rc != PSD_OK) {
        cluster_fail(self, "member %u cannot start: %s", at, psd_error_text(err));
        return;
    }
    member->life = ++self->story.n_lives;
    member->op = 0;
    member->flushes = false;
    member->takes = false;
    member->dies = false;
    member->installs = CLUSTER_NO_INSTALL;
    member->has_inbox = false;
    member->cut = member->db.applied.index;
    member->wake_ms = UINT64_MAX;
    cluster_trace(self, "member %u starts: applied %" PRIu64 ", log to %" PRIu64, at,
                  member->db.applied.index, ps_registry_log_last(member->log));
    member_load(self, at);
    member_turn(self, at);
    member_wake_main(self, at);
}

static void stop(cluster_member_t *member)
{
    ps_quorum_destroy(&member->quorum);
    ps_registry_log_close(&member->log);
    ps_registry_destroy(&member->state);
}

void cluster_member_crash(cluster_t *self, uint32_t at, bool power)
{
    cluster_member_t *member = &self->members[at];

    if (member->quorum == NULL) {
        return;
    }
    cluster_trace(self, "member %u crashes%s", at, power ? ", and loses what is not flushed" : "");
    self->registries[at].waits = false;
    cluster_lead_release(self, &self->registries[at]);
    cluster_stop_leading(self, at);
    stop(member);
    member->life = 0;
    if (power || sim_disk_crashed(member->disk)) {
        sim_disk_restart(member->disk);
    }
    sim_disk_plan(member->disk, 0, 0, SIM_DISK_SOUND);
}

void cluster_members_start(cluster_t *self)
{
    ps_quorum_members_t members = {.n = self->plan.n_members};

    for (uint32_t i = 0; i < members.n; i++) {
        members.at[i] = (ps_quorum_member_t){.id = member_id(i), .role = PS_QUORUM_VOTER};
        cluster_name(i, members.at[i].node);
    }
    for (uint32_t i = 0; i < members.n; i++) {
        make(self, i, &members);
        if (self->nodes[i].alive) {
            cluster_member_start(self, i);
        }
    }
}

void cluster_members_done(cluster_t *self)
{
    for (uint32_t i = 0; i < CLUSTER_NODES_MAX; i++) {
        stop(&self->members[i]);
        sim_disk_destroy(&self->members[i].disk);
    }
    for (size_t i = 0; i < self->story.n; i++) {
        ps_buffer_done(&self->story.entries[i].bytes);
    }
    ps_free(self->story.entries);
    self->story.entries = NULL;
}
