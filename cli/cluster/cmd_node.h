/* SPDX-License-Identifier: Apache-2.0 */
/* ps_node_columns - how a node is shown, also by `cluster status` */
#ifndef PS_CLI_CMD_NODE_H
#define PS_CLI_CMD_NODE_H

#include "cli/output/output.h"

extern const ps_column_t ps_node_columns[];
#endif
