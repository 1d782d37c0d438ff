/* SPDX-License-Identifier: Apache-2.0 */
/* Private to lib/client: a spec under its public name. */
#ifndef PS_CLIENT_SPEC_H
#define PS_CLIENT_SPEC_H

#include "model/tables/table.h"
#include "psd/table.h"

struct psd_spec {
    ps_table_spec_t spec;  /* owned; name is filled in by psd_table_create */
    bool partition_by_set; /* else it follows the keys */
};
#endif
