/* SPDX-License-Identifier: Apache-2.0 */
/* ps_server_host - what a node is told by, and tells, the program that it is in */
#ifndef PS_SERVER_HOST_H
#define PS_SERVER_HOST_H

#include <stdint.h>

typedef struct ps_server_host {
    int end_fd; /* borrowed; readable: a start that waits for the registry shall end. -1: none */
    void (*notify)(const char *text); /* states as of sd_notify(3); any thread; NULL: nobody
                                         wants them */
    uint64_t watchdog_ms; /* of notify's receiver; 0: there is none, and no WATCHDOG=1 */
} ps_server_host_t;
#endif
