/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the most that was kept with the most of late. */
#include "daemon/spare.h"

bool ps_spare_is_due(ps_spare_t *self, uint64_t kept_bytes)
{
    uint64_t of_late = 0;

    self->last[self->n_looks % PS_SPARE_LOOKS] = kept_bytes;
    self->n_looks++;
    for (size_t i = 0; i < PS_SPARE_LOOKS; i++) {
        of_late = self->last[i] > of_late ? self->last[i] : of_late;
    }
    self->most = of_late > self->most ? of_late : self->most;
    if (self->n_looks < PS_SPARE_LOOKS || self->most - of_late < PS_SPARE_BYTES) {
        return false;
    }
    self->most = of_late;
    return true;
}
