/* SPDX-License-Identifier: Apache-2.0 */
/* Every operation of the control port; docs/protocol.md describes them. */
#include "server/control_ops.h"

#include <assert.h>

#include "server/state/control_inner.h"

/* An operation without a row of trust_kinds.def does not build. */
#define ROW(op) #op, PS_TRUST_OP_##op

const ps_control_row_t ps_control_ops[] = {
    {ROW(hello), ps_control_hello, true, false, PS_ASK_NONE},
    {ROW(table_create), ps_control_table_create, false, true, PS_ASK_NONE},
    {ROW(table_open), ps_control_table_open, false, false, PS_ASK_NONE},
    {ROW(routes), ps_control_routes, false, false, PS_ASK_NONE},
    {ROW(table_list), ps_control_table_list, false, false, PS_ASK_INSPECT},
    {ROW(table_inspect), ps_control_table_inspect, false, false, PS_ASK_INSPECT},
    {ROW(table_drop), ps_control_table_drop, false, true, PS_ASK_NONE},
    {ROW(table_ack), ps_control_table_ack, false, true, PS_ASK_NONE},
    {ROW(table_set), ps_control_table_set, false, true, PS_ASK_NONE},
    {ROW(job_join), ps_control_job_join, false, true, PS_ASK_NONE},
    {ROW(job_leave), ps_control_job_leave, false, true, PS_ASK_NONE},
    {ROW(heartbeat), ps_control_heartbeat, false, false, PS_ASK_NONE},
    {ROW(job_tables), ps_control_job_tables, false, false, PS_ASK_REACHED},
    {ROW(job_state), ps_control_job_state, false, false, PS_ASK_NONE},
    {ROW(barrier), ps_control_barrier, false, true, PS_ASK_NONE},
    {ROW(work_open), ps_control_work_open, false, false, PS_ASK_NONE},
    {ROW(work_next), ps_control_work_next, false, false, PS_ASK_NONE},
    {ROW(work_done), ps_control_work_done, false, false, PS_ASK_NONE},
    {ROW(work_idle), ps_control_work_idle, false, false, PS_ASK_NONE},
    {ROW(job_list), ps_control_job_list, false, false, PS_ASK_NONE},
    {ROW(job_inspect), ps_control_job_inspect, false, false, PS_ASK_JOB},
    {ROW(job_stop), ps_control_job_stop, false, true, PS_ASK_NONE},
    {ROW(worker_list), ps_control_worker_list, false, false, PS_ASK_JOB},
    {ROW(clock_list), ps_control_clock_list, false, false, PS_ASK_NONE},
    {ROW(clock_inspect), ps_control_clock_inspect, false, false, PS_ASK_JOB},
    {ROW(why), ps_control_why, false, false, PS_ASK_JOB},
    {ROW(slow), ps_control_slow, false, false, PS_ASK_NONE},
    {ROW(cluster_status), ps_control_cluster_status, false, false, PS_ASK_BRIEFLY},
    {ROW(cluster_events), ps_control_cluster_events, false, false, PS_ASK_NONE},
    {ROW(cluster_backup), ps_control_cluster_backup, false, false, PS_ASK_NONE},
    {ROW(registry_unknown), ps_control_registry_unknown, false, false, PS_ASK_NONE},
    {ROW(registry_accept), ps_control_registry_accept, false, true, PS_ASK_NONE},
    {ROW(registry_discard), ps_control_registry_discard, false, true, PS_ASK_NONE},
    {ROW(checkpoint_create), ps_control_checkpoint_create, false, true, PS_ASK_NONE},
    {ROW(checkpoint_restore), ps_control_checkpoint_restore, false, true, PS_ASK_NONE},
    {ROW(checkpoint_verify), ps_control_checkpoint_verify, false, true, PS_ASK_NONE},
    {ROW(checkpoint_look), ps_control_checkpoint_look, false, true, PS_ASK_NONE},
    {ROW(checkpoint_list), ps_control_checkpoint_list, false, false, PS_ASK_NONE},
    {ROW(checkpoint_inspect), ps_control_checkpoint_inspect, false, false, PS_ASK_NONE},
    {ROW(checkpoint_drop), ps_control_checkpoint_drop, false, true, PS_ASK_NONE},
    {ROW(node_list), ps_control_node_list, false, false, PS_ASK_INSPECT},
    {ROW(node_inspect), ps_control_node_inspect, false, false, PS_ASK_INSPECT},
    {ROW(node_drain), ps_control_node_drain, false, true, PS_ASK_INSPECT},
    {ROW(node_remove), ps_control_node_remove, false, true, PS_ASK_NONE},
    {ROW(cluster_rebalance), ps_control_cluster_rebalance, false, false, PS_ASK_INSPECT},
    {ROW(cluster_repair), ps_control_cluster_repair, false, false, PS_ASK_INSPECT},
    {ROW(registry_list), ps_control_registry_list, true, false, PS_ASK_NONE},
    {ROW(registry_set), ps_control_registry_set, false, true, PS_ASK_NONE},
    {ROW(settings), ps_control_settings, false, false, PS_ASK_NONE},
    {ROW(setting_set), ps_control_setting_set, false, true, PS_ASK_NONE},
    {ROW(registry_transfer), ps_control_registry_transfer, false, true, PS_ASK_NONE},
    {ROW(auth_list), ps_control_auth_list, false, false, PS_ASK_NONE},
    {ROW(auth_allow), ps_control_auth_allow, false, true, PS_ASK_NONE},
    {ROW(auth_deny), ps_control_auth_deny, false, true, PS_ASK_NONE},
    {ROW(auth_can), ps_control_auth_can, false, false, PS_ASK_NONE},
    {ROW(auth_whoami), ps_control_auth_whoami, false, false, PS_ASK_NONE},
    {ROW(auth_audit), ps_control_auth_audit, false, false, PS_ASK_NONE},
    {ROW(node_join), ps_control_node_join, true, false, PS_ASK_NONE},
    {ROW(node_announce), ps_control_node_old, true, false, PS_ASK_NONE},
    {ROW(node_beat), ps_control_node_old, true, false, PS_ASK_NONE},
    {ROW(node_answer), ps_control_node_old, true, false, PS_ASK_NONE},
    {ROW(node_report), ps_control_node_old, true, false, PS_ASK_NONE},
    {ROW(node_end), ps_control_node_old, true, false, PS_ASK_NONE},
};
const size_t ps_control_n_ops = sizeof ps_control_ops / sizeof ps_control_ops[0];
static_assert(sizeof ps_control_ops / sizeof ps_control_ops[0] == PS_TRUST_OPS_COUNT,
              "an operation for each row of trust_kinds.def");
