/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room cli/cluster: commands about the cluster and its nodes
 *
 * It is       State, events, nodes, moves of copies, backups of the registry,
 *             plans, explanations of errors, keys and principals. Commands about
 *             members of a registry of several, or about groups of nodes, belong
 *             here.
 * It uses     run, output, lib/model for plans, lib/storage for backups,
 *             lib/data/streams for files, lib/transport for reasons and keys,
 *             lib/protocol for kinds of events, lib/base.
 * It ignores  Jobs and rows.
 * Start at    cmd_cluster.c.
 */
#ifndef PS_CLI_CLUSTER_H
#define PS_CLI_CLUSTER_H

#include "cli/run/cli.h"

psd_status_t ps_cmd_cluster_status(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_cluster_events(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_cluster_backup(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_cluster_restore(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_registry_unknown(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_registry_accept(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_registry_discard(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_cluster_rebuild(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_node_list(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_node_inspect(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_node_invite(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_node_drain(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_node_remove(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_cluster_rebalance(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_cluster_repair(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_cluster_settings(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_cluster_get(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_cluster_set(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_cluster_unset(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_registry_list(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_registry_add(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_registry_remove(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_registry_transfer(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_registry_inspect(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_registry_single(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_node_promote(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_node_demote(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_auth_keygen(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_auth_list(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_auth_allow(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_auth_invite(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_auth_accept(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_auth_deny(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_auth_rotate(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_auth_can(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_auth_whoami(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_auth_audit(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_plan(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_explain(ps_cli_t *cli, psd_error_t *err);
#endif
