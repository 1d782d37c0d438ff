/* SPDX-License-Identifier: Apache-2.0 */
/* A node that was a member of the registry, and is none any more. Nobody may have told
 * it: it was removed while it was silent, or the leader stopped speaking to it. So a
 * member that hears no leader looks for the registry as other nodes do, and learns from
 * its answers who the members are. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/quorum/replica_list.h"
#include "server/server_inner.h"
#include "storage/disk/data_dir.h"

#define ASIDE "registry.removed"
#define LONELY_MS 2000 /* without a leader, before it looks for the registry */
#define LEAVE_MS 5000  /* that the registry says it is no member */
#define MOVE_MS 1000   /* between two addresses */

/* What a member has, in the order in which it goes aside: a log without its database
 * could not be started. */
static const char *const FILES[] = {"registry-log", "registry.db", "registry.db-wal",
                                    "registry.db-shm", "registry.commits"};

/* ---- its files ---- */

static psd_status_t move_aside(const char *dir, const char *name, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t from = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t to = {0};

    if (!ps_buffer_print(&from, "%s/%s", dir, name) ||
        !ps_buffer_print(&to, "%s/" ASIDE "/%s", dir, name)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a path");
    }
    return rename((const char *)from.data, (const char *)to.data) == 0 || errno == ENOENT
               ? PSD_OK
               : psd_error_set(err, PSD_IO, "cannot move %s to " ASIDE ": %s",
                               (const char *)from.data, strerror(errno));
}

/* A directory for them that is not there yet: what an earlier removal left gets a
 * number. */
static psd_status_t make_aside(const char *dir, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    int rc = 0;

    if (!ps_buffer_print(&path, "%s/" ASIDE, dir)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a path");
    }
    for (unsigned i = 1; (rc = mkdir((const char *)path.data, 0700)) != 0 && errno == EEXIST; i++) {
        PSD_AUTO(ps_buffer_done) ps_buffer_t old = {0};

        if (!ps_buffer_print(&old, "%s/" ASIDE ".%u", dir, i)) {
            return psd_error_set(err, PSD_NOMEM, "no memory for a path");
        }
        if (access((const char *)old.data, F_OK) != 0 &&
            rename((const char *)path.data, (const char *)old.data) != 0) {
            break;
        }
    }
    return rc == 0 ? PSD_OK
                   : psd_error_set(err, PSD_IO, "cannot make %s: %s", (const char *)path.data,
                                   strerror(errno));
}

static psd_status_t move_all(const char *dir, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < sizeof FILES / sizeof FILES[0]; i++) {
        rc = move_aside(dir, FILES[i], err);
    }
    return rc == PSD_OK ? ps_disk_real()->flush_dir(ps_disk_real(), dir, err) : rc;
}

static bool has(const char *dir, const char *name)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};

    return ps_buffer_print(&path, "%s/%s", dir, name) && access((const char *)path.data, F_OK) == 0;
}

bool ps_server_has_left(const ps_server_t *self)
{
    return has(self->dir, ASIDE) && !ps_replica_has_log(self->dir) && !ps_server_has_registry(self);
}

/* The log is aside, and not all that belongs to it: a crash came in between. A database that is
 * here while that one is aside is a newer one. */
static bool is_half_gone(const char *dir)
{
    bool rest =
        has(dir, "registry.db-wal") || has(dir, "registry.db-shm") || has(dir, "registry.commits");

    return has(dir, ASIDE "/registry-log") && !ps_replica_has_log(dir) &&
           (has(dir, "registry.db") ? !has(dir, ASIDE "/registry.db") : rest);
}

psd_status_t ps_server_end_leave(ps_server_t *self, psd_error_t *err)
{
    return is_half_gone(self->dir) ? move_all(self->dir, err) : PSD_OK;
}

/* ---- leaving ---- */

static bool is_seated(const ps_server_t *self, const ps_seat_t *seats, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(seats[i].node, self->node) == 0) {
            return true;
        }
    }
    return false;
}

/* From here on it is a node as others are. Its part of the registry stays beside. */
static psd_status_t leave(ps_server_t *self, const ps_seat_t *seats, size_t n, psd_error_t *err)
{
    const ps_registry_t *registry = ps_replica_registry(self->replica);
    ps_joined_t joined = {.cluster = self->cluster};
    ps_id_t uuid;
    psd_status_t rc = PSD_OK;

    (void)snprintf(joined.cluster_name, sizeof joined.cluster_name, "%s",
                   ps_registry_cluster(registry, &uuid));
    joined.members.n = n < PS_FINDER_MAX ? n : PS_FINDER_MAX;
    for (size_t i = 0; i < joined.members.n; i++) {
        memcpy(joined.members.items[i].node, seats[i].node, sizeof seats[i].node);
        memcpy(joined.members.items[i].endpoint, seats[i].endpoint, sizeof seats[i].endpoint);
    }
    rc = ps_server_write_membership(self, &joined, ps_member_secret(self->member), err);
    if (rc == PSD_OK) {
        rc = make_aside(self->dir, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ps_replica_close(&self->replica); /* it had the directory's lock */
    rc = ps_data_dir_lock(self->dir, &self->lock, err);
    if (rc == PSD_OK) {
        rc = move_all(self->dir, err);
    }
    ps_log(PS_LOG_WARN, "registry_left",
           "node=%s hint=\"it was removed as a member; its files are in " ASIDE "\"", self->node);
    return rc;
}

/* Looks for the registry: at first at the members that it knows. */
static void search(ps_server_t *self, uint64_t now_ms)
{
    const ps_socket_args_t socket = ps_server_socket_args(self);
    ps_seat_t seats[PS_SEATS_MAX];
    char leader[PS_NAME_MAX + 1];
    size_t n = ps_replica_seats(self->replica, seats, leader);

    if (ps_member_link(self->member) != NULL) {
        ps_member_search(self->member, &socket);
    }
    if (n == 0 || now_ms < self->moved_ms + MOVE_MS || ps_member_is_announced(self->member)) {
        return;
    }
    self->moved_ms = now_ms;
    self->seat = (self->seat + 1) % n;
    if (strcmp(seats[self->seat].node, self->node) != 0 &&
        ps_member_move(self->member, seats[self->seat].endpoint, &socket, self->err) != PSD_OK) {
        psd_error_clear(self->err); /* the next one, then */
    }
}

/* One that stands by has no timer that would make it forget a silent leader. */
static bool hears_leader(const ps_server_t *self)
{
    ps_member_sight_t members[PS_QUORUM_MEMBERS_MAX];
    ps_quorum_view_t view;
    uint32_t n = ps_replica_look(self->replica, &view, members);

    for (uint32_t i = 0; i < n; i++) {
        if (members[i].leads && members[i].is_up) {
            return true;
        }
    }
    return false;
}

static bool is_lonely(ps_server_t *self, uint64_t now_ms)
{

    if (self->replica == NULL || self->control != NULL || !ps_replica_has_members(self->replica)) {
        self->lonely_ms = 0;
        return false;
    }
    if (hears_leader(self)) {
        self->lonely_ms = 0;
        return false;
    }
    if (self->lonely_ms == 0) {
        self->lonely_ms = now_ms;
    }
    return now_ms >= self->lonely_ms + LONELY_MS;
}

/* The registry that it found is of another history, forced or rebuilt: this part of the
 * former one is of no use to it. */
static bool is_of_the_past(const ps_server_t *self)
{
    const ps_id_t *heard = ps_member_lineage(self->member);

    return ps_member_is_announced(self->member) && !ps_id_is_zero(heard) &&
           !ps_id_equal(heard, ps_registry_lineage(ps_replica_registry(self->replica)));
}

void ps_server_check_seat(ps_server_t *self)
{
    const ps_seat_t *seats = NULL;
    uint64_t now_ms = ps_now_ms();
    size_t n = 0;

    if (self->failed != PSD_OK || !is_lonely(self, now_ms)) {
        self->unseated_ms = 0;
        return;
    }
    search(self, now_ms);
    n = ps_member_seats(self->member, &seats);
    if (is_of_the_past(self)) {
        self->failed = leave(self, seats, n, self->err);
    } else if (n == 0 || !ps_member_is_announced(self->member) || is_seated(self, seats, n)) {
        self->unseated_ms = 0;
    } else if (self->unseated_ms == 0) {
        self->unseated_ms = now_ms;
    } else if (now_ms >= self->unseated_ms + LEAVE_MS) {
        self->unseated_ms = 0;
        self->failed = leave(self, seats, n, self->err);
    }
}
