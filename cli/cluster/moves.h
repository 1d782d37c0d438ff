/* SPDX-License-Identifier: Apache-2.0 */
/* ps_moves - moves of copies as the registry plans them, for people */
#ifndef PS_CLI_MOVES_H
#define PS_CLI_MOVES_H

#include "cli/output/json_text.h"
#include "cli/run/cli.h"

/* The number of moves, their bytes and time go to stderr, each move to
 * stdout. reply has "moves", "bytes", "seconds", …; a move without a target
 * node gets words instead. */
void ps_moves_show(ps_cli_t *cli, json_t *reply);
#endif
