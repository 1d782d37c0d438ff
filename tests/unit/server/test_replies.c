/* SPDX-License-Identifier: Apache-2.0 */
/* lib/server/state/replies.h: what was answered lately. */
#include "server/state/replies.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"

static ps_replies_t replies;

static void close_replies(void)
{
    ps_replies_done(&replies);
}

TestSuite(replies, .fini = close_replies);

static void keep(uint64_t session, uint64_t id, const char *text)
{
    ps_replies_keep(&replies, session, id,
                    (ps_bytes_t){.data = (const uint8_t *)text, .size = strlen(text)});
}

static bool is_kept(uint64_t session, uint64_t id, const char *text)
{
    ps_bytes_t found;

    return ps_replies_find(&replies, session, id, &found) && found.size == strlen(text) &&
           memcmp(found.data, text, found.size) == 0;
}

Test(replies, an_answer_is_found_by_session_and_id)
{
    ps_bytes_t found;

    cr_assert(!ps_replies_find(&replies, 1, 1, &found));
    keep(1, 1, "a");
    keep(1, 2, "b");
    keep(2, 1, "c");
    cr_assert(is_kept(1, 1, "a"));
    cr_assert(is_kept(1, 2, "b"));
    cr_assert(is_kept(2, 1, "c"));
    cr_assert(!ps_replies_find(&replies, 2, 2, &found));
}

Test(replies, the_oldest_goes_first)
{
    ps_bytes_t found;

    for (uint64_t id = 0; id < PS_REPLIES_MAX + 10; id++) {
        keep(1, id, "x");
    }
    cr_assert_eq(replies.n, PS_REPLIES_MAX);
    cr_assert(!ps_replies_find(&replies, 1, 9, &found));
    cr_assert(is_kept(1, 10, "x"));
    cr_assert(is_kept(1, PS_REPLIES_MAX + 9, "x"));
}

Test(replies, their_bytes_are_bounded)
{
    size_t size = 15 << 20;
    uint8_t *big = ps_alloc(size, 1);

    for (uint64_t id = 0; id < 20; id++) {
        ps_replies_keep(&replies, 1, id, (ps_bytes_t){big, size});
        cr_assert_leq(replies.bytes, PS_REPLIES_BYTES_MAX);
    }
    cr_assert_eq(replies.n, 4);
    ps_free(big);
}
