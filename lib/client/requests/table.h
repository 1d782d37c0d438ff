/* SPDX-License-Identifier: Apache-2.0 */
/* Private to lib/client: a handle of a table. */
#ifndef PS_CLIENT_TABLE_H
#define PS_CLIENT_TABLE_H

#include "client/connection/client_state.h"

struct psd_table {
    psd_client_t *client;     /* borrowed; not looked at by psd_table_close */
    ps_known_table_t *known;  /* borrowed from the client; as above */
    ps_table_spec_t spec;     /* owned */
    ps_filter_t filter;       /* the spec's, of calls that name none */
    struct ps_sparsify *thin; /* owned; what filters hold back; NULL: nothing */
};
#endif
