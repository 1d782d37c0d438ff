/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_owners - whose each session is
 *
 * What     Numbers of sessions are given out in order, and answers are kept under them. So a
 *          session is that of the principal that said hello for it, and nobody else asks under it.
 * Shape    The last PS_OWNERS_MAX sessions; of an older one, and of one from an earlier life of
 *          this registry, the owner is whoever asks first
 * Owner    The caller. Threads: confined to one.
 */
#ifndef PS_SERVER_OWNERS_H
#define PS_SERVER_OWNERS_H

#include "base/bytes.h"

#define PS_OWNERS_MAX (UINT64_C(1) << 18)

typedef struct ps_owners ps_owners_t;

/* NULL: no memory. */
ps_owners_t *ps_owners_new(void);
/* Takes NULL, nulls *self_p. */
void ps_owners_destroy(ps_owners_t **self_p);
/* The session is that principal's, by its id, from now on. false: it is another one's. */
PSD_MUST_CHECK bool ps_owners_take(ps_owners_t *self, uint64_t session, uint32_t principal);
#endif
