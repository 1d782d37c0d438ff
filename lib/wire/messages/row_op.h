/* SPDX-License-Identifier: Apache-2.0 */
/* ps_row_op - an operation that a push or pull runs on rows in the server,
 * other than updating and reading them; op 0: none */
#ifndef PS_WIRE_ROW_OP_H
#define PS_WIRE_ROW_OP_H

#include <stdint.h>

typedef struct ps_row_op {
    uint8_t op;       /* ps_change_op_t of a push, ps_read_op_t of a pull */
    uint32_t other;   /* the other table of AXPY and DOT, else 0 */
    uint64_t operand; /* bits of an f64; TOP: how many */
} ps_row_op_t;
#endif
