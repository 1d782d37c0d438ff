/* SPDX-License-Identifier: Apache-2.0 */
/* ps_writer_delta - the deltas that turn values into others */
#ifndef PS_CLI_WRITER_DELTA_H
#define PS_CLI_WRITER_DELTA_H

#include "base/slice.h"

/* deltas[i] = wanted[i] - current[i], integers modulo their size (as `add`
 * adds them). True when adding gives the wanted bits for certain: integers, or
 * every current value is zero. */
bool ps_writer_delta(ps_type_t type, const void *wanted, const void *current, size_t n,
                     void *ret_deltas);
#endif
