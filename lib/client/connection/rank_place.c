/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks tell each other before they serve. */
#include "client/connection/rank_place.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "transport/threads/clock.h"

#define LOOK_NS 5000000L
#define ADDRESSES 250 /* of the last number of an address */

void ps_rank_nap(void)
{
    const struct timespec span = {.tv_nsec = LOOK_NS};

    (void)nanosleep(&span, NULL);
}

/* ---- what ranks say ---- */

psd_status_t ps_rank_say(const ps_rank_place_t *self, const char *what, const char *value,
                         psd_error_t *err)
{
    char key[64];

    (void)snprintf(key, sizeof key, "%s %d", what, self->rank);
    return ps_ranks_say(key, value, err);
}

bool ps_rank_find(const char *what, int rank, char ret_value[PS_CARRIER_TEXT])
{
    char key[64];

    (void)snprintf(key, sizeof key, "%s %d", what, rank);
    return ps_ranks_find(key, ret_value);
}

psd_status_t ps_rank_wait_for(const ps_rank_place_t *self, const char *what, int rank,
                              char ret_value[PS_CARRIER_TEXT], psd_error_t *err)
{
    char why[PS_CARRIER_TEXT];

    while (!ps_rank_find(what, rank, ret_value)) {
        if (ps_ranks_find("failed", why)) {
            return psd_error_set(err, PSD_CONNECT, "%s", why);
        }
        if (ps_now_ms() >= self->until_ms) {
            return psd_error_set(err, PSD_DEADLINE, "rank %d has not come within %d s", rank,
                                 PS_RANK_MEET_MS / 1000);
        }
        ps_rank_nap();
    }
    return PSD_OK;
}

psd_status_t ps_rank_wait_for_each(const ps_rank_place_t *self, const char *what, psd_error_t *err)
{
    char value[PS_CARRIER_TEXT];
    psd_status_t rc = PSD_OK;

    for (int i = 0; rc == PSD_OK && i < self->size; i++) {
        rc = ps_rank_wait_for(self, what, i, value, err);
    }
    return rc;
}

/* ---- where they are ---- */

void ps_rank_name(const ps_rank_place_t *self, char ret_host[PS_ADDRESS_SIZE])
{
    (void)snprintf(ret_host, PS_ADDRESS_SIZE, "127.64.%d.%d", self->rank / ADDRESSES,
                   self->rank % ADDRESSES + 1);
}

/* What only processes have in common that reach each other at 127.0.0.1. */
static void find_host(char ret_host[PS_CARRIER_TEXT])
{
    char boot[64] = "";
    char net[64] = "";
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, boot, sizeof boot - 1);

    boot[strcspn(boot, "\n")] = '\0';
    if (fd >= 0) {
        (void)close(fd);
    }
    if (n < 0 || readlink("/proc/self/ns/net", net, sizeof net - 1) < 0) {
        net[0] = '\0';
    }
    (void)snprintf(ret_host, PS_CARRIER_TEXT, "%s %s", boot, net);
}

/* The addresses at which other hosts may reach this one, with blanks between them; those of IPv4
 * first. */
static void find_addresses(char ret_list[PS_CARRIER_TEXT])
{
    static const int FAMILIES[] = {AF_INET, AF_INET6};
    struct ifaddrs *all = NULL;
    size_t size = 0;

    ret_list[0] = '\0';
    if (getifaddrs(&all) != 0) {
        return;
    }
    for (size_t i = 0; i < sizeof FAMILIES / sizeof FAMILIES[0]; i++) {
        for (const struct ifaddrs *at = all; at != NULL; at = at->ifa_next) {
            char text[PS_ADDRESS_SIZE] = "";

            if (at->ifa_addr == NULL || at->ifa_addr->sa_family != FAMILIES[i] ||
                (at->ifa_flags & IFF_UP) == 0 || (at->ifa_flags & IFF_LOOPBACK) != 0 ||
                getnameinfo(at->ifa_addr,
                            FAMILIES[i] == AF_INET ? sizeof(struct sockaddr_in)
                                                   : sizeof(struct sockaddr_in6),
                            text, sizeof text, NULL, 0, NI_NUMERICHOST) != 0 ||
                strchr(text, '%') != NULL /* of one link only */ ||
                size + strlen(text) + 2 > PS_CARRIER_TEXT) {
                continue;
            }
            size += (size_t)snprintf(ret_list + size, PS_CARRIER_TEXT - size, "%s ", text);
        }
    }
    freeifaddrs(all);
}

psd_status_t ps_rank_compare(const ps_rank_place_t *self, int *ret_far, psd_error_t *err)
{
    static const char *const WORDS[] = {
        [PS_RANKS_UNUSED] = "", [PS_RANKS_ALONE] = "mpi", [PS_RANKS_FIRST] = "mpi,auto"};
    const char *word = WORDS[ps_ranks_use()];
    char host[PS_CARRIER_TEXT];
    char list[PS_CARRIER_TEXT];
    char other[PS_CARRIER_TEXT];
    psd_status_t rc = PSD_OK;

    find_host(host);
    find_addresses(list);
    rc = ps_rank_say(self, "carrier", word, err);
    if (rc == PSD_OK) {
        rc = ps_rank_say(self, "addresses", list, err);
    }
    if (rc == PSD_OK) {
        rc = ps_rank_say(self, "host", host, err);
    }
    *ret_far = -1;
    for (int i = 0; rc == PSD_OK && i < self->size; i++) {
        rc = ps_rank_wait_for(self, "carrier", i, other, err);
        if (rc == PSD_OK && strcmp(word, other) != 0) {
            bool is_ours = word[0] != '\0';

            return psd_error_set(
                err, PSD_INVALID, "PSD_TRANSPORT is \"%s\" in rank %d, and not in rank %d",
                is_ours ? word : other, is_ours ? self->rank : i, is_ours ? i : self->rank);
        }
        if (rc == PSD_OK) {
            rc = ps_rank_wait_for(self, "host", i, other, err);
        }
        *ret_far = rc == PSD_OK && *ret_far < 0 && strcmp(host, other) != 0 ? i : *ret_far;
    }
    return rc;
}

/* The address that this host has on its way to that rank's. */
static psd_status_t find_own(const ps_rank_place_t *self, int rank, char ret_own[PS_ADDRESS_SIZE],
                             psd_error_t *err)
{
    char list[PS_CARRIER_TEXT] = "";

    (void)ps_rank_find("addresses", rank, list); /* it was said before its host */
    for (char *at = list; *at != '\0';) {
        char *end = at + strcspn(at, " ");
        bool is_same = false; /* both hosts have one of that address, for themselves */

        *end = '\0';
        if (ps_own_address(at, ret_own, &is_same, NULL) == PSD_OK && !is_same) {
            return PSD_OK;
        }
        at = end + 1;
    }
    return psd_error_set(err, PSD_CONNECT,
                         "no way from rank %d to the host of rank %d is known: set "
                         "PSD_LISTEN_ENDPOINTS=tcp://ADDRESS:0 on each host",
                         self->rank, rank);
}

psd_status_t ps_rank_listen(const ps_rank_place_t *self, int far,
                            char ret_listen[PS_RANK_LISTEN_SIZE], psd_error_t *err)
{
    char own[PS_ADDRESS_SIZE] = "";
    psd_status_t rc = PSD_OK;

    ret_listen[0] = '\0';
    if (ps_ranks_use() == PS_RANKS_ALONE) {
        ps_rank_name(self, own);
        (void)snprintf(ret_listen, PS_RANK_LISTEN_SIZE, "tcp://%s:0", own);
    } else if (getenv("PSD_LISTEN_ENDPOINTS") == NULL && far < 0) {
        (void)snprintf(ret_listen, PS_RANK_LISTEN_SIZE, "tcp://127.0.0.1:0");
    } else if (getenv("PSD_LISTEN_ENDPOINTS") == NULL) {
        rc = find_own(self, far, own, err);
    }
    if (rc == PSD_OK && own[0] != '\0' && ret_listen[0] == '\0') {
        (void)snprintf(ret_listen, PS_RANK_LISTEN_SIZE,
                       strchr(own, ':') == NULL ? "tcp://%s:0" : "tcp://[%s]:0", own);
    }
    return rc;
}
