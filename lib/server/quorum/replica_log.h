/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of a member's log, for replica.c
 *
 * What     Where it is, and how an empty one is made; the number of a member.
 *          ps_replica_has_log and ps_replica_prepare are in this file too.
 * Threads  plain functions
 */
#ifndef PS_SERVER_REPLICA_LOG_H
#define PS_SERVER_REPLICA_LOG_H

#include "server/quorum/replica.h"

/* Its path, which the caller frees. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_replica_log_dir(const char *dir, ps_buffer_t *ret, psd_error_t *err);
/* Makes an empty log in a data directory, as of that term; `first` is the index of
 * its first entry. Errors: those of ps_registry_log_create and _open. */
PSD_MUST_CHECK psd_status_t ps_replica_make_log(const char *data_dir, const ps_id_t *cluster,
                                                const ps_id_t *lineage, uint64_t member,
                                                uint64_t first, uint64_t term, psd_error_t *err);
/* A number for a member that has none; not 0. Errors: PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_replica_new_member(uint64_t *ret_member, psd_error_t *err);
#endif
