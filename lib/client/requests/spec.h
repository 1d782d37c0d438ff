/* SPDX-License-Identifier: Apache-2.0 */
/* Private to lib/client: a spec under its public name. */
#ifndef PS_CLIENT_SPEC_H
#define PS_CLIENT_SPEC_H

#include "model/tables/table.h"
#include "psd/table.h"

struct psd_spec {
    ps_table_spec_t spec;  /* owned; name is filled in by psd_table_create */
    bool partition_by_set; /* else it follows the keys */
    bool combine_set;      /* else the environment may say it */
    bool replicas_set;     /* the same */
};

/* What a new table of this spec combines when nobody said it: $PSD_COMBINE, else fallback, for
 * updaters that add up deltas or gradients; each for all others. Errors: PSD_INVALID, naming the
 * variable. */
PSD_MUST_CHECK psd_status_t ps_spec_settle_combine(ps_table_spec_t *spec, ps_combine_t fallback,
                                                   psd_error_t *err);
/* The same of its copies: $PSD_REPLICAS. */
PSD_MUST_CHECK psd_status_t ps_spec_settle_replicas(ps_table_spec_t *spec, psd_error_t *err);
#endif
