/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the own address on the way to another host. */
#include "transport/discovery/own_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANY_PORT "9" /* connecting a datagram socket sends nothing */
#define TCP "tcp://"
#define LOOPBACK "127.0.0.1"
#define HOST_SIZE 256

static psd_status_t tell(const char *host, const char *why, psd_error_t *err)
{
    return psd_error_set(err, PSD_FAILED, "host %s: %s", host, why);
}

/* The own end of a socket that is connected to that address. */
static bool own_end(const struct addrinfo *to, char ret_address[PS_ADDRESS_SIZE])
{
    struct sockaddr_storage own = {0};
    socklen_t size = sizeof own;
    int fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool found = fd >= 0 && connect(fd, to->ai_addr, to->ai_addrlen) == 0 &&
                 getsockname(fd, (struct sockaddr *)&own, &size) == 0 &&
                 getnameinfo((struct sockaddr *)&own, size, ret_address, PS_ADDRESS_SIZE, NULL, 0,
                             NI_NUMERICHOST) == 0;

    if (fd >= 0) {
        (void)close(fd);
    }
    return found;
}

bool ps_address_is_local(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0;
}

psd_status_t ps_own_address(const char *host, char ret_own[PS_ADDRESS_SIZE], bool *ret_is_same,
                            psd_error_t *err)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM};
    struct addrinfo *list = NULL;
    char peer[PS_ADDRESS_SIZE] = "";
    int code = getaddrinfo(host, ANY_PORT, &hints, &list);

    ret_own[0] = '\0';
    if (code != 0) {
        return tell(host, code == EAI_SYSTEM ? strerror(errno) : gai_strerror(code), err);
    }
    for (const struct addrinfo *at = list; at != NULL && ret_own[0] == '\0'; at = at->ai_next) {
        if (!own_end(at, ret_own) ||
            getnameinfo(at->ai_addr, at->ai_addrlen, peer, sizeof peer, NULL, 0, NI_NUMERICHOST) !=
                0 ||
            strchr(ret_own, '%') != NULL /* of one link only */) {
            ret_own[0] = '\0';
        }
    }
    freeaddrinfo(list);
    *ret_is_same = strcmp(ret_own, peer) == 0;
    return ret_own[0] != '\0' ? PSD_OK : tell(host, "no route to it", err);
}

/* The host of tcp://HOST:PORT of that length, without brackets. */
static bool find_host(const char *endpoint, size_t length, char ret_host[HOST_SIZE])
{
    const char *from = endpoint + strlen(TCP);
    const char *end = length > strlen(TCP) && strncmp(endpoint, TCP, strlen(TCP)) == 0
                          ? memrchr(from, ':', length - strlen(TCP))
                          : NULL;

    if (end == NULL || end == from) {
        return false;
    }
    if (*from == '[' && end[-1] == ']') {
        from++;
        end--;
    }
    if (end <= from || end - from >= HOST_SIZE) {
        return false;
    }
    memcpy(ret_host, from, (size_t)(end - from));
    ret_host[end - from] = '\0';
    return true;
}

bool ps_own_address_leads_to(const char *endpoint, const char *listens)
{
    char host[HOST_SIZE];
    char at[HOST_SIZE];
    char own[PS_ADDRESS_SIZE];
    bool is_any = false;
    bool is_same = false;

    if (!find_host(endpoint, strcspn(endpoint, "#"), host) ||
        !find_host(listens, strlen(listens), at)) {
        return false;
    }
    is_any = strcmp(at, "0.0.0.0") == 0 || strcmp(at, "::") == 0;
    if (strcmp(host, at) == 0) {
        return true;
    }
    if (ps_address_is_local(host) || strcmp(host, "localhost") == 0) {
        return is_any || (strcmp(host, "localhost") == 0 && ps_address_is_local(at));
    }
    return ps_own_address(host, own, &is_same, NULL) == PSD_OK && is_same &&
           (is_any || strcmp(own, at) == 0);
}

psd_status_t ps_own_address_to(const char *endpoints, char ret_own[PS_ADDRESS_SIZE],
                               psd_error_t *err)
{
    psd_status_t rc = PSD_OK;
    bool found = false;

    (void)snprintf(ret_own, PS_ADDRESS_SIZE, "%s", LOOPBACK);
    while (!found && *endpoints != '\0') {
        char host[HOST_SIZE];
        size_t length = strcspn(endpoints, ",");

        if (find_host(endpoints, length, host)) {
            bool is_same = false;

            psd_error_clear(err);
            rc = ps_own_address(host, ret_own, &is_same, err);
            found = rc == PSD_OK;
        }
        endpoints += length + (endpoints[length] == ',' ? 1 : 0);
    }
    return rc;
}
