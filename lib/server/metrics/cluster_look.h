/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_cluster_look - what the registry's leader knows, for /metrics
 *
 * What     One look at the tables, jobs and nodes of the cluster, which the control
 *          thread leaves in a box every second.
 * Owner    Who has taken it; ps_cluster_look_destroy.
 */
#ifndef PS_SERVER_CLUSTER_LOOK_H
#define PS_SERVER_CLUSTER_LOOK_H

#include "model/tables/table.h"
#include "protocol/facts/counts.h"

#define PS_CLUSTER_LOOK_MS 1000 /* between two looks */

typedef struct ps_looked_name {
    uint32_t id;
    char name[PS_NAME_MAX + 1];
} ps_looked_name_t;

typedef struct ps_looked_job {
    ps_looked_name_t is;
    ps_job_counts_t counts;
} ps_looked_job_t;

typedef struct ps_looked_member {
    ps_looked_name_t is;
    ps_member_counts_t counts;
} ps_looked_member_t;

typedef struct ps_cluster_look {
    ps_looked_name_t *tables; /* owned, as the other lists */
    size_t n_tables;
    ps_looked_job_t *jobs; /* that have live workers */
    size_t n_jobs;
    ps_looked_member_t *members; /* the nodes */
    size_t n_members;
} ps_cluster_look_t;

/* Takes NULL, nulls *look_p. */
void ps_cluster_look_destroy(ps_cluster_look_t **look_p);

/* Where the control thread counts. */
typedef struct ps_control_meter {
    ps_control_counts_t counts;
    ps_box_t look; /* a ps_cluster_look_t */
} ps_control_meter_t;
#endif
