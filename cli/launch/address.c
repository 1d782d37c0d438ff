/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the own address on the way to other hosts. */
#include "cli/launch/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANY_PORT "9" /* connecting a datagram socket sends nothing */
#define LOOPBACK "127.0.0.1"

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

psd_status_t ps_address_to_host(const char *host, char ret_address[PS_ADDRESS_SIZE],
                                psd_error_t *err)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM};
    struct addrinfo *list = NULL;
    char own[PS_ADDRESS_SIZE] = "";
    char peer[PS_ADDRESS_SIZE] = "";
    int code = getaddrinfo(host, ANY_PORT, &hints, &list);

    if (code != 0) {
        return tell(host, code == EAI_SYSTEM ? strerror(errno) : gai_strerror(code), err);
    }
    for (const struct addrinfo *at = list; at != NULL && own[0] == '\0'; at = at->ai_next) {
        if (!own_end(at, own) || getnameinfo(at->ai_addr, at->ai_addrlen, peer, sizeof peer, NULL,
                                             0, NI_NUMERICHOST) != 0) {
            own[0] = '\0';
        }
    }
    freeaddrinfo(list);
    if (own[0] == '\0') {
        return tell(host, "no route to it", err);
    }
    (void)snprintf(ret_address, PS_ADDRESS_SIZE, "%s", strcmp(own, peer) == 0 ? LOOPBACK : own);
    return PSD_OK;
}

psd_status_t ps_address_to(const ps_hosts_t *hosts, char ret_address[PS_ADDRESS_SIZE],
                           const char **ret_other, psd_error_t *err)
{
    char found[PS_ADDRESS_SIZE] = LOOPBACK;
    const char *other = "";

    for (size_t i = 0; i < hosts->n; i++) {
        const char *host = ps_host_address(&hosts->items[i]);
        char address[PS_ADDRESS_SIZE] = LOOPBACK;
        psd_status_t rc = ps_address_to_host(host, address, err);

        if (rc != PSD_OK) {
            return rc;
        }
        if (ps_address_is_local(address)) {
            continue;
        }
        if (ps_address_is_local(found)) {
            (void)snprintf(found, sizeof found, "%s", address);
        } else if (strcmp(found, address) != 0) {
            other = host;
        }
    }
    (void)snprintf(ret_address, PS_ADDRESS_SIZE, "%s", found);
    *ret_other = other;
    return PSD_OK;
}
