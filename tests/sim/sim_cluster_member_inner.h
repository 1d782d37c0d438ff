/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the files of a member. */
#ifndef PS_TESTS_SIM_CLUSTER_MEMBER_INNER_H
#define PS_TESTS_SIM_CLUSTER_MEMBER_INNER_H

#include "sim_cluster_lead.h"

static inline uint64_t member_clock(const cluster_t *self, uint32_t at)
{
    return self->now_ms + self->members[at].offset_ms;
}

static inline uint64_t member_id(uint32_t at)
{
    return at + 1;
}

/* sim_cluster_member.c: its thread */
/* Does what the machine wants, then begins a flush. */
void member_turn(cluster_t *self, uint32_t at);
/* Its main thread looks what is new. */
void member_wake_main(cluster_t *self, uint32_t at);
ps_quorum_snapshot_t member_snapshot(const cluster_db_t *db);

/* sim_cluster_member_main.c: its main thread */
/* As ps_registry_db_load. */
void member_load(cluster_t *self, uint32_t at);
#endif
