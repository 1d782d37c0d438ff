/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/agent/heard.h: which words of a registry count, and what may be dropped. */
#include "protocol/agent/heard.h"

#include "base/alloc.h"
#include "support/command_sample.h"

#include <criterion/criterion.h>

Test(heard, judges_words)
{
    static const struct {
        uint8_t lineage; /* the node follows 2, and has left 1 */
        uint64_t term;   /* it has heard of term 5, index 50 */
        uint64_t index;
        ps_heard_word_t word;
    } rows[] = {
        {2, 5, 50, PS_HEARD_NEWEST}, {2, 5, 51, PS_HEARD_NEWEST}, {2, 6, 1, PS_HEARD_NEWEST},
        {2, 5, 49, PS_HEARD_OLDER},  {2, 4, 90, PS_HEARD_OLDER},  {1, 9, 90, PS_HEARD_PAST},
        {3, 0, 0, PS_HEARD_OTHER},   {3, 9, 90, PS_HEARD_OTHER},
    };
    ps_heard_t heard = {.at = {.lineage = sample_id(1), .term = 3, .index = 7}};

    ps_heard_follow(&heard, &(ps_moment_t){.lineage = sample_id(2), .term = 5, .index = 50});
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const ps_moment_t moment = {
            .lineage = sample_id(rows[i].lineage), .term = rows[i].term, .index = rows[i].index};

        cr_expect_eq(ps_heard_judge(&heard, &moment), rows[i].word, "row %zu", i);
    }
}

Test(heard, decides_about_tables)
{
    static const struct {
        ps_heard_word_t word;
        uint32_t table; /* 7 is aside; the registry has given out numbers up to 9 */
        ps_table_fate_t fate;
    } rows[] = {
        {PS_HEARD_NEWEST, 3, PS_FATE_DROPPED}, {PS_HEARD_NEWEST, 9, PS_FATE_DROPPED},
        {PS_HEARD_NEWEST, 10, PS_FATE_ASIDE},  {PS_HEARD_NEWEST, 7, PS_FATE_ASIDE},
        {PS_HEARD_OTHER, 3, PS_FATE_ASIDE},    {PS_HEARD_PAST, 3, PS_FATE_ASIDE},
        {PS_HEARD_OLDER, 3, PS_FATE_ASIDE},
    };
    PSD_AUTO(ps_heard_done) ps_heard_t heard = {.n_past = 0};

    cr_assert(ps_heard_put_aside(&heard, 7));
    cr_assert(ps_heard_put_aside(&heard, 7));
    cr_assert_eq(heard.n_aside, 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_expect_eq(ps_heard_fate(&heard, rows[i].word, 9, rows[i].table), rows[i].fate, "row %zu",
                     i);
    }
    cr_assert(ps_heard_take_back(&heard, 7));
    cr_assert_not(ps_heard_take_back(&heard, 7));
    cr_assert_eq(ps_heard_fate(&heard, PS_HEARD_NEWEST, 9, 7), PS_FATE_DROPPED);
}

Test(heard, remembers_the_last_lineages_that_it_left)
{
    ps_heard_t heard = {.n_past = 0};

    for (uint8_t i = 1; i <= PS_PAST_MAX + 2; i++) {
        ps_heard_follow(&heard, &(ps_moment_t){.lineage = sample_id(i)});
    }
    cr_assert_eq(heard.n_past, PS_PAST_MAX);
    cr_assert_eq(ps_heard_judge(&heard, &(ps_moment_t){.lineage = sample_id(1)}), PS_HEARD_OTHER);
    cr_assert_eq(ps_heard_judge(&heard, &(ps_moment_t){.lineage = sample_id(2)}), PS_HEARD_PAST);
    cr_assert_eq(ps_heard_judge(&heard, &(ps_moment_t){.lineage = sample_id(PS_PAST_MAX + 1)}),
                 PS_HEARD_PAST);
}

Test(heard, copies)
{
    PSD_AUTO(ps_heard_done) ps_heard_t heard = {.session = 4, .last_table = 5};
    PSD_AUTO(ps_heard_done) ps_heard_t copy = {0};
    PSD_AUTO(ps_heard_done) ps_heard_t none = {0};

    cr_assert(ps_heard_put_aside(&heard, 7));
    cr_assert(ps_heard_put_aside(&heard, 8));
    cr_assert(ps_heard_copy(&heard, &copy));
    cr_assert(ps_heard_take_back(&heard, 7));
    cr_assert(ps_heard_is_aside(&copy, 7) && ps_heard_is_aside(&copy, 8));
    cr_assert_eq(copy.last_table, 5);
    ps_heard_done(&heard);
    cr_assert(ps_heard_copy(&heard, &none));
    cr_assert_eq(none.n_aside, 0);
}
