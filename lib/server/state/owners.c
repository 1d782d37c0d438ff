/* SPDX-License-Identifier: Apache-2.0 */
/* A row for each session, by its number: a newer one takes its place. */
#include "server/state/owners.h"

#include "base/alloc.h"

typedef struct owner {
    uint64_t session; /* 0: none */
    uint32_t principal;
} owner_t;

struct ps_owners {
    owner_t rows[PS_OWNERS_MAX];
};

ps_owners_t *ps_owners_new(void)
{
    return ps_alloc(1, sizeof(ps_owners_t));
}

void ps_owners_destroy(ps_owners_t **self_p)
{
    ps_free(*self_p);
    *self_p = NULL;
}

bool ps_owners_take(ps_owners_t *self, uint64_t session, uint32_t principal)
{
    owner_t *row = &self->rows[session % PS_OWNERS_MAX];

    if (row->session == session) {
        return row->principal == principal;
    }
    if (row->session < session) {
        *row = (owner_t){.session = session, .principal = principal};
    }
    return true;
}
