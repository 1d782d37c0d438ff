/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/relay/relay_doc.h: a plan in JSON. */
#include "protocol/relay/relay_doc.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/relay/relay.h"

#define KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static ps_relay_member_t members[3] = {
    {.worker = 0, .joins = 1, .members = 1, .relay = "tcp://127.0.0.1:4000"},
    {.worker = 2, .joins = 4, .members = 2, .relay = "tcp://[::1]:4001"},
    {.worker = 7, .joins = 1, .members = 1, .relay = "tcp://node-7.example:1#" KEY}};
static uint32_t parents[6] = {PS_OVERLAY_NODES, 0, 1, 2, 2, PS_OVERLAY_NODES};
static const ps_relay_facts_t plan = {.version = 12,
                                      .clock = 3,
                                      .key = {{1, 2, 3}},
                                      .n_colours = 2,
                                      .n_members = 3,
                                      .members = members,
                                      .parents = parents};

static ps_doc_t *doc_of(const char *text)
{
    ps_doc_t *doc = NULL;

    cr_assert_eq(ps_doc_parse((ps_bytes_t){(const uint8_t *)text, strlen(text)}, &doc, NULL),
                 PSD_OK);
    return doc;
}

Test(relay_doc, a_plan_comes_over_as_it_is)
{
    PSD_AUTO(ps_relay_facts_done) ps_relay_facts_t read = {.version = 0};
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();

    cr_assert(ps_relay_facts_to_doc(&plan, doc));
    cr_assert_eq(ps_relay_facts_from_doc(doc, &read, NULL), PSD_OK);
    cr_assert_eq(read.version, 12);
    cr_assert_eq(read.clock, 3);
    cr_assert_eq(read.n_colours, 2);
    cr_assert_eq(read.n_members, 3);
    cr_assert_arr_eq(&read.key, &plan.key, sizeof plan.key);
    cr_assert_arr_eq(read.parents, parents, sizeof parents);
    for (size_t i = 0; i < 3; i++) {
        cr_assert_eq(read.members[i].worker, members[i].worker);
        cr_assert_eq(read.members[i].joins, members[i].joins);
        cr_assert_eq(read.members[i].members, members[i].members);
        cr_assert_str_eq(read.members[i].relay, members[i].relay);
    }
    cr_assert_eq(ps_relay_facts_find(&read, 7), 2);
    cr_assert_eq(ps_relay_facts_find(&read, 1), SIZE_MAX);
}

Test(relay_doc, a_relay_goes_by_it)
{
    const ps_relay_settings_t settings = {
        .worker = 2, .hold_ms = 10, .patience_ms = 100, .limit_bytes = 1 << 20};
    ps_relay_facts_t circle = plan;
    uint32_t round[6] = {1, 0, PS_OVERLAY_NODES, 2, 2, PS_OVERLAY_NODES};
    ps_relay_t *relay = NULL;

    cr_assert_eq(ps_relay_new(&settings, &relay, NULL), PSD_OK);
    circle.parents = round;
    cr_assert_eq(ps_relay_facts_give(&circle, relay, NULL), PSD_INVALID);
    cr_assert_eq(ps_relay_facts_give(&plan, relay, NULL), PSD_OK);
    ps_relay_destroy(&relay);
}

Test(relay_doc, what_no_registry_says_is_refused)
{
#define HEAD \
    "{\"plan\":1,\"clock\":0,\"key\":\"01020304-0506-0708-090a-0b0c0d0e0f10\",\"colours\":1,"
#define ONE "{\"worker\":1,\"joins\":1,\"members\":1,\"relay\":\"tcp://h:1\"}"
    static const char *const texts[] = {
        "{}",
        HEAD "\"workers\":[],\"parents\":[0]}",
        HEAD "\"workers\":[" ONE "],\"parents\":[2]}",
        HEAD "\"workers\":[" ONE "," ONE "],\"parents\":[0,0]}",
        HEAD "\"workers\":[" ONE "],\"parents\":[0,0]}",
        HEAD "\"workers\":[{\"worker\":1,\"joins\":1,\"members\":1,\"relay\":\"ipc://x\"}],"
             "\"parents\":[0]}",
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = doc_of(texts[i]);
        ps_relay_facts_t read = {.version = 0};

        cr_assert_neq(ps_relay_facts_from_doc(doc, &read, NULL), PSD_OK, "%zu", i);
        cr_assert_eq(read.members, NULL);
    }
}

Test(relay_doc, addresses_are_of_tcp)
{
    char longest[PS_ENDPOINT_MAX + 8] = "tcp://";

    cr_assert(ps_relay_endpoint_is_good("tcp://127.0.0.1:5"));
    cr_assert(ps_relay_endpoint_is_good("tcp://[fe80::1]:5"));
    cr_assert(ps_relay_endpoint_is_good("tcp://127.0.0.1:5#" KEY));
    cr_assert_not(ps_relay_endpoint_is_good("tcp://127.0.0.1:5#"));
    cr_assert_not(ps_relay_endpoint_is_good("tcp://127.0.0.1:5#" KEY "0"));
    cr_assert_not(ps_relay_endpoint_is_good("tcp://127.0.0.1:5#X" KEY));
    cr_assert_not(ps_relay_endpoint_is_good("tcp://127.0.0.1:5#" KEY "#" KEY));
    cr_assert_not(ps_relay_endpoint_is_good("tcp://#" KEY));
    cr_assert_not(ps_relay_endpoint_is_good("tcp://"));
    cr_assert_not(ps_relay_endpoint_is_good("ipc:///x"));
    cr_assert_not(ps_relay_endpoint_is_good("tcp://a b"));
    cr_assert_not(ps_relay_endpoint_is_good("tcp://*:5"));
    cr_assert_not(ps_relay_endpoint_is_good("tcp://h\x1b[2J:1"));
    memset(longest + 6, 'a', PS_ENDPOINT_MAX);
    cr_assert_not(ps_relay_endpoint_is_good(longest));
}

Test(relay_doc, whether_a_worker_sends_only_where_it_may)
{
    ps_relay_member_t three[3] = {{.worker = 2}, {.worker = 70}, {.worker = 4095}};
    uint32_t ways[6] = {PS_OVERLAY_NODES, 0, 0, 2, 0, PS_OVERLAY_NODES};
    const ps_relay_facts_t facts = {
        .version = 1, .n_colours = 2, .n_members = 3, .members = three, .parents = ways};
    ps_may_t may = {{0}};

    cr_assert_not(ps_relay_facts_keep_to(&facts, 2, &may, false));
    ps_may_set(&may, 4095, true);
    cr_assert(ps_relay_facts_keep_to(&facts, 2, &may, false), "70 only sends to it");
    cr_assert_not(ps_relay_facts_keep_to(&facts, 2, &may, true), "rows go to 70");
    ps_may_set(&may, 70, true);
    cr_assert(ps_relay_facts_keep_to(&facts, 2, &may, true));
    cr_assert_not(ps_relay_facts_keep_to(&facts, 70, &may, false));
    cr_assert(ps_relay_facts_keep_to(&facts, 71, &may, true), "it is not in the plan");
}
