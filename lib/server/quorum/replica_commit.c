/* SPDX-License-Identifier: Apache-2.0 */
/* A command's way: alone, tried and stored; as a member, proposed and applied. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "server/quorum/replica_inner.h"
#include "protocol/placement/registry_decide.h"
#include "protocol/registry/command_code.h"
#include "storage/registry/registry_backup.h"
#include "storage/registry/registry_shelf.h"
#include "transport/threads/clock.h"

#define COMMAND_BYTES_MAX (8 << 20) /* fits a message between members */
#define GROUP_BYTES_MAX (1 << 20)   /* of several commands in one proposal */
#define FLUSH_EVERY 512             /* entries between two flushes of the database */
#define SAID_SIZE 2048              /* of a line that waits for the group */

static psd_status_t put_command(void *context, const ps_registry_t *registry,
                                const ps_command_t *command, ps_applied_t at, psd_error_t *err)
{
    ps_replica_t *self = context;
    psd_status_t rc = ps_registry_db_store(self->db, registry, command, at, err);

    if (rc == PSD_OK && self->thread != NULL &&
        (command->kind == PS_COMMAND_NODE || command->kind == PS_COMMAND_NODE_STATE)) {
        ps_replica_meet(self, &self->view.members); /* their ports and secrets */
    }
    return rc;
}

static psd_status_t put_members(void *context, const ps_quorum_members_t *members, ps_applied_t at,
                                psd_error_t *err)
{
    ps_replica_t *self = context;
    psd_status_t rc = PSD_OK;

    if (members == NULL) {
        return ps_registry_db_store_members(self->db, NULL, 0, at, err);
    }
    rc = ps_shelf_put_members(self->db, members, at.index, at, err);
    if (rc == PSD_OK) {
        ps_replica_meet(self, members);
        ps_log(PS_LOG_INFO, "registry_members", "voters=%" PRIu32 " standbys=%" PRIu32,
               ps_quorum_members_voters(members), members->n - ps_quorum_members_voters(members));
    }
    return rc;
}

static ps_shelf_t shelf_of(ps_replica_t *self)
{
    return (ps_shelf_t){.context = self, .put = put_command, .put_members = put_members};
}

static ps_replica_line_t line_of(const ps_command_t *command, ps_log_level_t level)
{
    ps_replica_line_t line = {.level = level, .kind = command->kind, .epoch = command->epoch};

    memcpy(line.text, command->text, sizeof line.text);
    return line;
}

static void log_line(const ps_replica_line_t *line)
{
    char quoted[2 * sizeof line->text];

    ps_log(line->level, ps_command_event(line->kind), "epoch=%" PRIu64 " text=%s", line->epoch,
           ps_log_quote(line->text, quoted, sizeof quoted));
}

static void entry_done(ps_quorum_entry_t *entry)
{
    ps_buffer_done(&entry->bytes);
}

/* The log keeps what is not flushed here yet: a flush now and then is enough. */
static psd_status_t note_applied(ps_replica_t *self, uint64_t index, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (index >= self->flushed + FLUSH_EVERY) {
        rc = ps_registry_db_flush(self->db, err);
        self->flushed = rc == PSD_OK ? index : self->flushed;
    }
    ps_quorum_thread_applied(self->thread, index, self->flushed);
    return rc;
}

static psd_status_t apply_one(ps_replica_t *self, uint64_t index, const ps_quorum_entry_t *entry,
                              psd_error_t *err)
{
    const ps_shelf_t shelf = shelf_of(self);
    const ps_registry_entry_t row = {
        .index = index,
        .term = entry->term,
        .kind = (ps_registry_entry_kind_t)entry->kind,
        .bytes = {.data = entry->bytes.data, .size = entry->bytes.size}};

    return ps_shelf_apply(self->registry, &shelf, &row, ps_now_ms(), err);
}

/* All that is committed. */
static psd_status_t apply_all(ps_replica_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;
    uint64_t index = 0;

    while (rc == PSD_OK) {
        PSD_AUTO(entry_done) ps_quorum_entry_t entry = {0};

        if (!ps_quorum_thread_next(self->thread, &index, &entry)) {
            break;
        }
        rc = apply_one(self, index, &entry, err);
        if (rc == PSD_OK) {
            rc = note_applied(self, index, err);
        } else if (rc == PSD_VERSION) { /* nothing of it is applied */
            rc = psd_error_wrap(err, PSD_FOREIGN,
                                "entry %" PRIu64 " of the registry's log is of another build than "
                                "psd " PSD_RELEASE "; run one build on all nodes that have the "
                                "registry",
                                index);
        } else {
            rc = psd_error_wrap(err, rc, "entry %" PRIu64 " of the registry's log", index);
        }
    }
    return rc;
}

/* The database cannot take what is committed, for now: another member is to lead,
 * and it is tried again. */
static void be_late(ps_replica_t *self, psd_status_t rc, psd_error_t *err)
{
    char quoted[512];

    if (!self->is_late) {
        ps_log(PS_LOG_ERROR, "registry_not_stored", "status=%s reason=%s hint=\"retrying\"",
               psd_status_name(rc), ps_log_quote(psd_error_text(err), quoted, sizeof quoted));
    }
    self->is_late = true;
    self->led_term = 0; /* nothing is planned on a state that lacks what is committed */
    psd_error_clear(err);
    /* Where there is no other, it leads on, and answers nobody. */
    (void)!ps_quorum_thread_transfer(self->thread, 0, NULL);
}

static bool passes(psd_status_t rc)
{
    return rc == PSD_IO || rc == PSD_LIMIT || rc == PSD_NOMEM;
}

static psd_status_t catch_up(ps_replica_t *self, psd_error_t *err)
{
    psd_status_t rc = apply_all(self, err);

    if (passes(rc) && !ps_registry_db_is_broken(self->db)) {
        be_late(self, rc, err);
        return PSD_OK;
    }
    if (rc == PSD_OK && self->is_late) {
        self->is_late = false;
        ps_log(PS_LOG_INFO, "registry_stored", "index=%" PRIu64,
               ps_registry_db_applied(self->db).index);
    }
    return rc;
}

/* ---- one command ---- */

static psd_status_t encode(const ps_command_t *command, ps_buffer_t *bytes, psd_error_t *err)
{
    if (!ps_command_encode(command, bytes)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a command");
    }
    return bytes->size <= COMMAND_BYTES_MAX
               ? PSD_OK
               : psd_error_set(err, PSD_LIMIT, "a change of %zu bytes; allowed: %d", bytes->size,
                               COMMAND_BYTES_MAX);
}

static psd_status_t refuse_late(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOT_LEADER, "this node's part of the registry has no room");
}

/* Proposes it, and applies it like those of other leaders. */
static psd_status_t propose(ps_replica_t *self, const ps_command_t *command, ps_bytes_t bytes,
                            ps_log_level_t level, psd_error_t *err)
{
    const ps_replica_line_t line = line_of(command, level);
    uint64_t index = 0;
    psd_status_t rc = ps_registry_try(self->registry, command, ps_now_ms(), err);

    if (rc != PSD_OK) {
        return rc;
    }
    ps_registry_undo(self->registry); /* it fits */
    rc = ps_quorum_thread_propose(self->thread, self->led_term, &bytes, 1, self->commit_ms, &index,
                                  err);
    if (rc == PSD_DEADLINE) {
        self->led_term = 0;
        rc = psd_error_wrap(err, PSD_NOT_LEADER, "%s", "ask again");
    }
    if (rc == PSD_OK) {
        rc = catch_up(self, err);
    }
    if (rc == PSD_OK && self->is_late) {
        return refuse_late(err);
    }
    if (rc == PSD_OK) {
        log_line(&line);
    }
    return rc;
}

/* ---- a group of commands ---- */

static void end_group(ps_replica_t *self)
{
    self->group.n = 0;
    self->group.bytes.size = 0;
    self->group.n_said = 0;
    self->group.said_text.size = 0;
}

/* Keeps a line until the group is agreed on. false: no memory. */
static bool say_later(ps_replica_group_t *group, ps_log_level_t level, const char *event,
                      const char *text)
{
    const ps_replica_said_t said = {.level = level, .event = event, .text = group->said_text.size};

    if (!ps_grow(&group->said, &group->said_capacity, group->n_said + 1, sizeof *group->said) ||
        !ps_buffer_append(&group->said_text, text, strlen(text) + 1)) {
        return false;
    }
    group->said[group->n_said++] = said;
    return true;
}

void ps_replica_log(ps_replica_t *self, ps_log_level_t level, const char *event, const char *format,
                    ...)
{
    char text[SAID_SIZE];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (self->is_ahead) {
        return; /* of what is thrown away */
    }
    if (self->group.n == 0 || !say_later(&self->group, level, event, text)) {
        ps_log(level, event, "%s", text);
    }
}

static void log_group(const ps_replica_group_t *group)
{
    for (size_t i = 0; i < group->n; i++) {
        log_line(&group->lines[i]);
    }
    for (size_t i = 0; i < group->n_said; i++) {
        const ps_replica_said_t *said = &group->said[i];

        ps_log(said->level, said->event, "%s", (const char *)group->said_text.data + said->text);
    }
}

/* What became of the group is unknown, or it never will be: it is not in the database, and
 * the registry in memory is thrown away. */
static psd_status_t lose_group(ps_replica_t *self, psd_error_t *err)
{
    ps_registry_db_group_drop(self->db);
    end_group(self);
    self->is_ahead = true;
    self->led_term = 0;
    return psd_error_wrap(err, PSD_NOT_LEADER, "%s", "ask again");
}

/* The majority has it: the database takes it, too. One that cannot lets another member lead;
 * what it lacks is in the log. */
static psd_status_t keep_group(ps_replica_t *self, psd_error_t *err)
{
    const uint64_t last = self->group.first + self->group.n - 1;
    psd_status_t rc = ps_registry_db_group_keep(self->db, err);

    if (rc != PSD_OK) {
        be_late(self, rc, err);
        (void)psd_error_set(err, PSD_NOT_LEADER, "this node's part of the registry has no room");
        return lose_group(self, err);
    }
    log_group(&self->group);
    end_group(self);
    return note_applied(self, last, err);
}

/* Proposes the group. Errors: PSD_NOT_LEADER nothing of it counts here. */
static psd_status_t settle_group(ps_replica_t *self, psd_error_t *err)
{
    ps_replica_group_t *group = &self->group;
    ps_bytes_t commands[PS_QUORUM_COMMANDS_MAX];
    uint64_t first = 0;
    size_t from = 0;
    psd_status_t rc = PSD_OK;

    if (group->n == 0) {
        return self->is_ahead ? psd_error_set(err, PSD_NOT_LEADER, "ask again") : PSD_OK;
    }
    for (size_t i = 0; i < group->n; i++) {
        commands[i] = (ps_bytes_t){.data = group->bytes.data + from, .size = group->ends[i] - from};
        from = group->ends[i];
    }
    rc = ps_quorum_thread_propose(self->thread, self->led_term, commands, group->n, self->commit_ms,
                                  &first, err);
    if (rc == PSD_OK && first != group->first) { /* a change of members came between */
        rc = psd_error_set(err, PSD_NOT_LEADER, "entry %" PRIu64 " is not where it was to be",
                           first);
    }
    return rc == PSD_OK ? keep_group(self, err) : lose_group(self, err);
}

/* Begins a group, where all that the log has is applied. false: it cannot now. */
static bool begin_group(ps_replica_t *self)
{
    uint64_t last = ps_quorum_thread_last(self->thread);

    if (last != ps_registry_db_applied(self->db).index ||
        ps_registry_db_group(self->db, NULL) != PSD_OK) {
        return false;
    }
    self->group.first = last + 1;
    return true;
}

static psd_status_t add_to_group(ps_replica_t *self, const ps_command_t *command, ps_bytes_t bytes,
                                 ps_log_level_t level, psd_error_t *err)
{
    ps_replica_group_t *group = &self->group;
    const ps_shelf_t shelf = shelf_of(self);
    const ps_applied_t at = {.index = group->first + group->n, .term = self->led_term};
    psd_status_t rc = PSD_OK;

    if (!ps_buffer_append(&group->bytes, bytes.data, bytes.size)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a command");
    }
    rc = ps_shelf_store(self->registry, &shelf, command, at, ps_now_ms(), err);
    if (rc == PSD_OK) {
        group->lines[group->n] = line_of(command, level);
        group->ends[group->n++] = group->bytes.size;
        return PSD_OK;
    }
    group->bytes.size -= bytes.size;
    if (group->n > 0 && !ps_registry_db_is_group(self->db)) {
        return lose_group(self, err); /* the database has taken all of it back */
    }
    return rc;
}

/* Applies the command here, and proposes it later with others. */
static psd_status_t join_group(ps_replica_t *self, const ps_command_t *command,
                               ps_log_level_t level, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    ps_replica_group_t *group = &self->group;
    psd_status_t rc = encode(command, &bytes, err);
    const ps_bytes_t view = {.data = bytes.data, .size = bytes.size};

    if (rc == PSD_OK && (self->is_late || self->is_ahead)) {
        rc = refuse_late(err);
    }
    if (rc == PSD_OK && group->n > 0 &&
        (group->n == PS_QUORUM_COMMANDS_MAX || group->bytes.size + bytes.size > GROUP_BYTES_MAX)) {
        rc = settle_group(self, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (group->n == 0 && !begin_group(self)) {
        return propose(self, command, view, level, err);
    }
    rc = add_to_group(self, command, view, level, err);
    if (rc != PSD_OK && group->n == 0 && !self->is_ahead) {
        bool fits = !ps_registry_db_is_group(self->db);

        ps_registry_db_group_drop(self->db);
        /* Where the database has no room, the others have. */
        return fits && passes(rc) ? propose(self, command, view, level, err) : rc;
    }
    return rc;
}

psd_status_t ps_replica_commit(ps_replica_t *self, const ps_command_t *command,
                               ps_log_level_t level, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (command->kind == 0) {
        return PSD_OK;
    }
    if (self->thread != NULL) {
        return join_group(self, command, level, err);
    }
    if (self->is_begun) {
        rc = psd_error_set(err, PSD_IO, "the registry's log is not made yet");
    } else {
        const ps_shelf_t shelf = shelf_of(self);

        rc = ps_shelf_store(self->registry, &shelf, command, ps_registry_db_next(self->db),
                            ps_now_ms(), err);
    }
    if (rc == PSD_OK) {
        const ps_replica_line_t line = line_of(command, level);

        log_line(&line);
    }
    return rc;
}

bool ps_replica_is_flushed(const ps_replica_t *self)
{
    return self->thread != NULL ? self->group.n == 0 && !self->is_ahead
                                : !ps_registry_db_is_unflushed(self->db);
}

bool ps_replica_is_ahead(const ps_replica_t *self)
{
    return self->is_ahead;
}

psd_status_t ps_replica_flush(ps_replica_t *self, psd_error_t *err)
{
    return self->thread != NULL ? settle_group(self, err) : ps_registry_db_flush(self->db, err);
}

/* ---- news of the thread ---- */

static psd_status_t send_database(ps_replica_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    ps_quorum_snapshot_t snapshot = {0};
    psd_status_t rc = ps_replica_snapshot(self->db, &snapshot, err);

    if (rc == PSD_OK) {
        rc = ps_registry_backup(self->db, &bytes, err);
    }
    if (rc == PSD_OK) {
        ps_quorum_thread_send_database(self->thread, &bytes, &snapshot);
    }
    return rc;
}

/* The registry becomes what the database has. */
static psd_status_t load(ps_replica_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = NULL;
    psd_status_t rc = ps_registry_new(&self->args, &registry, err);

    if (rc == PSD_OK) {
        rc = ps_registry_db_load(self->db, registry, ps_now_ms(), err);
    }
    if (rc == PSD_OK) {
        ps_registry_destroy(&self->registry);
        self->registry = registry; /* ownership moves */
        registry = NULL;
        self->is_ahead = false;
    }
    return rc;
}

static psd_status_t install(ps_replica_t *self, psd_error_t *err)
{
    const ps_quorum_snapshot_t *snapshot = NULL;
    ps_bytes_t bytes = ps_quorum_thread_installing(self->thread, &snapshot);
    psd_status_t rc = ps_registry_db_replace(self->db, bytes, err);

    if (rc == PSD_OK) {
        rc = load(self, err);
    }
    if (rc != PSD_OK) {
        return psd_error_wrap(err, rc, "the registry's database as of entry %" PRIu64,
                              snapshot->index);
    }
    ps_replica_meet(self, &snapshot->members);
    self->flushed = snapshot->index;
    ps_quorum_thread_applied(self->thread, snapshot->index, snapshot->index);
    ps_quorum_thread_installed(self->thread);
    return PSD_OK;
}

psd_status_t ps_replica_take(ps_replica_t *self, ps_quorum_view_t *ret_view, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    ps_quorum_thread_hush(self->thread);
    ps_quorum_thread_look(self->thread, ret_view);
    self->view = *ret_view;
    if (ret_view->status != PSD_OK && ret_view->status != PSD_LIMIT) {
        return psd_error_set(err, ret_view->status, "%s", ret_view->text);
    }
    if (self->group.n > 0 && settle_group(self, err) != PSD_OK) {
        psd_error_clear(err); /* it is loaded again */
    }
    if (self->is_ahead) {
        rc = load(self, err);
        if (passes(rc) && !ps_registry_db_is_broken(self->db)) {
            be_late(self, rc, err); /* tried again at the next look */
            ret_view->state = PS_QUORUM_FOLLOWER;
            return PSD_OK;
        }
        if (rc == PSD_OK) {
            ps_replica_meet(self, &self->view.members);
        }
    }
    if (rc == PSD_OK && ret_view->installs) {
        rc = install(self, err);
    }
    if (rc == PSD_OK) {
        rc = catch_up(self, err);
    }
    if (self->is_late) {
        ret_view->state = PS_QUORUM_FOLLOWER;
        return rc;
    }
    if (rc == PSD_OK && ret_view->wants_database) {
        rc = send_database(self, err);
    }
    return rc;
}
