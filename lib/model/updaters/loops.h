/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_loops - the inner loops over values, compiled for several instruction sets
 *
 * What     The same loops once for every set, to the same bits: no set fuses a
 *          multiplication with an addition, and division and root are exact.
 * Threads  Constants; each call queries the processor, nothing is kept.
 */
#ifndef PS_MODEL_LOOPS_H
#define PS_MODEL_LOOPS_H

#include "model/tables/table.h"

#define PS_POWER_BITS 8 /* bits of a step count that one table of powers covers */
#define PS_POWER_SIZE 256
#define PS_POWER_TABLES 3
#define PS_STEPS_MAX ((UINT32_C(1) << (PS_POWER_BITS * PS_POWER_TABLES)) - 1)

/* b^t for t to PS_STEPS_MAX is the product of three table entries: the same
 * bits everywhere, which pow does not guarantee. */
typedef struct ps_powers {
    double of[PS_POWER_TABLES][PS_POWER_SIZE]; /* [k][i]: b^(i * 256^k) */
} ps_powers_t;

/* The data with which adam corrects the bias of its means after t steps. */
typedef struct ps_bias {
    double alpha;
    ps_powers_t beta1;
    ps_powers_t beta2;
} ps_bias_t;

/* An updater's settings in the table's type, and derived numbers: the factor
 * that a step of adamw leaves of the value; bias of adam and adamw, else
 * NULL. */
typedef struct ps_numbers_f32 {
#define SETTING(name, meaning) float name;
#include "model/tables/updaters.def"
    float keep;
    const ps_bias_t *bias;
} ps_numbers_f32_t;
typedef struct ps_numbers_f64 {
#define SETTING(name, meaning) double name;
#include "model/tables/updaters.def"
    double keep;
    const ps_bias_t *bias;
} ps_numbers_f64_t;

/* numbers: of the type; values, state, deltas and n as ps_updater_apply. */
typedef void ps_loop_t(const void *numbers, void *values, void *state, size_t state_stride,
                       const uint8_t *deltas, size_t n);

/* The same for n rows of `width` values each, whose deltas lie one row after
 * the other. Another process may write the deltas meanwhile: each delta is read
 * once, and a delta that is not finite leaves its value unchanged. */
typedef void ps_guarded_loop_t(const void *numbers, uint8_t *const *rows, size_t n, size_t width,
                               const uint8_t *deltas);

#define PS_LOOP_TYPES (PS_TYPE_F64 + 1)

typedef struct ps_loops {
    const char *name; /* of the instruction set */
    /* NULL if the rule does not take the type; dcasgd's state is the backup of
     * one worker */
    ps_loop_t *of[PS_UPDATER_KINDS][PS_LOOP_TYPES];
    /* For the most common rules without state, for floats; else NULL. For SGD,
     * the version without a penalty. */
    ps_guarded_loop_t *guarded[PS_UPDATER_KINDS][PS_LOOP_TYPES];
    bool (*finite_f32)(const uint8_t *values, size_t n);
    bool (*finite_f64)(const uint8_t *values, size_t n);
    /* Copies `size` bytes (a multiple of 64) to `to` (aligned to 64), with
     * non-temporal stores if the set has them. */
    void (*stream)(uint8_t *to, const uint8_t *from, size_t size);
    /* The same for n scattered rows of `size` bytes each, written one after the
     * other. Skips a row that is NULL. */
    void (*stream_rows)(uint8_t *to, uint8_t *const *rows, size_t n, size_t size);
    /* Store fence: streamed data becomes visible before later writes. */
    void (*stream_end)(void);
} ps_loops_t;

/* The i-th set that this processor supports, slowest first; NULL after the last
 * one. 0 runs on every machine. */
const ps_loops_t *ps_loops_at(size_t i);
/* The last of them. */
const ps_loops_t *ps_loops_best(void);
#endif
