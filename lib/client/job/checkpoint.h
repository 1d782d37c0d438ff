/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the client: checkpoints, as the node lists them. */
#ifndef PS_CLIENT_CHECKPOINT_H
#define PS_CLIENT_CHECKPOINT_H

#include "client/connection/client_state.h"
#include "psd/checkpoint.h"

#define PS_CHECKPOINT_NAME_SIZE 128
#define PS_CHECKPOINT_LOOK_MS 100 /* between two looks */

struct psd_checkpoint {
    char name[PS_CHECKPOINT_NAME_SIZE];
    char job[PS_NAME_MAX + 1]; /* "": of none */
    uint64_t clock;
    uint64_t unix_ms;
    ps_doc_t *manifest; /* owned */
};

/* A question about a checkpoint, with "key": value when value is not NULL.
 * NULL: no memory. The caller owns it. */
ps_doc_t *ps_checkpoint_question(const char *op, const char *name, const char *key,
                                 const char *value);
/* Starts work on a checkpoint; ps_checkpoint_end waits for it. Errors: those of
 * the node. */
PSD_MUST_CHECK psd_status_t ps_checkpoint_ask(psd_client_t *client, ps_doc_t *question,
                                              uint64_t *ret_number, psd_error_t *err);
/* Waits for its end, and looks at least once. Errors: those of the work;
 * PSD_DEADLINE until_ms has passed. */
PSD_MUST_CHECK psd_status_t ps_checkpoint_end(psd_client_t *client, uint64_t number,
                                              uint64_t until_ms, psd_error_t *err);
/* As psd_checkpoint_newest, inside of a call. */
PSD_MUST_CHECK psd_status_t ps_checkpoint_find(psd_client_t *client, const char *name,
                                               psd_checkpoint_t **ret, psd_error_t *err);
#endif
