/* SPDX-License-Identifier: Apache-2.0 */
/* ps_moves - moves of copies as the registry plans them, for people */
#ifndef PS_CLI_MOVES_H
#define PS_CLI_MOVES_H

#include "cli/cli.h"
#include "cli/output/json_text.h"

/* How many, their bytes and time to stderr; each to stdout. reply has "moves",
 * "bytes", "seconds", …; those without a node to go to get words instead. */
void ps_moves_show(ps_cli_t *cli, json_t *reply);
#endif
