/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "base/alloc.h"
#include "server/shards/shard_news.h"

static ps_shard_news_t *news; /* large */

static void make_news(void)
{
    news = ps_alloc(1, sizeof *news);
    cr_assert_not_null(news);
}

static void free_news(void)
{
    ps_free(news);
}

TestSuite(shard_news, .init = make_news, .fini = free_news);

static void add(uint64_t from, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        ps_shard_news_add(news, &(ps_report_t){.lsn = from + i});
    }
}

Test(shard_news, nothing_to_say_is_no_letter)
{
    cr_expect(!ps_shard_news_seal(news));
}

Test(shard_news, a_letter_is_away_until_it_is_given_back)
{
    add(1, 2);
    cr_assert(ps_shard_news_seal(news));
    cr_expect_eq(news->n_letter, 2);
    cr_expect_eq(news->letter[1].lsn, 2);
    add(3, 1);
    cr_expect(!ps_shard_news_seal(news));
    cr_expect_eq(news->letter[0].lsn, 1, "nobody writes while it is read");
    ps_shard_news_give_back(news);
    cr_assert(ps_shard_news_seal(news));
    cr_expect_eq(news->n_letter, 1);
    cr_expect_eq(news->letter[0].lsn, 3);
}

Test(shard_news, what_does_not_fit_into_one_letter_goes_with_the_next_in_order)
{
    uint64_t lsn = 0;

    add(1, PS_SHARD_NEWS_LETTER + 5);
    while (ps_shard_news_seal(news)) {
        for (uint32_t i = 0; i < news->n_letter; i++) {
            cr_expect_eq(news->letter[i].lsn, ++lsn);
        }
        ps_shard_news_give_back(news);
    }
    cr_expect_eq(lsn, PS_SHARD_NEWS_LETTER + 5);
}

Test(shard_news, what_is_too_much_is_left_out)
{
    add(1, PS_SHARD_NEWS_KEPT + 7);
    cr_expect_eq(news->n_kept, PS_SHARD_NEWS_KEPT);
    cr_expect_eq(news->kept[PS_SHARD_NEWS_KEPT - 1].lsn, PS_SHARD_NEWS_KEPT);
}
