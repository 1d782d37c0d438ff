/* SPDX-License-Identifier: Apache-2.0 */
/* ps_finite - looks for NaN and infinities among wire bytes */
#ifndef PS_MODEL_FINITE_H
#define PS_MODEL_FINITE_H

#include "base/slice.h"

/* True when none of the n values (any alignment) is NaN or infinite. Integers
 * always are finite. */
bool ps_finite_all(ps_type_t type, const uint8_t *values, size_t n);
#endif
