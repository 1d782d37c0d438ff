/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_heard_file - heard.json: what a node remembers of its registry
 *
 * What     ps_heard_t (protocol/agent/heard.h), and which cluster it is: enough to
 *          make a registry again when all of its members are lost.
 * Threads  no shared state
 */
#ifndef PS_SERVER_HEARD_FILE_H
#define PS_SERVER_HEARD_FILE_H

#include "protocol/agent/heard.h"
#include "model/tables/table.h"

typedef struct ps_heard_file {
    bool is_there;
    ps_id_t cluster;
    char name[PS_NAME_MAX + 1]; /* of the cluster */
    ps_heard_t heard;           /* owned */
} ps_heard_file_t;

/* Frees and zeroes; fits PSD_AUTO. */
void ps_heard_file_done(ps_heard_file_t *self);
/* *ret is the caller's on PSD_OK. Errors: PSD_IO, PSD_DAMAGED, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_heard_file_read(const char *dir, ps_heard_file_t *ret,
                                               psd_error_t *err);
/* Errors: PSD_IO, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_heard_file_write(const char *dir, const ps_heard_file_t *self,
                                                psd_error_t *err);
#endif
