/* SPDX-License-Identifier: Apache-2.0 */
/* Drops that are told again until every shard has them. */
#include "daemon/untold.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

void
ps_untold_done(ps_untold_t *self)
{
    ps_free(self->tables);
    *self = (ps_untold_t){0};
}

bool
ps_untold_reserve(ps_untold_t *self)
{
    return ps_grow(&self->tables, &self->capacity, self->n + 1,
                   sizeof *self->tables);
}

void
ps_untold_add(ps_untold_t *self, uint32_t table)
{
    assert(self->n < self->capacity);
    self->tables[self->n++] = table;
}

psd_status_t
ps_untold_tell(ps_untold_t *self,
               psd_status_t (*tell)(void *context,
                                    uint32_t table,
                                    psd_error_t *err),
               void *context,
               psd_error_t *err)
{
    psd_status_t rc = PSD_OK;
    size_t n = 0;

    while (n < self->n && rc == PSD_OK) {
        rc = tell(context, self->tables[n], err);
        n += rc == PSD_OK ? 1 : 0;
    }
    self->n -= n;
    if (n > 0 && self->n > 0) {
        memmove(self->tables, self->tables + n, self->n * sizeof *self->tables);
    }
    return rc;
}
