/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_cli_ask_any - a question that every member of the registry answers
 *
 * What     Asks all nodes of the endpoint at once, then those that answers name, without a
 *          session, so also while there is no leader. A leader's answer is taken at once;
 *          else, a moment after the first one, the newest of the others.
 */
#ifndef PS_CLI_ASK_ANY_H
#define PS_CLI_ASK_ANY_H

#include "cli/run/cli.h"

/*
 * op         in   answered with `stale`, `term`, `committed` and `members`
 * ret_reply  out  without what only the protocol needs; the caller gives it back
 *                 with json_decref. Set on PSD_OK only
 *
 * Errors: PSD_CONNECT nobody answered within --timeout; PSD_NOT_LEADER nodes
 * did, and none of them has a part of the registry; PSD_INVALID the endpoint;
 * PSD_NOMEM, PSD_IO.
 */
PSD_MUST_CHECK psd_status_t ps_cli_ask_any(ps_cli_t *cli, const char *op, json_t **ret_reply,
                                           psd_error_t *err);
/* True when members of the registry answer and none of them leads: err then says so, and
 * who is silent. Takes wait_ms at most. */
bool ps_cli_is_leaderless(ps_cli_t *cli, uint32_t wait_ms, psd_error_t *err);
/* As ps_cli_connect, but says within a second that there is no leader, unless --timeout
 * or --wait is given. Errors: PSD_NOT_LEADER then. */
PSD_MUST_CHECK psd_status_t ps_cli_connect_soon(ps_cli_t *cli, psd_error_t *err);
#endif
