/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_registry_offline_look, ps_registry_offline_single - a member of the registry, while no psd
 * runs
 *
 * What     For people with a data directory and no cluster: what its part of the
 *          registry is; and back to a registry on one node.
 * Owner    Plain values. Threads: any.
 */
#ifndef PS_STORAGE_REGISTRY_OFFLINE_H
#define PS_STORAGE_REGISTRY_OFFLINE_H

#include "storage/registry/registry_db.h"
#include "storage/registry/registry_log.h"

typedef struct ps_registry_offline {
    char cluster_name[PS_NAME_MAX + 1];
    ps_id_t cluster;
    ps_id_t lineage;
    ps_applied_t applied; /* of the database */
    ps_registry_member_t members[PS_REGISTRY_MEMBERS_MAX];
    size_t n_members; /* 0: it is a registry on one node */
    bool has_log;     /* else 0: */
    uint64_t member;  /* whose log it is */
    uint64_t term;
    uint64_t vote; /* 0: none */
    uint64_t first;
    uint64_t last;
} ps_registry_offline_t;

/*
 * Reads what a data directory has of the registry, from a copy that it makes in TMPDIR
 * or /tmp: nothing of DIR is changed.
 *
 * Errors: PSD_HELD a psd runs there; PSD_INVALID DIR has no registry; those of
 * ps_registry_db_open, _load and ps_registry_log_open.
 */
PSD_MUST_CHECK psd_status_t ps_registry_offline_look(const char *dir,
                                                     ps_registry_offline_t *ret_look,
                                                     psd_error_t *err);
/*
 * Makes a member of the registry a registry on one node: applies what its log has and its
 * database lacks, forgets the members, and puts the log aside, as
 * registry-log.old-INDEX. A directory without a log is left as it is.
 *
 * drops_voters  in  also when other nodes vote, which must be lost: changes that they
 *                   agreed on without this one are lost, and the registry is of another
 *                   lineage
 *
 * Errors: PSD_HELD a psd runs there; PSD_DENIED other nodes vote, naming them;
 * PSD_INVALID DIR has no registry; those of ps_registry_offline_look.
 */
PSD_MUST_CHECK psd_status_t ps_registry_offline_single(const char *dir, bool drops_voters,
                                                       uint64_t unix_ms, psd_error_t *err);
/* The members by the newest change in the log, which the database may lack; without one, by the
 * database. log: NULL: there is none. Errors: those of ps_registry_log_read,
 * ps_quorum_members_decode and ps_registry_db_members. */
PSD_MUST_CHECK psd_status_t ps_registry_newest_members(
    ps_registry_db_t *db, ps_registry_log_t *log,
    ps_registry_member_t ret_members[PS_REGISTRY_MEMBERS_MAX], size_t *ret_n, psd_error_t *err);
#endif
