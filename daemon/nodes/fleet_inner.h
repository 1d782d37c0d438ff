/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the fleet. */
#ifndef PS_DAEMON_FLEET_INNER_H
#define PS_DAEMON_FLEET_INNER_H

#include "daemon/nodes/fleet.h"

struct ps_fleet {
    ps_fleet_args_t is;
    ps_overseer_t *overseer; /* owned */
    ps_inquiry_t *last;      /* the last question that is not done; borrowed */
    uint64_t look;           /* the shards' serial: what the partitions here take;
                                0: not asked */
    uint64_t look_ms;        /* when that is asked next */
    psd_error_t *err;        /* owned; of the present step */
};

/* fleet_send.c: sends what the overseer names. */
void ps_fleet_send_due(ps_fleet_t *self);
/* A node could not apply an update. */
void ps_fleet_log_refusal(const char *node, ps_tell_kind_t kind, uint32_t id, psd_status_t status,
                          const char *text);
#endif
