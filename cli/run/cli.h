/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room cli/run: one run of pscli
 *
 * It is       The command line as values, the connection, requests to the
 *             control port; questions to the user and progress while a command
 *             waits; a private psd.
 * It uses     output, lib/client, lib/transport for a psd that does not answer,
 *             lib/base; jansson.
 * It ignores  Which commands there are: a command is a row (command.h) with a
 *             function.
 * Start at    cli.h, args.h, command.h.
 */
/*
 * ps_cli - one run of pscli: the request, and where answers go
 *
 * What     Every command gets one of these. It connects when the first command
 *          needs it and keeps the connection for --watch.
 * Owner    main owns it (ps_cli_done). Threads: confined to one.
 */
#ifndef PS_CLI_CLI_H
#define PS_CLI_CLI_H

#include <jansson.h>

#include "psd.h"

#include "cli/output/output.h"
#include "cli/run/args.h"
#include "wire/messages/route.h"

#define PS_CLI_JOB_SIZE 64

typedef struct ps_cli {
    ps_args_t args;
    ps_out_t out;
    const char *endpoint; /* borrowed from args, or nearest */
    char nearest[PS_ENDPOINT_MAX + 1];
    uint32_t timeout_ms;
    bool only_reads;               /* set before it connects: a node without a registry will do */
    psd_client_t *client;          /* owned; NULL until it is needed */
    json_t *details;               /* owned; of the last refusal, or NULL */
    char job[PS_CLI_JOB_SIZE];     /* that `why` has chosen, for --watch; or "" */
    char wrong[PS_OUT_WRONG_SIZE]; /* of out */
    int exit_code;                 /* instead of the status's own; 0: none. `run` */
} ps_cli_t;

void ps_cli_done(ps_cli_t *self);

/* Whether somebody listens at one of the addresses of the endpoint; looks for wait_ms
 * at each. */
bool ps_cli_is_listened(const ps_cli_t *self, uint32_t wait_ms);
/* Connects unless connected. Errors: as psd_connect, naming the endpoint. */
PSD_MUST_CHECK psd_status_t ps_cli_connect(ps_cli_t *self, psd_error_t *err);
/* A further connection with a transport of its own (NULL: as PSD_TRANSPORT has
 * it); the caller closes it. */
PSD_MUST_CHECK psd_status_t ps_cli_connect_by(const ps_cli_t *self, const char *transport,
                                              uint32_t timeout_ms, psd_client_t **ret_client,
                                              psd_error_t *err);
/*
 * Sends one control request, {"op":op} and {key:value} unless key is NULL.
 *
 * ret_reply  out  the reply without what only the protocol needs; the caller
 *                 gives it back with json_decref. Set on PSD_OK only
 *
 * Errors: as psd_connect and psd_request; PSD_PROTO when the reply is not an
 * object.
 */
PSD_MUST_CHECK psd_status_t ps_cli_request(ps_cli_t *self, const char *op, const char *key,
                                           const char *value, json_t **ret_reply, psd_error_t *err);
/* The same with a request of any members (borrowed; NULL: PSD_NOMEM). */
PSD_MUST_CHECK psd_status_t ps_cli_ask(ps_cli_t *self, const json_t *request, json_t **ret_reply,
                                       psd_error_t *err);
/* Cleanup form for PSD_AUTO. */
void ps_json_unref(json_t **value_p);
/* Takes out of a reply what only the protocol needs. */
void ps_json_strip(json_t *reply);
/* The member of an object, down a path with dots; NULL when there is none. */
json_t *ps_json_at(const json_t *object, const char *path);
/* A member's text or number; "" / 0 when it is missing or of another kind.
 * Digits in a string are a number too (above 2^63 - 1). */
const char *ps_json_text(const json_t *object, const char *path);
uint64_t ps_json_u64(const json_t *object, const char *path);

/* Word i after the command. */
const char *ps_cli_word(const ps_cli_t *self, size_t i);
/* Is the i-th word a name? Errors: PSD_USAGE, saying what the word names. */
PSD_MUST_CHECK psd_status_t ps_cli_name(const ps_cli_t *self, size_t i, const char *what,
                                        const char **ret_name, psd_error_t *err);
/* Seconds of the boot clock. */
double ps_cli_now_s(void);
#endif
