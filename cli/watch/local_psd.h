/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_local_psd - a psd of this host, as the files of its data directory name it
 *
 * What     --data-dir, else $PSD_DATA_DIR, else the psd of this user, else that of the
 *          package. Its HTTP port answers also while psd's other threads hang.
 * Owner    The caller; plain values. Threads: confined to one.
 */
#ifndef PS_CLI_LOCAL_PSD_H
#define PS_CLI_LOCAL_PSD_H

#include "base/bytes.h"
#include "cli/run/cli.h"

#define PS_LOCAL_TOKEN_SIZE 65
#define PS_LOCAL_HTTP_SIZE 300

typedef struct ps_local_psd {
    char node[PS_LOCAL_HTTP_SIZE];
    char http[PS_LOCAL_HTTP_SIZE]; /* "http://127.0.0.1:7173" */
    char token[PS_LOCAL_TOKEN_SIZE];
    uint64_t pid; /* that it had when it wrote them */
} ps_local_psd_t;

/* Errors: PSD_CONNECT none has started there, or it has no HTTP port; PSD_DENIED its
 * files are another user's, or links; PSD_DAMAGED, PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_local_psd_find(const ps_cli_t *cli, ps_local_psd_t *ret,
                                              psd_error_t *err);
/* GET of a path, with the token where the path needs it: the body with its '\0', whatever the
 * status. ret_text: the caller frees it, also after an error. Errors: PSD_CONNECT nobody answers;
 * PSD_PROTO the answer is none; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_local_psd_text(const ps_local_psd_t *self, const char *path,
                                              uint32_t timeout_ms, ps_buffer_t *ret_text,
                                              psd_error_t *err);
#endif
