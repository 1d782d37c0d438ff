/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_http_token - the secret that opens /api/v1 and what the page shows
 *
 * What     64 hexadecimal digits in DATA_DIR/http.token, which only the user of psd and
 *          root may read. `pscli page` puts it into the link that it prints. Who removes
 *          the file gets another token at the next start.
 * Threads  no shared state
 */
#ifndef PS_DAEMON_HTTP_TOKEN_H
#define PS_DAEMON_HTTP_TOKEN_H

#include <stdbool.h>

#include "psd/status.h"

#define PS_HTTP_TOKEN_FILE "http.token"
#define PS_HTTP_TOKEN_SIZE 65 /* with its '\0' */

/* Reads the token of that data directory, or makes one. Errors: PSD_IO, naming the file:
 * it cannot be read or written, it is another user's, others may read it, or it is no
 * token. */
PSD_MUST_CHECK psd_status_t ps_http_token_load(const char *dir, char ret_token[PS_HTTP_TOKEN_SIZE],
                                               psd_error_t *err);
/* Whether the value of the header Authorization (NULL: there is none) has the token:
 * "Bearer TOKEN", or "Basic" with it as the password of any user. Takes the same time for
 * all tokens. */
bool ps_http_token_fits(const char token[PS_HTTP_TOKEN_SIZE], const char *authorization);
#endif
