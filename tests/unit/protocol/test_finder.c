/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/session/finder.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

#define A "tcp://a:1"
#define B "tcp://b:1"
#define C "tcp://c:1"
#define NONE "null"
#define LEADER(node, endpoint) "{\"node\":\"" node "\",\"endpoint\":\"" endpoint "\"}"

static ps_finder_t finder_of(const char *list)
{
    ps_finder_t finder;
    psd_status_t rc = ps_finder_init(&finder, list, NULL);

    cr_assert_eq(rc, PSD_OK);
    return finder;
}

static bool hear(ps_finder_t *self, const char *text, uint64_t now_ms)
{
    ps_doc_t *doc = NULL;
    psd_status_t rc = ps_doc_parse((ps_bytes_t){(const uint8_t *)text, strlen(text)}, &doc, NULL);
    bool is_registry = false;

    cr_assert_eq(rc, PSD_OK, "%s", text);
    is_registry = ps_finder_heard(self, doc, now_ms);
    ps_doc_destroy(&doc);
    return is_registry;
}

/* The node at the finder's address is not the registry. */
static void refer(ps_finder_t *self, const char *node, const char *leader, uint64_t now_ms)
{
    char text[500];

    (void)snprintf(text, sizeof text,
                   "{\"status\":\"NOT_LEADER\",\"node\":\"%s\",\"leader\":%s,"
                   "\"members\":[" LEADER("a", A) "]}",
                   node, leader);
    cr_assert_not(hear(self, text, now_ms));
}

static void assert_goes(ps_finder_t *self, uint64_t now_ms, const char *endpoint)
{
    bool moved = false;

    cr_assert(ps_finder_look(self, now_ms, &moved), "nothing is due at %d", (int)now_ms);
    cr_assert_str_eq(ps_finder_endpoint(self), endpoint);
}

static void assert_stays(ps_finder_t *self, uint64_t now_ms)
{
    bool moved = false;

    cr_assert_not(ps_finder_look(self, now_ms, &moved));
}

static void assert_says(const ps_finder_t *self, const char *text)
{
    char is[PS_FINDER_TEXT];

    ps_finder_print(self, is);
    cr_assert_str_eq(is, text);
}

static void assert_bad(const char *list, const char *text)
{
    psd_error_t *err = psd_error_new();
    ps_finder_t finder;

    cr_assert_eq(ps_finder_init(&finder, list, err), PSD_INVALID, "%s", list);
    cr_assert_not_null(strstr(psd_error_text(err), text), "%s", psd_error_text(err));
    psd_error_destroy(&err);
}

Test(finder, the_first_address_is_asked_first)
{
    ps_finder_t f = finder_of(A "," B ",ipc:///run/psd/psd.ipc");

    cr_assert_eq(f.n, 3);
    cr_assert_str_eq(ps_finder_endpoint(&f), A);
    cr_assert_str_eq(f.items[2].endpoint, "ipc:///run/psd/psd.ipc");
    cr_assert_eq(ps_finder_due_ms(&f), UINT64_MAX);
}

Test(finder, an_address_twice_counts_once)
{
    cr_assert_eq(finder_of(A "," B "," A).n, 2);
}

Test(finder, a_bad_list_names_the_place)
{
    char many[PS_FINDER_GIVEN_MAX * 20] = "";
    char whole[400] = A ",tcp://";

    assert_bad(A "," B ",", "address 3 of the list is empty");
    assert_bad("," A, "address 1 of the list is empty");
    assert_bad(A ",nonsense", "address 2 of the list is \"nonsense\"; allowed: tcp://HOST:PORT");
    assert_bad(A ", " B, "address 2 of the list is \" tcp://b:1\"");
    for (size_t i = strlen(whole); i < 300; i++) {
        whole[i] = 'x';
    }
    assert_bad(whole, "address 2 of the list has 290 bytes; allowed: 1..255");
    for (int i = 0; i <= PS_FINDER_GIVEN_MAX; i++) {
        size_t size = strlen(many);

        (void)snprintf(many + size, sizeof many - size, "%stcp://h:%d", i == 0 ? "" : ",", i);
    }
    assert_bad(many, "the list has more than 16 addresses");
}

Test(finder, an_address_alone_is_never_left)
{
    ps_finder_t f = finder_of(A);

    ps_finder_asked(&f, 0);
    assert_stays(&f, 100000);
    cr_assert_eq(ps_finder_due_ms(&f), UINT64_MAX);
    assert_says(&f, A " is silent");
    cr_assert_eq(ps_finder_status(&f), PSD_CONNECT);
}

Test(finder, a_silent_address_is_left_for_the_next_with_more_patience_each_round)
{
    ps_finder_t f = finder_of(A "," B);

    ps_finder_asked(&f, 1000);
    cr_assert_eq(ps_finder_due_ms(&f), 1000 + PS_FINDER_PATIENCE_MS);
    assert_stays(&f, 999 + PS_FINDER_PATIENCE_MS);
    assert_goes(&f, 1000 + PS_FINDER_PATIENCE_MS, B);
    ps_finder_asked(&f, 2000);
    assert_goes(&f, 2000 + PS_FINDER_PATIENCE_MS, A);
    ps_finder_asked(&f, 3000);
    assert_stays(&f, 2999 + 2 * PS_FINDER_PATIENCE_MS);
    assert_goes(&f, 3000 + 2 * PS_FINDER_PATIENCE_MS, B);
    assert_says(&f, A " is silent, " B " is silent");
}

Test(finder, an_answer_keeps_the_address)
{
    ps_finder_t f = finder_of(A "," B);

    ps_finder_asked(&f, 0);
    cr_assert(hear(&f, "{\"status\":\"NO_TABLE\"}", 10));
    assert_stays(&f, 100000);
    cr_assert_eq(ps_finder_due_ms(&f), UINT64_MAX);
    ps_finder_asked(&f, 200000); /* it has more patience with a registry */
    assert_goes(&f, 200000 + PS_FINDER_PATIENCE_FOUND_MS, B);
}

Test(finder, the_leader_that_a_node_names_is_asked_at_once)
{
    ps_finder_t f = finder_of(B);

    ps_finder_asked(&f, 0);
    refer(&f, "b", LEADER("a", A), 5);
    cr_assert_eq(ps_finder_due_ms(&f), 5);
    assert_goes(&f, 5, A);
    ps_finder_asked(&f, 5);
    cr_assert(hear(&f, "{\"status\":\"OK\"}", 9));
    assert_says(&f, B " (node b) names another node, " A " (node a) answered last");
}

Test(finder, a_node_without_a_leader_is_left_after_a_pause)
{
    ps_finder_t f = finder_of(B "," C);

    ps_finder_asked(&f, 0);
    refer(&f, "b", NONE, 5);
    assert_stays(&f, 4 + PS_FINDER_PAUSE_MS);
    assert_goes(&f, 5 + PS_FINDER_PAUSE_MS, C);
    assert_says(&f, B " (node b) says there is no leader, " C " was not asked yet, " A
                      " (node a) was not asked yet");
    cr_assert_eq(ps_finder_status(&f), PSD_NOT_LEADER);
}

Test(finder, nodes_that_name_each_other_are_followed_three_times_then_after_a_pause)
{
    ps_finder_t f = finder_of(B "," C);

    for (uint64_t i = 0; i < PS_FINDER_HOPS; i++) {
        ps_finder_asked(&f, i);
        refer(&f, i % 2 == 0 ? "b" : "c", i % 2 == 0 ? LEADER("c", C) : LEADER("b", B), i);
        assert_goes(&f, i, i % 2 == 0 ? C : B);
    }
    refer(&f, "c", LEADER("b", B), 10);
    assert_stays(&f, 10);
    assert_goes(&f, 10 + 2 * PS_FINDER_PAUSE_MS, A); /* the second round */
}

Test(finder, more_answers_change_no_plan)
{
    ps_finder_t f = finder_of(B);

    refer(&f, "b", LEADER("a", A), 5);
    refer(&f, "b", NONE, 6);
    cr_assert_eq(f.n_hops, 1);
    assert_goes(&f, 6, A);
}

Test(finder, members_are_learned_but_not_a_second_address_of_the_registry_itself)
{
    ps_finder_t f = finder_of("ipc:///run/a");

    cr_assert(hear(
        &f,
        "{\"status\":\"OK\",\"node\":\"a\",\"members\":[" LEADER("a", A) "," LEADER("b", B) "]}",
        0));
    cr_assert_eq(f.n, 2);
    assert_says(&f, "ipc:///run/a (node a) answered last, " B " (node b) was not asked yet");
}

Test(finder, a_member_that_was_started_elsewhere_replaces_its_old_address)
{
    ps_finder_t f = finder_of(B);

    refer(&f, "b", NONE, 0);
    cr_assert_eq(f.n, 2);
    cr_assert_not(hear(
        &f,
        "{\"status\":\"NOT_LEADER\",\"leader\":null,\"members\":[" LEADER("a", "tcp://a:2") "]}",
        1));
    cr_assert_eq(f.n, 2);
    cr_assert_str_eq(f.items[1].endpoint, "tcp://a:2");
}

Test(finder, an_address_that_names_a_key_is_learned)
{
    ps_finder_t f = finder_of("tcp://a:1#00ff");

    cr_assert(hear(
        &f, "{\"status\":\"OK\",\"node\":\"a\",\"members\":[" LEADER("b", "tcp://b:1#00ff") "]}",
        0));
    cr_assert_eq(f.n, 2);
    cr_assert_str_eq(f.items[1].endpoint, "tcp://b:1#00ff");
}

Test(finder, what_is_no_address_is_not_learned)
{
    ps_finder_t f = finder_of(B);

    cr_assert(hear(&f,
                   "{\"status\":\"OK\",\"members\":[{\"node\":\"x\"},{\"node\":\"x\",\"endpoint\":"
                   "\"http://x\"},3]}",
                   0));
    cr_assert(hear(&f,
                   "{\"status\":\"OK\",\"members\":[{\"node\":\"x\",\"endpoint\":"
                   "\"tcp://x#:1\"}]}",
                   0));
    cr_assert(hear(&f, "{\"status\":\"OK\",\"members\":7}", 0));
    cr_assert_eq(f.n, 1);
}

Test(finder, a_refused_address_is_left_at_once)
{
    ps_finder_t f = finder_of(A "," B);

    ps_finder_asked(&f, 0);
    ps_finder_refused(&f, 0, "Connection refused", 30);
    ps_finder_refused(&f, 1, "Connection refused", 30);
    assert_goes(&f, 30, B);
    assert_says(&f, A " cannot be reached: Connection refused, " B
                      " cannot be reached: Connection refused");
}

/* No socket, say: a round without a pause would be the next one at once. */
Test(finder, addresses_that_all_refuse_at_once_are_not_asked_without_a_pause)
{
    ps_finder_t f = finder_of(A "," B);
    uint64_t now_ms = 0;
    uint64_t n = 0;

    ps_finder_refused(&f, 0, "no socket", now_ms);
    while (now_ms < 10000) {
        bool moved = false;

        if (ps_finder_look(&f, now_ms, &moved)) {
            n++;
            ps_finder_refused(&f, f.at, "no socket", now_ms);
        } else {
            cr_assert_gt(ps_finder_due_ms(&f), now_ms);
            now_ms = ps_finder_due_ms(&f);
        }
        cr_assert_lt(n, 1000);
    }
    cr_expect_geq(n, 20); /* pauses of a second at most */
    cr_expect_leq(n, 40);
}

/* Others name it for a while, though its process ended. */
Test(finder, a_registry_whose_connection_broke_is_left_at_once_and_not_believed_in)
{
    ps_finder_t finder = finder_of(A "," B "," C);

    ps_finder_asked(&finder, 0);
    cr_assert(hear(&finder, "{\"status\":\"OK\"}", 10));
    ps_finder_broke(&finder, 1000);
    assert_goes(&finder, 1000, B);
    ps_finder_asked(&finder, 1000);
    refer(&finder, "b", LEADER("a", A), 1010);
    assert_stays(&finder, 1010);
    assert_goes(&finder, 1010 + PS_FINDER_PAUSE_MS, C);
    refer(&finder, "c", LEADER("b", B), 1200);
    assert_goes(&finder, 1200, B);
    cr_assert(hear(&finder, "{\"status\":\"OK\"}", 1210));
    ps_finder_broke(&finder, 2000);
    assert_goes(&finder, 2000, C);
    refer(&finder, "c", LEADER("a", A), 2010); /* it was started again */
    assert_goes(&finder, 2010, A);
}

Test(finder, members_survive_a_document)
{
    ps_members_t members = {.n = 2,
                            .items = {{.node = "a", .endpoint = A}, {.node = "b", .endpoint = B}}};
    ps_members_t read;
    ps_doc_t *doc = ps_doc_new();

    cr_assert(ps_members_to_doc(&members, doc));
    ps_members_from_doc(&read, doc);
    cr_assert(ps_members_equal(&members, &read));
    read.items[1].node[0] = 'x';
    cr_assert_not(ps_members_equal(&members, &read));
    ps_doc_destroy(&doc);
}
