/* SPDX-License-Identifier: Apache-2.0 */
/* The loops by instruction set, for loops.c and loops_body.c only; meson.build
 * of this room builds the same sets. */
#ifndef PS_MODEL_LOOPS_SETS_H
#define PS_MODEL_LOOPS_SETS_H

#include "model/updaters/loops.h"

extern const ps_loops_t ps_loops_plain;
extern const ps_loops_t ps_loops_avx2;
extern const ps_loops_t ps_loops_avx512; /* F and DQ */
#endif
