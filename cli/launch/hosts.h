/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_hosts - on which hosts workers run, and which of them where
 *
 * What     "a:2,b:2" or a file with a host a line ("a", "a:2", "a slots=2", "# …"). Hosts
 *          fill in their order, each with as many ranks as it has slots. Where no host names
 *          slots, each gets the same number, the first ones one more.
 * Owner    The caller (ps_hosts_done).
 */
#ifndef PS_CLI_HOSTS_H
#define PS_CLI_HOSTS_H

#include <stdint.h>

#include "cli/launch/quote.h"

#define PS_HOST_SIZE 256
#define PS_HOSTS_MAX 1024

typedef struct ps_host {
    char name[PS_HOST_SIZE]; /* as the user has it: "node1", "me@node1", "10.0.0.1", "::1" */
    uint32_t slots;          /* after ps_hosts_place: how many ranks run there */
    bool has_slots;          /* the list names them */
} ps_host_t;

typedef struct ps_hosts {
    ps_host_t *items; /* owned */
    size_t n;
} ps_hosts_t;

void ps_hosts_done(ps_hosts_t *self);
/* Errors: PSD_USAGE naming what is wrong, also a host that is there twice; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_hosts_parse(ps_hosts_t *ret_hosts, const char *list,
                                           psd_error_t *err);
/* Errors: also PSD_IO, when the file cannot be read; PSD_USAGE, when a line has more than 510
 * bytes. */
PSD_MUST_CHECK psd_status_t ps_hosts_read(ps_hosts_t *ret_hosts, const char *path,
                                          psd_error_t *err);
/* Gives each host its part of n ranks. Errors: PSD_USAGE, when there are fewer slots. */
PSD_MUST_CHECK psd_status_t ps_hosts_place(ps_hosts_t *self, uint32_t n, psd_error_t *err);
/* The host of a rank, after ps_hosts_place. */
const ps_host_t *ps_hosts_of(const ps_hosts_t *self, uint32_t rank);
/* The host without the user in front of it. */
const char *ps_host_address(const ps_host_t *self);
#endif
