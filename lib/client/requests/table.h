/* SPDX-License-Identifier: Apache-2.0 */
/* Private to lib/client: a handle of a table. */
#ifndef PS_CLIENT_TABLE_H
#define PS_CLIENT_TABLE_H

#include "client/connection/client_state.h"

struct psd_table {
    psd_client_t *client;     /* borrowed; not looked at by psd_table_close */
    ps_known_table_t *known;  /* borrowed from the client; as above */
    ps_table_spec_t spec;     /* owned */
    ps_filter_t filter;       /* the spec's, for calls that set none */
    struct ps_sparsify *thin; /* owned; values that filters hold back, or NULL */
};
/* Adds a table, which may be known already. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_known_table_add(psd_client_t *self, uint32_t id, const char *name,
                                               uint32_t n_partitions, ps_known_table_t **ret_table,
                                               psd_error_t *err);
/* Takes an object with "table" and "routes": learns the routes and adds the
 * table. ret_spec may be NULL. */
PSD_MUST_CHECK psd_status_t ps_table_learn(psd_client_t *self, const ps_doc_t *from,
                                           ps_table_spec_t *ret_spec, ps_known_table_t **ret_table,
                                           psd_error_t *err);
/* Opens a table (a worker: for its job) and learns it. ret_spec may be NULL.
 * Errors: as the node answers. */
PSD_MUST_CHECK psd_status_t ps_table_ask_open(psd_client_t *self, const char *name,
                                              ps_table_spec_t *ret_spec,
                                              ps_known_table_t **ret_table, psd_error_t *err);
#endif
