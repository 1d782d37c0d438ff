/* SPDX-License-Identifier: Apache-2.0 */
/* Names of hosts, looked up before ZeroMQ sees them. */
#include "transport/sockets/resolve.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define TCP "tcp://"
#define HOST_SIZE 256

static bool needs_none(const char *host)
{
    struct in_addr address;

    return host[0] == '\0' || host[0] == '*' || host[0] == '[' ||
           inet_pton(AF_INET, host, &address) == 1 || if_nametoindex(host) != 0;
}

/* The first address of the family; false: there is none. */
static bool look_up(const char *host, int family, char ret[HOST_SIZE], int *ret_code)
{
    const struct addrinfo wanted = {.ai_family = family, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;

    *ret_code = getaddrinfo(host, NULL, &wanted, &found);
    if (*ret_code == 0) {
        *ret_code =
            getnameinfo(found->ai_addr, found->ai_addrlen, ret, HOST_SIZE, NULL, 0, NI_NUMERICHOST);
        freeaddrinfo(found);
    }
    return *ret_code == 0;
}

psd_status_t ps_resolve_bind(const char *endpoint, char ret[PS_RESOLVE_SIZE], psd_error_t *err)
{
    const char *from = endpoint + strlen(TCP);
    const char *colon = NULL;
    char host[HOST_SIZE] = "";
    char address[HOST_SIZE] = "127.0.0.1";
    int code = 0;

    (void)snprintf(ret, PS_RESOLVE_SIZE, "%s", endpoint);
    if (strncmp(endpoint, TCP, strlen(TCP)) == 0) {
        colon = strrchr(from, ':');
    }
    if (colon == NULL || (size_t)(colon - from) >= sizeof host) {
        return PSD_OK; /* it is refused where it is bound */
    }
    memcpy(host, from, (size_t)(colon - from));
    if (needs_none(host)) {
        return PSD_OK;
    }
    if (strcmp(host, "localhost") == 0 || look_up(host, AF_INET, address, &code)) {
        (void)snprintf(ret, PS_RESOLVE_SIZE, TCP "%s%s", address, colon);
        return PSD_OK;
    }
    if (look_up(host, AF_INET6, address, &code)) {
        (void)snprintf(ret, PS_RESOLVE_SIZE, TCP "[%s]%s", address, colon);
        return PSD_OK;
    }
    return psd_error_set(err, PSD_IO, "bind \"%.300s\": host \"%.200s\": %s", endpoint, host,
                         gai_strerror(code));
}
