/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_cli_ask_by - one question under a key of its own, without a session
 *
 * What     For who is no principal yet, and has a token: neither PSD_KEY_FILE nor the endpoint of
 *          this run counts.
 */
#ifndef PS_CLI_ASK_BY_H
#define PS_CLI_ASK_BY_H

#include "cli/run/cli.h"
#include "transport/keys/key_file.h"

/*
 * endpoint   in   of one psd, with its key
 * pair       in   as whom the question is asked
 * request    in   {"op":…}, which gets the members that all requests have; borrowed. NULL:
 *                 PSD_NOMEM
 * ret_reply  out  as of ps_cli_request
 *
 * Errors: what psd answers; PSD_DENIED it has another key than the endpoint names; PSD_CONNECT no
 * answer within --timeout; PSD_INVALID the endpoint; PSD_NOMEM, PSD_IO, PSD_PROTO.
 */
PSD_MUST_CHECK psd_status_t ps_cli_ask_by(const ps_cli_t *cli, const char *endpoint,
                                          const ps_key_pair_t *pair, json_t *request,
                                          json_t **ret_reply, psd_error_t *err);
#endif
