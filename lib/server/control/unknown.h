/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_unknown - the tables that nodes keep aside, put together
 *
 * What     Each shard says what it has of tables that the registry does not know.
 *          Here the copies of one table come together.
 * Owner    ps_unknowns_done frees what it owns. Threads: plain values.
 */
#ifndef PS_SERVER_UNKNOWN_H
#define PS_SERVER_UNKNOWN_H

#include "protocol/facts/shard_answer.h"
#include "protocol/registry/registry_accept.h"

typedef struct ps_unknown {
    uint32_t id;
    ps_table_spec_t spec; /* owned */
    ps_found_t *found;    /* owned */
    size_t n_found;
    size_t capacity;
} ps_unknown_t;

typedef struct ps_unknowns {
    ps_unknown_t *at; /* owned; ascending by id, then as they came */
    size_t n;
    size_t capacity;
} ps_unknowns_t;

/* Frees and zeroes; fits PSD_AUTO. */
void ps_unknowns_done(ps_unknowns_t *self);
/* Reads the answers to UNKNOWN (ps_shard_list_aside). *ret is the caller's on PSD_OK. Errors:
 * PSD_PROTO, PSD_INVALID, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_unknowns_gather(const ps_answers_t *answers, ps_unknowns_t *ret,
                                               psd_error_t *err);
/* The only table of that name, or with that number. Errors: PSD_NO_TABLE; PSD_INVALID there
 * are several, which differ by their numbers. */
PSD_MUST_CHECK psd_status_t ps_unknowns_find(const ps_unknowns_t *self, const char *name,
                                             const ps_unknown_t **ret, psd_error_t *err);
#endif
