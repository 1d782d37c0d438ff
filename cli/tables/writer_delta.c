/* SPDX-License-Identifier: Apache-2.0 */
/* Differences of values. */
#include "cli/tables/writer_delta.h"

#include <string.h>

/* Unsigned, so that an overflow wraps as the server's addition does. Returns
 * whether the result is certain. */
#define DELTA_ONE(ctype, exact)                                              \
    {                                                                        \
        ctype want, have, delta;                                             \
        memcpy(&want, (const char *)wanted + i * sizeof want, sizeof want);  \
        memcpy(&have, (const char *)current + i * sizeof have, sizeof have); \
        delta = want - have;                                                 \
        certain = certain && ((exact) || have == 0);                         \
        memcpy((char *)ret_deltas + i * sizeof delta, &delta, sizeof delta); \
    }

bool ps_writer_delta(ps_type_t type, const void *wanted, const void *current, size_t n,
                     void *ret_deltas)
{
    bool certain = true;

    for (size_t i = 0; i < n; i++) {
        switch (type) {
        case PS_TYPE_I32:
            DELTA_ONE(uint32_t, true);
            break;
        case PS_TYPE_I64:
            DELTA_ONE(uint64_t, true);
            break;
        case PS_TYPE_F32:
            DELTA_ONE(float, false);
            break;
        case PS_TYPE_F64:
        default:
            DELTA_ONE(double, false);
        }
    }
    return certain;
}
