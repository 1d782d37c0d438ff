/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses as text. */
#include "server/config/endpoint.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define TCP "tcp://"
#define IPC "ipc://"
#define IPC_PATH_MAX 107 /* sun_path of a unix socket, without its '\0' */

static bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* The colon before the port; NULL when no colon follows a host. */
static const char *port_colon(const char *text)
{
    const char *colon = strrchr(text, ':');

    return colon != NULL && colon > text + strlen(TCP) ? colon : NULL;
}

static bool is_host_text(const char *text, size_t length)
{
    static const char LETTERS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqr"
                                  "stuvwxyz0123456789.-_";

    if (length == 1 && text[0] == '*') {
        return true;
    }
    if (length > 2 && text[0] == '[' && text[length - 1] == ']') {
        return strspn(text + 1, "0123456789abcdefABCDEF:.%") == length - 2;
    }
    return length > 0 && strspn(text, LETTERS) == length;
}

static bool has_control(const char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < ' ' || *text == 0x7f) {
            return true;
        }
    }
    return false;
}

bool ps_endpoint_is_valid(const char *text)
{
    const char *colon = NULL;
    uint64_t port = 0;

    if (strlen(text) > PS_ENDPOINT_MAX || has_control(text)) {
        return false;
    }
    if (has_prefix(text, IPC)) {
        size_t length = strlen(text) - strlen(IPC);

        return length > 0 && length <= IPC_PATH_MAX;
    }
    colon = has_prefix(text, TCP) ? port_colon(text) : NULL;
    if (colon == NULL || !is_host_text(text + strlen(TCP), (size_t)(colon - text) - strlen(TCP))) {
        return false;
    }
    return strcmp(colon + 1, "*") == 0 || (ps_text_u64(colon + 1, &port) && port <= 65535);
}

void ps_endpoint_host(const char *text, char ret_host[PS_ENDPOINT_MAX + 1])
{
    const char *colon = has_prefix(text, TCP) ? port_colon(text) : NULL;

    ret_host[0] = '\0';
    if (colon != NULL) {
        const char *host = text + strlen(TCP);

        (void)snprintf(ret_host, PS_ENDPOINT_MAX + 1, "%.*s", (int)(colon - host), host);
    }
}

/* 127.0.0.0/8 as four numbers, so that 127.example.org does not match. */
static bool is_loopback_address(const char *host)
{
    return has_prefix(host, "127.") && host[strspn(host, "0123456789.")] == '\0';
}

bool ps_endpoint_is_local(const char *text)
{
    char host[PS_ENDPOINT_MAX + 1];

    if (has_prefix(text, IPC)) {
        return true;
    }
    ps_endpoint_host(text, host);
    return is_loopback_address(host) || strcmp(host, "localhost") == 0 ||
           strcmp(host, "[::1]") == 0 || strcmp(host, "lo") == 0;
}

bool ps_endpoint_is_abstract(const char *text)
{
    return has_prefix(text, IPC) && strchr("@*", text[strlen(IPC)]) != NULL;
}

uint64_t ps_endpoint_port(const char *text)
{
    const char *colon = has_prefix(text, TCP) ? port_colon(text) : NULL;
    uint64_t port = 0;

    return colon != NULL && ps_text_u64(colon + 1, &port) ? port : 0;
}

bool ps_endpoint_is_wildcard(const char *text)
{
    char host[PS_ENDPOINT_MAX + 1];

    ps_endpoint_host(text, host);
    return strcmp(host, "*") == 0 || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "[::]") == 0;
}

void ps_endpoint_with_host(const char *text, const char *host, char ret[PS_ENDPOINT_MAX + 1])
{
    const char *colon = has_prefix(text, TCP) ? port_colon(text) : NULL;
    int length = 0;

    if (colon == NULL) {
        length = snprintf(ret, PS_ENDPOINT_MAX + 1, "%s", text);
    } else {
        length = snprintf(ret, PS_ENDPOINT_MAX + 1, TCP "%s%s", host, colon);
    }
    if (length < 0 || length > PS_ENDPOINT_MAX) {
        ret[0] = '\0';
    }
}
