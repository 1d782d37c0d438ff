/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guarded loops of one float type: a template, included once per type by
 * loops_body.c with these set:
 *
 *   REAL, BITS, NAME, EXPONENT   as for loops_float.h
 *   UNIT                         bytes of a vector
 *   KEEP(unit)                   makes the compiler forget where it came from
 *
 * Another process may write the deltas meanwhile. Each is read from memory
 * once, into a register: the checked value is the value used.
 */

typedef REAL NAME(reals) __attribute__((vector_size(UNIT)));
typedef BITS NAME(bits) __attribute__((vector_size(UNIT)));

/* The first `size` bytes of a vector of deltas. A compiler that does not know
 * the address cannot read it again. */
static inline NAME(bits) NAME(take)(const uint8_t *deltas, size_t size)
{
    NAME(bits) unit = {0};

    memcpy(&unit, deltas, size);
    KEEP(unit);
    return unit;
}

/* New values where the delta is finite, old ones elsewhere. */
static inline void NAME(settle)(uint8_t *values, NAME(reals) old, NAME(reals) merged,
                                NAME(bits) deltas, size_t size)
{
    NAME(bits) good = (NAME(bits))((deltas & EXPONENT) != EXPONENT);
    NAME(bits)
    bits = ((NAME(bits))merged & good) | ((NAME(bits))old & ~good);

    memcpy(values, &bits, size);
}

/* MERGED: of the values w and the deltas d, with the numbers u. */
#define GUARDED(rule, MERGED)                                                                 \
    static inline void NAME(rule##_unit)(const struct NAME(ps_numbers) * u, uint8_t * values, \
                                         const uint8_t *deltas, size_t size)                  \
    {                                                                                         \
        NAME(bits) bits = NAME(take)(deltas, size);                                           \
        NAME(reals) d = (NAME(reals))bits;                                                    \
        NAME(reals) w = {0};                                                                  \
                                                                                              \
        (void)u;                                                                              \
        memcpy(&w, values, size);                                                             \
        NAME(settle)(values, w, (MERGED), bits, size);                                        \
    }                                                                                         \
                                                                                              \
    static void NAME(rule)(const void *numbers, uint8_t *const *rows, size_t n, size_t width, \
                           const uint8_t *deltas)                                             \
    {                                                                                         \
        size_t size = width * sizeof(REAL);                                                   \
                                                                                              \
        for (size_t i = 0; i < n; i++, deltas += size) {                                      \
            size_t at = 0;                                                                    \
                                                                                              \
            for (; at + UNIT <= size; at += UNIT) {                                           \
                if (UNIT >= PS_LINE || at % PS_LINE == 0) {                                   \
                    ps_prefetch_next_page(deltas + at);                                       \
                }                                                                             \
                NAME(rule##_unit)(numbers, rows[i] + at, deltas + at, UNIT);                  \
            }                                                                                 \
            if (at < size) {                                                                  \
                NAME(rule##_unit)                                                             \
                (numbers, rows[i] + at, deltas + at, size - at);                              \
            }                                                                                 \
        }                                                                                     \
    }

GUARDED(guarded_add, w + d)
GUARDED(guarded_assign, d)
GUARDED(guarded_sgd, w - u->alpha * d)

#undef GUARDED
