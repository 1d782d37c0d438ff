/* SPDX-License-Identifier: Apache-2.0 */
/* A registry without its other members, and one out of nothing. */
#include "server/quorum/force.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/quorum/quorum_steps.h"
#include "server/quorum/replica.h"
#include "storage/registry/registry_backup.h"
#include "storage/registry/registry_offline.h"
#include "transport/threads/clock.h"

typedef struct forced {
    ps_registry_db_t *db; /* owned, as all below */
    ps_registry_t *registry;
    ps_registry_log_t *log;
    ps_buffer_t log_dir;
} forced_t;

static void forced_done(forced_t *self)
{
    ps_registry_log_close(&self->log);
    ps_registry_destroy(&self->registry);
    ps_registry_db_close(&self->db);
    ps_buffer_done(&self->log_dir);
}

static psd_status_t open_db(forced_t *self, const char *dir, psd_error_t *err)
{
    const ps_registry_args_t args = {/* limits are not for what is loaded */
                                     .default_partitions = 1, .lost_after_ms = 1,
                                     .join_within_ms = 1,     .tables_max = 1,
                                     .jobs_max = 1,           .nodes_max = 1};
    psd_status_t rc = PSD_OK;

    if (!ps_buffer_print(&self->log_dir, "%s/" PS_REGISTRY_LOG, dir)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a path");
    }
    rc = ps_registry_db_open(dir, &self->db, err);
    if (rc == PSD_OK) {
        rc = ps_registry_new(&args, &self->registry, err);
    }
    return rc == PSD_OK ? ps_registry_db_load(self->db, self->registry, ps_now_ms(), err) : rc;
}

/* ---- the log ---- */

static psd_status_t put(void *context, const ps_registry_t *registry, const ps_command_t *command,
                        ps_applied_t at, psd_error_t *err)
{
    const forced_t *self = context;

    return ps_registry_db_store(self->db, registry, command, at, err);
}

/* Who votes does not matter any more. */
static psd_status_t put_members(void *context, const ps_quorum_members_t *members, ps_applied_t at,
                                psd_error_t *err)
{
    const forced_t *self = context;

    (void)members;
    return ps_registry_db_store_members(self->db, NULL, 0, at, err);
}

static ps_shelf_t shelf_of(forced_t *self)
{
    return (ps_shelf_t){.context = self, .put = put, .put_members = put_members};
}

/* One that is not applied yet. */
static psd_status_t apply(void *context, const ps_registry_entry_t *row, psd_error_t *err)
{
    forced_t *self = context;
    const ps_shelf_t shelf = shelf_of(self);
    psd_status_t rc = ps_shelf_apply(self->registry, &shelf, row, ps_now_ms(), err);

    return rc == PSD_OK
               ? PSD_OK
               : psd_error_wrap(err, rc, "entry %" PRIu64 " of the registry's log", row->index);
}

static psd_status_t apply_all(forced_t *self, psd_error_t *err)
{
    ps_registry_log_args_t args = {
        .disk = ps_disk_real(), .dir = (const char *)self->log_dir.data, .segment_bytes = 1};
    uint64_t next = ps_registry_db_applied(self->db).index + 1;
    psd_status_t rc = PSD_OK;

    (void)ps_registry_cluster(self->registry, &args.cluster);
    rc = ps_registry_log_open(&args, &self->log, err);
    if (rc != PSD_OK || self->log == NULL) {
        return rc; /* it became a member, and its log was not made */
    }
    if (ps_registry_log_first(self->log) > next) {
        return psd_error_set(err, PSD_DAMAGED,
                             "the registry's log begins at entry %" PRIu64
                             ", its database ends at %" PRIu64,
                             ps_registry_log_first(self->log), next - 1);
    }
    if (ps_registry_log_last(self->log) >= next) {
        rc = ps_registry_log_read(self->log, next, apply, self, err);
    }
    ps_registry_log_close(&self->log);
    return rc;
}

/* It stays for whoever wants to look into it. */
static psd_status_t move_log(const forced_t *self, const char *dir, uint64_t unix_ms,
                             psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t to = {0};
    ps_disk_t *disk = ps_disk_real();
    psd_status_t rc = PSD_OK;

    if (!ps_replica_has_log(dir)) {
        return PSD_OK;
    }
    if (!ps_buffer_print(&to, "%s/" PS_REGISTRY_LOG "-%" PRIu64, dir, unix_ms)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a path");
    }
    rc = disk->rename(disk, (const char *)self->log_dir.data, (const char *)to.data, err);
    return rc == PSD_OK ? disk->flush_dir(disk, dir, err) : rc;
}

/* ---- forced ---- */

/* The nodes of the others that vote. */
static size_t find_others(const forced_t *self, const ps_registry_member_t *members, size_t n,
                          uint64_t own, ps_seat_t ret_seats[PS_SEATS_MAX])
{
    size_t n_seats = 0;

    for (size_t i = 0; i < n && n_seats < PS_SEATS_MAX; i++) {
        const ps_node_t *node = ps_registry_node(self->registry, members[i].node);

        if (members[i].id != own && members[i].role == PS_ROLE_VOTER && node != NULL) {
            memcpy(ret_seats[n_seats].node, node->name, sizeof ret_seats[0].node);
            memcpy(ret_seats[n_seats++].endpoint, node->control, sizeof ret_seats[0].endpoint);
        }
    }
    return n_seats;
}

/* Which of the members this one is, and who the members are by its log. 0: it has no log. */
static psd_status_t find_own(const forced_t *self, uint64_t *ret_own,
                             ps_registry_member_t members[PS_REGISTRY_MEMBERS_MAX], size_t *n,
                             psd_error_t *err)
{
    PSD_AUTO(ps_registry_log_close) ps_registry_log_t *log = NULL;
    ps_registry_log_args_t args = {
        .disk = ps_disk_real(), .dir = (const char *)self->log_dir.data, .segment_bytes = 1};
    psd_status_t rc = PSD_OK;

    (void)ps_registry_cluster(self->registry, &args.cluster);
    rc = ps_registry_log_open(&args, &log, err);
    *ret_own = rc == PSD_OK && log != NULL ? ps_registry_log_member(log) : 0;
    return rc == PSD_OK ? ps_registry_newest_members(self->db, log, members, n, err) : rc;
}

static psd_status_t force_members(forced_t *self, ps_force_ask_t *ask, void *context,
                                  psd_error_t *err)
{
    ps_registry_member_t members[PS_REGISTRY_MEMBERS_MAX];
    ps_seat_t others[PS_SEATS_MAX];
    size_t n = 0;
    uint64_t own = 0;
    psd_status_t rc = find_own(self, &own, members, &n, err);

    if (rc == PSD_OK) {
        rc = ask(context, others, find_others(self, members, n, own, others), err);
    }
    return rc == PSD_OK ? apply_all(self, err) : rc;
}

psd_status_t ps_force(const char *dir, uint64_t unix_ms, ps_force_ask_t *ask, void *context,
                      psd_error_t *err)
{
    PSD_AUTO(forced_done) forced_t self = {.db = NULL};
    ps_registry_member_t members[PS_REGISTRY_MEMBERS_MAX];
    size_t n = 0;
    psd_status_t rc = open_db(&self, dir, err);

    if (rc == PSD_OK && ps_registry_cluster(self.registry, NULL) == NULL) {
        rc =
            psd_error_set(err, PSD_INVALID, "data directory %s has no registry to go on from", dir);
    }
    if (rc == PSD_OK) {
        rc = ps_registry_db_members(self.db, members, &n, err);
    }
    if (rc == PSD_OK && n > 0) {
        rc = force_members(&self, ask, context, err);
    }
    /* Without members its log is left of a force that a crash ended. */
    if (rc == PSD_OK && (n > 0 || !ps_replica_has_log(dir))) {
        rc =
            ps_registry_db_advance(self.db, unix_ms, "registry_forced",
                                   "the registry was forced to go on from what this node has", err);
    }
    if (rc == PSD_OK) { /* what is only in the log would go with it */
        rc = ps_registry_db_flush(self.db, err);
    }
    if (rc == PSD_OK) {
        rc = move_log(&self, dir, unix_ms, err);
    }
    if (rc == PSD_OK) {
        ps_log(PS_LOG_WARN, "registry_forced", "index=%" PRIu64 " tables=%zu members=%zu",
               ps_registry_db_applied(self.db).index, ps_registry_n_tables(self.registry), n);
    }
    return rc;
}

/* ---- rebuilt ---- */

psd_status_t ps_rebuild(const char *dir, uint64_t unix_ms, const ps_rebuild_t *numbers,
                        psd_error_t *err)
{
    PSD_AUTO(forced_done) forced_t self = {.db = NULL};
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    psd_status_t rc = open_db(&self, dir, err);

    if (rc == PSD_OK && ps_registry_cluster(self.registry, NULL) != NULL) {
        rc = psd_error_set(err, PSD_INVALID, "data directory %s has a registry", dir);
    }
    if (rc == PSD_OK) {
        rc = move_log(&self, dir, unix_ms, err);
    }
    if (rc == PSD_OK) {
        rc = ps_registry_plan_cluster(self.registry, numbers->name, &numbers->cluster, unix_ms,
                                      &command, err);
    }
    if (rc == PSD_OK) {
        rc = ps_random(&command.cluster.lineage, sizeof command.cluster.lineage, err);
    }
    if (rc == PSD_OK) {
        command.cluster.sessions = numbers->session;
        command.cluster.last_table = numbers->last_table;
        command.cluster.last_job = numbers->last_job;
        (void)snprintf(command.text, sizeof command.text, "the registry of cluster %s was rebuilt",
                       numbers->name);
        const ps_shelf_t shelf = shelf_of(&self);

        rc = ps_shelf_store(self.registry, &shelf, &command, ps_registry_db_next(self.db),
                            ps_now_ms(), err);
    }
    if (rc == PSD_OK) {
        rc = ps_registry_db_flush(self.db, err);
    }
    if (rc == PSD_OK) {
        ps_log(PS_LOG_WARN, "registry_rebuilt", "cluster=%s hint=\"%s\"", numbers->name,
               "start the other nodes, then: pscli cluster rebuild --from-nodes --dry-run");
    }
    return rc;
}
