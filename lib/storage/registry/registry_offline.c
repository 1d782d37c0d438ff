/* SPDX-License-Identifier: Apache-2.0 */
/* A member of the registry, while no psd runs. */
#include "storage/registry/registry_offline.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "protocol/quorum/quorum_message.h"
#include "storage/disk/disk.h"
#include "storage/registry/registry_backup.h"
#include "storage/registry/registry_log.h"
#include "storage/registry/registry_shelf.h"

#define LOG_DIR "registry-log"
#define COPY_BYTES 65536
#define NAMES_SIZE 300

/* ---- paths and copies ---- */

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory to look at the registry");
}

static bool has(const char *dir, const char *name)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};

    return ps_buffer_print(&path, "%s/%s", dir, name) && access((const char *)path.data, F_OK) == 0;
}

static psd_status_t check_there(const char *dir, psd_error_t *err)
{
    return has(dir, "registry.db") ? PSD_OK
                                   : psd_error_set(err, PSD_INVALID, "%s has no registry", dir);
}

/* The bytes of one file; one that is not there is left out. */
static psd_status_t copy_file(const char *from, const char *to, psd_error_t *err)
{
    char bytes[COPY_BYTES];
    int fd = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    FILE *in = fd < 0 ? NULL : fdopen(fd, "r");
    FILE *out = in == NULL ? NULL : fopen(to, "wex");
    size_t n = 1;
    bool good = in != NULL && out != NULL;

    if (in == NULL && errno == ENOENT) {
        return PSD_OK;
    }
    while (good && n > 0) {
        n = fread(bytes, 1, sizeof bytes, in);
        good = ferror(in) == 0 && fwrite(bytes, 1, n, out) == n;
    }
    if (out != NULL) {
        good = fclose(out) == 0 && good;
    }
    if (in != NULL) {
        (void)fclose(in);
    }
    return good ? PSD_OK
                : psd_error_set(err, PSD_IO, "cannot copy %s to %s: %s", from, to, strerror(errno));
}

static psd_status_t copy_name(const char *from, const char *to, const char *name, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t source = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t target = {0};

    return ps_buffer_print(&source, "%s/%s", from, name) &&
                   ps_buffer_print(&target, "%s/%s", to, name)
               ? copy_file((const char *)source.data, (const char *)target.data, err)
               : no_memory(err);
}

/* What is to be done with each file of a directory. */
typedef psd_status_t each_t(const char *from, const char *to, const char *name, psd_error_t *err);

static psd_status_t walk(const char *from, const char *to, each_t *each, psd_error_t *err)
{
    DIR *dir = opendir(from);
    const struct dirent *entry = NULL;
    psd_status_t rc = PSD_OK;

    if (dir == NULL) {
        return psd_error_set(err, PSD_IO, "cannot read %s: %s", from, strerror(errno));
    }
    while (rc == PSD_OK && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            rc = each(from, to, entry->d_name, err);
        }
    }
    (void)closedir(dir);
    return rc;
}

static psd_status_t remove_name(const char *from, const char *to, const char *name,
                                psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};

    (void)to;
    if (ps_buffer_print(&path, "%s/%s", from, name) && unlink((const char *)path.data) != 0 &&
        errno == EISDIR) {
        (void)walk((const char *)path.data, "", remove_name, err);
        (void)rmdir((const char *)path.data);
    }
    return PSD_OK;
}

/* A copy of the registry's files in a fresh directory. */
typedef struct copy {
    ps_buffer_t dir; /* owned; empty: none */
    int lock;        /* of the original; -1: none */
} copy_t;

static void copy_done(copy_t *self)
{
    if (self->dir.size > 0) {
        (void)walk((const char *)self->dir.data, "", remove_name, NULL);
        (void)rmdir((const char *)self->dir.data);
    }
    if (self->lock >= 0) {
        (void)close(self->lock);
    }
    ps_buffer_done(&self->dir);
}

/* Keeps a psd from starting there meanwhile, without a change of the lock's file. */
static psd_status_t lock_shared(const char *dir, int *ret_lock, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};

    if (!ps_buffer_print(&path, "%s/lock", dir)) {
        return no_memory(err);
    }
    *ret_lock = open((const char *)path.data, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (*ret_lock < 0) {
        return errno == ENOENT ? PSD_OK
                               : psd_error_set(err, PSD_IO, "cannot open %s: %s",
                                               (const char *)path.data, strerror(errno));
    }
    return flock(*ret_lock, LOCK_SH | LOCK_NB) == 0
               ? PSD_OK
               : psd_error_set(err, PSD_HELD, "a psd runs in %s", dir);
}

static psd_status_t make_copy(const char *dir, copy_t *self, psd_error_t *err)
{
    static const char *const FILES[] = {"registry.db", "registry.db-wal", "registry.commits",
                                        "format"};
    PSD_AUTO(ps_buffer_done) ps_buffer_t from = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t to = {0};
    const char *temp = getenv("TMPDIR");
    psd_status_t rc = lock_shared(dir, &self->lock, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (!ps_buffer_print(&self->dir, "%s/psd-look-XXXXXX", temp == NULL ? "/tmp" : temp) ||
        !ps_buffer_print(&from, "%s/" LOG_DIR, dir)) {
        return no_memory(err);
    }
    if (mkdtemp((char *)self->dir.data) == NULL) {
        rc = psd_error_set(err, PSD_IO, "cannot make %s: %s", (const char *)self->dir.data,
                           strerror(errno));
        ps_buffer_done(&self->dir);
        return rc;
    }
    for (size_t i = 0; rc == PSD_OK && i < sizeof FILES / sizeof FILES[0]; i++) {
        rc = copy_name(dir, (const char *)self->dir.data, FILES[i], err);
    }
    if (rc == PSD_OK && !ps_buffer_print(&to, "%s/" LOG_DIR, (const char *)self->dir.data)) {
        rc = no_memory(err);
    }
    if (rc == PSD_OK && has(dir, LOG_DIR)) {
        rc = mkdir((const char *)to.data, 0700) == 0
                 ? walk((const char *)from.data, (const char *)to.data, copy_name, err)
                 : psd_error_set(err, PSD_IO, "cannot make %s: %s", (const char *)to.data,
                                 strerror(errno));
    }
    return rc;
}

/* ---- opening ---- */

typedef struct part {
    ps_registry_db_t *db;    /* owned, and all below */
    ps_registry_t *registry; /* loaded */
    ps_registry_log_t *log;  /* NULL: none */
} part_t;

static void part_done(part_t *self)
{
    ps_registry_log_close(&self->log);
    ps_registry_destroy(&self->registry);
    ps_registry_db_close(&self->db);
}

static psd_status_t open_part(const char *dir, part_t *self, psd_error_t *err)
{
    const ps_registry_args_t args = {/* limits are not for what is loaded */
                                     .default_partitions = 1, .lost_after_ms = 1,
                                     .join_within_ms = 1,     .tables_max = 1,
                                     .jobs_max = 1,           .nodes_max = 1};
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    ps_registry_log_args_t log = {.disk = ps_disk_real(), .segment_bytes = 1};
    psd_status_t rc = ps_registry_db_open(dir, &self->db, err);

    if (rc == PSD_OK) {
        rc = ps_registry_new(&args, &self->registry, err);
    }
    if (rc == PSD_OK) {
        rc = ps_registry_db_load(self->db, self->registry, 0, err);
    }
    if (rc == PSD_OK && ps_registry_cluster(self->registry, &log.cluster) == NULL) {
        rc = psd_error_set(err, PSD_INVALID, "the registry of %s has no cluster yet", dir);
    }
    if (rc == PSD_OK && !ps_buffer_print(&path, "%s/" LOG_DIR, dir)) {
        rc = no_memory(err);
    }
    log.dir = (const char *)path.data;
    return rc == PSD_OK && has(dir, LOG_DIR "/term") ? ps_registry_log_open(&log, &self->log, err)
                                                     : rc;
}

psd_status_t ps_registry_offline_look(const char *dir, ps_registry_offline_t *ret_look,
                                      psd_error_t *err)
{
    PSD_AUTO(copy_done) copy_t copy = {.lock = -1};
    PSD_AUTO(part_done) part_t part = {.db = NULL};
    ps_registry_offline_t look = {.has_log = false};
    psd_status_t rc = check_there(dir, err);

    if (rc == PSD_OK) {
        rc = make_copy(dir, &copy, err);
    }
    if (rc == PSD_OK) {
        rc = open_part((const char *)copy.dir.data, &part, err);
    }
    if (rc == PSD_OK) {
        rc = ps_registry_db_members(part.db, look.members, &look.n_members, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    (void)snprintf(look.cluster_name, sizeof look.cluster_name, "%s",
                   ps_registry_cluster(part.registry, &look.cluster));
    look.lineage = *ps_registry_lineage(part.registry);
    look.applied = ps_registry_db_applied(part.db);
    look.has_log = part.log != NULL;
    if (part.log != NULL) {
        look.member = ps_registry_log_member(part.log);
        look.term = ps_registry_log_term(part.log);
        look.vote = ps_registry_log_vote(part.log);
        look.first = ps_registry_log_first(part.log);
        look.last = ps_registry_log_last(part.log);
    }
    *ret_look = look;
    return PSD_OK;
}

/* ---- one node ---- */

/* The members by a change of them in the log; the newest is kept. */
typedef struct newest {
    ps_registry_member_t *members;
    size_t n;
} newest_t;

static psd_status_t take_change(void *context, const ps_registry_entry_t *entry, psd_error_t *err)
{
    newest_t *newest = context;
    ps_quorum_members_t members = {0};
    psd_status_t rc = PSD_OK;

    if (entry->kind != PS_REGISTRY_MEMBERS) {
        return PSD_OK;
    }
    rc = ps_quorum_members_decode(entry->bytes, &members, err);
    if (rc != PSD_OK) {
        return rc;
    }
    newest->n = members.n;
    for (uint32_t i = 0; i < members.n; i++) {
        newest->members[i] = (ps_registry_member_t){
            .id = members.at[i].id,
            .role = members.at[i].role == PS_QUORUM_VOTER ? PS_ROLE_VOTER : PS_ROLE_STANDBY,
            .index = entry->index};
        memcpy(newest->members[i].node, members.at[i].node, sizeof newest->members[i].node);
    }
    return PSD_OK;
}

psd_status_t ps_registry_newest_members(ps_registry_db_t *db, ps_registry_log_t *log,
                                        ps_registry_member_t ret_members[PS_REGISTRY_MEMBERS_MAX],
                                        size_t *ret_n, psd_error_t *err)
{
    newest_t newest = {.members = ret_members};
    psd_status_t rc = ps_registry_db_members(db, ret_members, &newest.n, err);

    if (rc == PSD_OK && log != NULL && ps_registry_log_last(log) >= ps_registry_log_first(log)) {
        rc = ps_registry_log_read(log, ps_registry_log_first(log), take_change, &newest, err);
    }
    *ret_n = newest.n;
    return rc;
}

/* The other nodes that vote; "": none. */
static psd_status_t name_voters(part_t *part, char ret_names[NAMES_SIZE], psd_error_t *err)
{
    ps_registry_member_t members[PS_REGISTRY_MEMBERS_MAX];
    uint64_t self = part->log == NULL ? 0 : ps_registry_log_member(part->log);
    size_t n = 0;
    psd_status_t rc = ps_registry_newest_members(part->db, part->log, members, &n, err);

    ret_names[0] = '\0';
    for (size_t i = 0; rc == PSD_OK && i < n; i++) {
        size_t used = strlen(ret_names);

        if (members[i].role == PS_ROLE_VOTER && members[i].id != self) {
            (void)snprintf(ret_names + used, NAMES_SIZE - used, "%s\"%s\"", used == 0 ? "" : ", ",
                           members[i].node);
        }
    }
    return rc;
}

/* An entry of the log that the database lacks. */
static psd_status_t apply(void *context, const ps_registry_entry_t *entry, psd_error_t *err)
{
    part_t *part = context;
    const ps_shelf_t shelf = ps_shelf_of(part->db);
    psd_status_t rc = ps_shelf_apply(part->registry, &shelf, entry, 0, err);

    return rc == PSD_OK ? PSD_OK
                        : psd_error_wrap(err, rc, "entry %" PRIu64 " of the log", entry->index);
}

static psd_status_t apply_rest(part_t *part, psd_error_t *err)
{
    uint64_t next = ps_registry_db_applied(part->db).index + 1;

    if (part->log == NULL || ps_registry_log_last(part->log) < next) {
        return PSD_OK;
    }
    return next >= ps_registry_log_first(part->log)
               ? ps_registry_log_read(part->log, next, apply, part, err)
               : psd_error_set(err, PSD_DAMAGED,
                               "the log begins after what the database has: at %" PRIu64,
                               ps_registry_log_first(part->log));
}

static psd_status_t forget_members(part_t *part, psd_error_t *err)
{
    const ps_registry_member_t nobody = {.id = 0};
    ps_applied_t at = ps_registry_db_applied(part->db);

    at.index++;
    return ps_registry_db_store_members(part->db, &nobody, 0, at, err);
}

static psd_status_t put_log_aside(const char *dir, uint64_t last, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t from = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t to = {0};

    if (!ps_buffer_print(&from, "%s/" LOG_DIR, dir) ||
        !ps_buffer_print(&to, "%s/" LOG_DIR ".old-%" PRIu64, dir, last)) {
        return no_memory(err);
    }
    if (rename((const char *)from.data, (const char *)to.data) != 0) {
        return psd_error_set(err, PSD_IO, "cannot rename %s to %s: %s", (const char *)from.data,
                             (const char *)to.data, strerror(errno));
    }
    return ps_disk_real()->flush_dir(ps_disk_real(), dir, err);
}

psd_status_t ps_registry_offline_single(const char *dir, bool drops_voters, uint64_t unix_ms,
                                        psd_error_t *err)
{
    PSD_AUTO(part_done) part_t part = {.db = NULL};
    char names[NAMES_SIZE];
    uint64_t last = 0;
    psd_status_t rc = check_there(dir, err);

    if (rc == PSD_OK) {
        rc = open_part(dir, &part, err);
    }
    if (rc == PSD_OK) {
        rc = name_voters(&part, names, err);
    }
    if (rc != PSD_OK || part.log == NULL) {
        return rc;
    }
    if (names[0] != '\0' && !drops_voters) {
        return psd_error_set(err, PSD_DENIED,
                             "other nodes vote in this registry: %s; remove them first (pscli "
                             "cluster registry remove), or add --yes when they are lost for good",
                             names);
    }
    rc = apply_rest(&part, err);
    if (rc == PSD_OK) {
        rc = names[0] == '\0' ? forget_members(&part, err)
                              : ps_registry_db_advance(part.db, unix_ms, "registry_single",
                                                       "the registry goes on without its other "
                                                       "voters",
                                                       err);
    }
    if (rc == PSD_OK) { /* what is only in the log would go with it */
        rc = ps_registry_db_flush(part.db, err);
    }
    last = ps_registry_log_last(part.log);
    ps_registry_log_close(&part.log);
    return rc == PSD_OK ? put_log_aside(dir, last, err) : rc;
}
