/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_init - the first value of a cell, from (table seed, row, column) alone
 *
 * What     The same on every machine, whichever client touches the row first
 *          and at any time. uniform: 53 bits (f64) or 24 bits (f32) of the
 *          generator, 64 bits folded onto the range for integers; normal:
 *          Box-Muller over two such numbers. Constants of an f32 table are
 *          rounded to it.
 * Source   Philox, see base/rng.h; Box and Muller, Ann. Math. Stat. 1958.
 */
#ifndef PS_MODEL_INIT_H
#define PS_MODEL_INIT_H

#include "model/tables/table.h"

/* True when every first value is zero (a constant 0 too). */
bool ps_init_is_zero(const ps_init_spec_t *self);
/* Writes n values of the spec's type for columns first_col … of the row. */
void ps_init_fill(const ps_table_spec_t *spec, uint64_t row, uint32_t first_col, uint32_t n,
                  uint8_t *ret_values);
#endif
