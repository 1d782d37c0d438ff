/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_force - the registry of one data directory goes on without the others
 *
 * What     The other members are lost, or the database is an older one that was put
 *          back. Everything that the member's log has is applied, also what no
 *          majority has agreed on. Then the registry is alone, of a new lineage, and
 *          its numbers go on far above (ps_registry_db_advance): members and nodes of
 *          the old lineage are not taken for it.
 *          ps_rebuild makes an empty registry for a cluster whose nodes have lost
 *          theirs.
 * Shape    A crash leaves the registry as it was, or forced but for the old log, which
 *          another ps_force moves away.
 * Owner    The caller. Threads: blocks; nothing else uses the directory.
 */
#ifndef PS_SERVER_FORCE_H
#define PS_SERVER_FORCE_H

#include "protocol/agent/node_message.h"

/* Asks whether others answer. Errors: one does, and nothing is changed. */
typedef psd_status_t ps_force_ask_t(void *context, const ps_seat_t *others, size_t n,
                                    psd_error_t *err);

/*
 * unix_ms  in  for the history, and the name of the old log: registry-log-<unix_ms>
 * ask      in  gets the other voters
 *
 * Errors: PSD_INVALID there is no registry; PSD_DAMAGED the log does not go on where the
 * database ends, or does not fit it; PSD_HELD; PSD_IO; PSD_NOMEM; those of `ask`.
 */
PSD_MUST_CHECK psd_status_t ps_force(const char *dir, uint64_t unix_ms, ps_force_ask_t *ask,
                                     void *context, psd_error_t *err);

/* Where the numbers of a rebuilt registry begin. */
typedef struct ps_rebuild {
    const char *name; /* of the cluster */
    ps_id_t cluster;
    uint64_t session; /* the greatest that were given out … */
    uint32_t last_table;
    uint32_t last_job;
} ps_rebuild_t;

/* Makes DIR/registry.db, of that cluster and a new lineage, without nodes and tables; moves a
 * log away. Errors: PSD_INVALID there is a registry; PSD_HELD, PSD_IO, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_rebuild(const char *dir, uint64_t unix_ms,
                                       const ps_rebuild_t *numbers, psd_error_t *err);
#endif
