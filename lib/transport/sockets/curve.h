/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_curve - endpoints that name the key of their server
 *
 * What     "tcp://HOST:PORT#KEY": whoever connects there speaks CURVE, and only with the
 *          server that has the secret half of KEY. So an endpoint that came by a safe way,
 *          from a file or over such a connection, is all that a client needs of a server.
 * Shape    KEY: 64 digits, base 16, for the 32 bytes of a public key
 * Threads  any
 */
#ifndef PS_TRANSPORT_CURVE_H
#define PS_TRANSPORT_CURVE_H

#include "psd.h"

#include "transport/keys/key_file.h"
#include "transport/keys/key_watch.h"
#include "wire/messages/route.h"

/* The address without the key, and the key, "": the endpoint names none. Errors: PSD_INVALID
 * what follows the '#' is no key. */
PSD_MUST_CHECK psd_status_t ps_curve_split(const char *endpoint,
                                           char ret_address[PS_ENDPOINT_MAX + 1],
                                           char ret_key[PS_KEY_SIZE + 1], psd_error_t *err);
/* The endpoint with a public key; one that is not of tcp stays as it is. false: too long. */
PSD_MUST_CHECK bool ps_curve_join(const char *endpoint, const char *public_key,
                                  char ret[PS_ENDPOINT_MAX + 1]);
/* This program's pair, from the file that PSD_KEY_FILE names. *ret_has false: it names none.
 * ret_watch: of that file; NULL: it is not watched. Errors: those of ps_key_file_read. */
PSD_MUST_CHECK psd_status_t ps_curve_keys(ps_key_pair_t *ret_pair, bool *ret_has,
                                          ps_key_watch_t *ret_watch, psd_error_t *err);

/* A token, by which a node joins or a client is let in (server/state/invites.h):
 * "tcp://HOST:PORT#KEY#SECRET", with 64 digits for the token's secret key. */
#define PS_TOKEN_MAX (PS_ENDPOINT_MAX + 65)
/* The text of one. endpoint names the server's key. false: too long. */
PSD_MUST_CHECK bool ps_curve_print_token(const char *endpoint, const ps_key_pair_t *pair,
                                         char ret[PS_TOKEN_MAX + 1]);
/* The endpoint, and the token's pair. Errors: PSD_INVALID, which does not show the text. */
PSD_MUST_CHECK psd_status_t ps_curve_read_token(const char *text,
                                                char ret_endpoint[PS_ENDPOINT_MAX + 1],
                                                ps_key_pair_t *ret_pair, psd_error_t *err);
#endif
