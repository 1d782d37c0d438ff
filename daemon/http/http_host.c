/* SPDX-License-Identifier: Apache-2.0 */
/* The header Host: an address, or a name of ours. */
#include "daemon/http/http_host.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define NAME_SIZE 256

/* "[::1]:80" */
static bool is_six(const char *host)
{
    const char *end = strchr(host, ']');
    char text[INET6_ADDRSTRLEN];
    struct in6_addr six;

    if (end == NULL || end - host > INET6_ADDRSTRLEN || (end[1] != '\0' && end[1] != ':')) {
        return false;
    }
    (void)snprintf(text, sizeof text, "%.*s", (int)(end - host - 1), host + 1);
    return inet_pton(AF_INET6, text, &six) == 1;
}

bool ps_http_host_fits(const char *host, const char *own)
{
    char name[NAME_SIZE];
    struct in_addr four;
    size_t size = 0;

    if (host == NULL || host[0] == '\0') {
        return true;
    }
    if (host[0] == '[') {
        return is_six(host);
    }
    size = strcspn(host, ":");
    if (size >= sizeof name) {
        return false;
    }
    (void)snprintf(name, sizeof name, "%.*s", (int)size, host);
    return inet_pton(AF_INET, name, &four) == 1 || strcasecmp(name, "localhost") == 0 ||
           strcasecmp(name, own) == 0;
}
