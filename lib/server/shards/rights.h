/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_rights - the principals of the cluster, for all threads of this node
 *
 * What     The registry's part of the node writes them after each change; shards read
 *          them when a client says HELLO, and again when they were set since. So a
 *          message costs one comparison, and a denial counts from the next message on.
 * Owner    The caller, who stops the readers first.
 * Threads  any; a lock, which a message takes only after a change
 */
#ifndef PS_SERVER_RIGHTS_H
#define PS_SERVER_RIGHTS_H

#include <stdatomic.h>

#include "protocol/trust/trust.h"
#include "transport/sockets/asker.h"

typedef struct ps_rights ps_rights_t;

/* Nobody may anything until the first set. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_rights_new(ps_rights_t **ret_rights, psd_error_t *err);
/* Takes NULL, nulls *self_p. */
void ps_rights_destroy(ps_rights_t **self_p);
/* All principals as they are from now on, copied. epoch: the auth epoch, plus 1; 0: this node does
 * not know them any more. false: no memory; nothing changed. */
PSD_MUST_CHECK bool ps_rights_set(ps_rights_t *self, const ps_principal_t *principals, size_t n,
                                  uint64_t epoch);
/* Of the last set; 0: there was none. It does not name what was set: a command that was rolled
 * back has had the number of the one in its place. */
uint64_t ps_rights_epoch(const ps_rights_t *self);
/* Another one after each set: what was looked up before it is to be looked up again. */
uint64_t ps_rights_generation(const ps_rights_t *self);
/* The principal that the caller is: by its key, or else by its uid. false: none. */
PSD_MUST_CHECK bool ps_rights_find(ps_rights_t *self, const ps_asker_t *asker,
                                   ps_principal_t *ret_principal);
/* The caller is a principal that may do that; as ps_trust_may. */
PSD_MUST_CHECK bool ps_rights_may(ps_rights_t *self, const ps_asker_t *asker, ps_verb_t verb,
                                  ps_object_t object, const char *name);
#endif
