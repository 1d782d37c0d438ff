/* SPDX-License-Identifier: Apache-2.0 */
/* Picks the loop with the widest instructions that the processor has. */
#include "model/updaters/finite.h"

#include "model/updaters/loops.h"

bool ps_finite_all(ps_type_t type, const uint8_t *values, size_t n)
{
    switch (type) {
    case PS_TYPE_F32:
        return ps_loops_best()->finite_f32(values, n);
    case PS_TYPE_F64:
        return ps_loops_best()->finite_f64(values, n);
    case PS_TYPE_I32:
    case PS_TYPE_I64:
    default:
        return true;
    }
}
