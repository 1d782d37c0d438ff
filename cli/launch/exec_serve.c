/* SPDX-License-Identifier: Apache-2.0 */
/* Where a program listens that is a node itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/launch/address.h"
#include "cli/launch/exec_inner.h"

#define EMBED "embed:"
#define TCP "tcp://"
#define LISTEN "PSD_LISTEN_ENDPOINTS"

static psd_status_t set(const char *name, const char *value, psd_error_t *err)
{
    return setenv(name, value, 1) == 0
               ? PSD_OK
               : psd_error_set(err, PSD_NOMEM, "no memory for the environment");
}

/* The host of "tcp://HOST:PORT", without brackets. false: it is no such endpoint. */
static bool read_host(const char *endpoint, char ret_host[PS_ADDRESS_SIZE])
{
    const char *from = endpoint + strlen(TCP);
    const char *end = NULL;

    if (strncmp(endpoint, TCP, strlen(TCP)) != 0) {
        return false;
    }
    from += *from == '[' ? 1 : 0;
    end = from[-1] == '[' ? strchr(from, ']') : strchr(from, ':');
    if (end == NULL || end - from >= PS_ADDRESS_SIZE) {
        return false;
    }
    (void)snprintf(ret_host, PS_ADDRESS_SIZE, "%.*s", (int)(end - from), from);
    return true;
}

/* That of the way to the registry; on the registry's own host, the registry's. */
static psd_status_t listen_beyond(const char *host, psd_error_t *err)
{
    char own[PS_ADDRESS_SIZE] = "";
    char text[PS_ADDRESS_SIZE + 16];
    psd_status_t rc = ps_address_to_host(host, own, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (ps_address_is_local(own)) {
        (void)snprintf(own, sizeof own, "%s", host);
    }
    (void)snprintf(text, sizeof text, strchr(own, ':') == NULL ? TCP "%s:0" : TCP "[%s]:0", own);
    return set(LISTEN, text, err);
}

psd_status_t ps_exec_serve(psd_error_t *err)
{
    const char *endpoint = getenv("PSD_ENDPOINT");
    char host[PS_ADDRESS_SIZE];

    if (endpoint == NULL || strncmp(endpoint, EMBED, strlen(EMBED)) != 0 ||
        endpoint[strlen(EMBED)] == '\0') {
        return PSD_OK;
    }
    endpoint += strlen(EMBED);
    if (getenv(LISTEN) != NULL || !read_host(endpoint, host) || ps_address_is_local(host)) {
        return PSD_OK;
    }
    return listen_beyond(host, err);
}
