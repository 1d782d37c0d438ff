/* SPDX-License-Identifier: Apache-2.0 */
/* pscli node: the psd processes of the cluster. */
#include "cli/cluster/cmd_node.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/cluster/cluster.h"
#include "cli/output/json_text.h"

const ps_column_t ps_node_columns[] = {{"NODE", "name", PS_UNIT_NONE, false},
                                       {"STATE", "state", PS_UNIT_NONE, false},
                                       {"SHARDS", "shards", PS_UNIT_COUNT, false},
                                       {"WEIGHT", "weight", PS_UNIT_NONE, true},
                                       {"PRIMARY", "partitions.primary", PS_UNIT_NONE, false},
                                       {"REPLICA", "partitions.replica", PS_UNIT_NONE, false},
                                       {"MEMORY", "bytes", PS_UNIT_BYTES, false},
                                       {"TAIL", "tail_bytes", PS_UNIT_BYTES, false},
                                       {"SEEN", "last_seen_s", PS_UNIT_SECONDS, false},
                                       {"ENDPOINT", "endpoint", PS_UNIT_NONE, false},
                                       {"INCARNATION", "incarnation", PS_UNIT_NONE, true},
                                       {NULL, NULL, PS_UNIT_NONE, false}};

static const ps_column_t INSPECT[] = {
    {"NODE", "node.name|name", PS_UNIT_NONE, false},
    {"STATE", "node.state|state", PS_UNIT_NONE, false},
    {"ENDPOINT", "node.endpoint|endpoint", PS_UNIT_NONE, false},
    {"INCARNATION", "node.incarnation|incarnation", PS_UNIT_NONE, false},
    {"SHARDS", "node.shards|shards", PS_UNIT_COUNT, false},
    {"WEIGHT", "node.weight|weight", PS_UNIT_NONE, false},
    {"PRIMARY", "node.partitions.primary|partitions.primary", PS_UNIT_NONE, false},
    {"REPLICA", "node.partitions.replica|partitions.replica", PS_UNIT_NONE, false},
    {"MEMORY", "node.bytes|bytes", PS_UNIT_BYTES, false},
    {"TAIL", "node.tail_bytes|tail_bytes", PS_UNIT_BYTES, false},
    {"SEEN", "node.last_seen_s|last_seen_s", PS_UNIT_SECONDS, false},
    {NULL, NULL, PS_UNIT_NONE, false}};

psd_status_t ps_cmd_node_list(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc = ps_cli_request(cli, "node_list", NULL, NULL, &reply, err);

    if (rc == PSD_OK) {
        ps_out_list(&cli->out, reply, "nodes", ps_node_columns);
    }
    return rc;
}

static void show_node(const ps_cli_t *cli, const char *name, const json_t *node,
                      const json_t *reply)
{
    char memory[PS_NUMBER_SIZE];

    ps_bytes_format((double)ps_json_u64(node, "bytes"), memory);
    ps_out_answer(&cli->out, reply, INSPECT,
                  "node \"%s\" at %s is %s: %" PRIu64 " shards, %" PRIu64 " primaries, %" PRIu64
                  " replicas, %s",
                  name, ps_json_text(node, "endpoint"), ps_json_text(node, "state"),
                  ps_json_u64(node, "shards"), ps_json_u64(node, "partitions.primary"),
                  ps_json_u64(node, "partitions.replica"), memory);
}

psd_status_t ps_cmd_node_inspect(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    const char *name = NULL;
    psd_status_t rc = ps_cli_name(cli, 0, "NAME", &name, err);

    if (rc == PSD_OK) {
        rc = ps_cli_request(cli, "node_inspect", "name", name, &reply, err);
    }
    if (rc == PSD_OK) {
        show_node(cli, name, ps_json_at(reply, "node"), reply);
    }
    return rc;
}
