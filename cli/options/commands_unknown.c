/* SPDX-License-Identifier: Apache-2.0 */
/* The commands about tables that nodes have and the registry does not know. */
#include "cli/options/commands.h"

#include "cli/cluster/cluster.h"

static const ps_example_t UNKNOWN_EXAMPLES[] = {
    {"pscli cluster registry unknown", "tables that nodes keep aside"},
    {"pscli cluster registry unknown -o json", "the same for a script; .missing: partitions that "
                                               "no node has whole"},
    {NULL, NULL}};

static const ps_example_t ACCEPT_EXAMPLES[] = {
    {"pscli cluster registry accept w", "table \"w\" is one of the cluster's again"},
    {"pscli cluster registry accept --all --dry-run", "what would be accepted"},
    {"pscli cluster registry accept --all", "all tables that nodes keep aside"},
    {NULL, NULL}};
static const ps_opt_t ACCEPT_OPTIONS[] = {
    {.name = "all", .help = "every table that nodes keep aside"},
    {.name = "accept-loss",
     .help = "also when nodes are down, or no node has some partitions whole: those start empty"},
    {.name = NULL}};

static const ps_example_t DISCARD_EXAMPLES[] = {
    {"pscli cluster registry discard w", "asks, then drops the rows on all nodes that are up"},
    {"pscli cluster registry discard 17 --yes", "by number, without a question"},
    {NULL, NULL}};

static const ps_example_t REBUILD_EXAMPLES[] = {
    {"pscli cluster rebuild --from-nodes --dry-run", "what was found on the nodes"},
    {"pscli cluster rebuild --from-nodes", "makes tables of it"},
    {NULL, NULL}};
static const ps_opt_t REBUILD_OPTIONS[] = {
    {.name = "from-nodes", .help = "from what the nodes have. Required"},
    {.name = "accept-loss",
     .help = "also when nodes are down, or no node has some partitions whole: those start empty"},
    {.name = NULL}};

const ps_cmd_t ps_cmds_unknown[] = {
    {.noun = "cluster",
     .verb = "registry unknown",
     .arguments = "",
     .summary = "list the tables that nodes keep aside",
     .details =
         "A registry that was restored, forced or rebuilt may not know tables that nodes "
         "have. Their rows stay, and nobody can read or change them, until the table is "
         "accepted or discarded. FOUND: partitions of which a node that is up has a whole copy.",
     .examples = UNKNOWN_EXAMPLES,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_registry_unknown},
    {.noun = "cluster",
     .verb = "registry accept",
     .arguments = "[TABLE]",
     .max_args = 1,
     .summary = "take back tables that nodes keep aside",
     .details = "TABLE is a name or a number. The newest whole copy of each partition becomes its "
                "primary; the others catch up. Refused while a node is down, as it may have newer "
                "copies, and where no node has a partition whole.",
     .examples = ACCEPT_EXAMPLES,
     .options = ACCEPT_OPTIONS,
     .flags = PS_CMD_DRY_RUN,
     .run = ps_cmd_registry_accept},
    {.noun = "cluster",
     .verb = "registry discard",
     .arguments = "TABLE",
     .min_args = 1,
     .max_args = 1,
     .summary = "drop a table that nodes keep aside",
     .details = "TABLE is a name or a number. Asks on a terminal; elsewhere it needs --yes. Nodes "
                "that are down keep theirs, and it is listed again when they are up.",
     .examples = DISCARD_EXAMPLES,
     .flags = PS_CMD_DRY_RUN,
     .run = ps_cmd_registry_discard},
    {.noun = "cluster",
     .verb = "rebuild",
     .arguments = "",
     .summary = "make a lost registry again from the nodes",
     .details = "After psd --rebuild-registry on one node, when all others are up again: accepts "
                "every table that nodes keep aside, as \"cluster registry accept --all\".",
     .examples = REBUILD_EXAMPLES,
     .options = REBUILD_OPTIONS,
     .flags = PS_CMD_DRY_RUN,
     .run = ps_cmd_cluster_rebuild},
    {.noun = NULL}};
