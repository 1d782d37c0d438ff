/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/relay/report.h: what a worker has measured, in JSON. */
#include "protocol/relay/report.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

static ps_doc_t *doc_of(const char *text)
{
    ps_doc_t *doc = NULL;

    cr_assert_eq(ps_doc_parse((ps_bytes_t){(const uint8_t *)text, strlen(text)}, &doc, NULL),
                 PSD_OK);
    return doc;
}

Test(report, comes_over_as_it_is)
{
    const ps_overlay_report_t report = {.rules = {.policy = PS_POLICY_AUTO},
                                        .clock = 12,
                                        .ago_us = 340,
                                        .bytes = 5000000000,
                                        .counts = {true, 5, 4, 3, 2, 1},
                                        .n_links = 2,
                                        .links = {{PS_OVERLAY_NODES, 300000, 20}, {3, 400000, 1}}};
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {.size = 0};
    ps_overlay_report_t read;

    cr_assert(ps_overlay_report_to_doc(&report, doc));
    cr_assert(ps_doc_print(doc, &text));
    cr_assert(ps_buffer_append(&text, "", 1));
    cr_assert_str_eq((const char *)text.data,
                     "{\"links\":[{\"bytes\":300000,\"us\":20},{\"worker\":3,\"bytes\":400000,"
                     "\"us\":1}],\"policy\":\"auto\",\"clock\":12,\"ago_us\":340,"
                     "\"bytes\":5000000000,\"lent\":5,\"returned\":4,\"direct\":3,"
                     "\"bundles\":2,\"refused\":1}");
    cr_assert_eq(ps_overlay_report_from_doc(doc, &read, NULL), PSD_OK);
    cr_assert_eq(read.rules.policy, PS_POLICY_AUTO);
    cr_assert_eq(read.clock, 12);
    cr_assert_eq(read.ago_us, 340);
    cr_assert_eq(read.bytes, 5000000000);
    cr_assert(read.counts.has);
    cr_assert_eq(read.counts.lent, 5);
    cr_assert_eq(read.counts.returned, 4);
    cr_assert_eq(read.counts.direct, 3);
    cr_assert_eq(read.counts.bundles, 2);
    cr_assert_eq(read.counts.refused, 1);
    cr_assert_eq(read.n_links, 2);
    cr_assert_eq(read.links[0].to, PS_OVERLAY_NODES);
    cr_assert_eq(read.links[1].to, 3);
    cr_assert_eq(read.links[1].bytes, 400000);
    cr_assert_eq(read.links[1].us, 1);
}

static psd_status_t read_text(const char *text, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = doc_of(text);
    ps_overlay_report_t report;

    return ps_overlay_report_from_doc(doc, &report, err);
}

Test(report, of_pairs_has_its_rules_and_ways)
{
    ps_overlay_report_t report = {.rules = {.policy = PS_POLICY_PAIRS,
                                            .is_listed = true,
                                            .both_ways = true,
                                            .num = 3,
                                            .ratio = 0.25,
                                            .expiry = 7,
                                            .greed = 0.9}};
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {.size = 0};
    ps_overlay_misfit_t misfit = {.setting = ""};
    ps_overlay_report_t read;

    ps_may_set(&report.may, 0, true);
    ps_may_set(&report.may, 62, true);
    ps_may_set(&report.may, 63, true);
    ps_may_set(&report.may, 64, true);
    ps_may_set(&report.may, 4095, true);
    cr_assert(ps_overlay_report_to_doc(&report, doc));
    cr_assert(ps_doc_print(doc, &text));
    cr_assert(ps_buffer_append(&text, "", 1));
    cr_assert_str_eq((const char *)text.data,
                     "{\"links\":[],\"policy\":\"pairs\",\"clock\":0,\"ago_us\":0,\"bytes\":0,"
                     "\"num\":3,\"ratio\":0.25,\"expiry\":7,\"greed\":0.90000000000000002,"
                     "\"rows\":true,\"may\":[0,0,62,64,4095,4095]}");
    cr_assert_eq(ps_overlay_report_from_doc(doc, &read, NULL), PSD_OK);
    cr_assert(ps_overlay_rules_fit(&read.rules, &report.rules, &misfit), "%s", misfit.setting);
    cr_assert_eq(read.rules.ratio, 0.25);
    cr_assert_not(read.counts.has, "an earlier build");
    cr_assert_arr_eq(&read.may, &report.may, sizeof read.may);
}

static bool prints(const ps_overlay_report_t *report, const char *wanted)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {.size = 0};

    cr_assert(ps_overlay_report_to_doc(report, doc));
    cr_assert(ps_doc_print(doc, &text));
    cr_assert(ps_buffer_append(&text, "", 1));
    return strcmp((const char *)text.data, wanted) == 0;
}

Test(report, says_where_the_worker_is)
{
    static const char begin[] = "{\"links\":[],\"policy\":\"tree\",\"clock\":0,\"ago_us\":0,"
                                "\"bytes\":0,";
    ps_overlay_report_t report = {.site = {"east"}, .rules = {.between = true}};
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;
    ps_overlay_report_t read;
    char wanted[200];

    (void)snprintf(wanted, sizeof wanted, "%s\"site\":\"east\",\"between\":true}", begin);
    cr_assert(prints(&report, wanted));
    doc = doc_of(wanted);
    cr_assert_eq(ps_overlay_report_from_doc(doc, &read, NULL), PSD_OK);
    cr_assert_str_eq(read.site.name, "east");
    cr_assert(read.rules.between);
    cr_assert_not(read.rules.apart);
    ps_doc_destroy(&doc);
    report = (ps_overlay_report_t){.rules = {.apart = true}};
    (void)snprintf(wanted, sizeof wanted, "%s\"within\":false}", begin);
    cr_assert(prints(&report, wanted));
    doc = doc_of(wanted);
    cr_assert_eq(ps_overlay_report_from_doc(doc, &read, NULL), PSD_OK);
    cr_assert_str_eq(read.site.name, "");
    cr_assert(read.rules.apart);
    cr_assert_not(read.rules.between);
}

#define REST "\"clock\":1,\"ago_us\":1,\"bytes\":1"
#define NUMBERS(expiry, ratio, greed) \
    "\"num\":0,\"rows\":false,\"expiry\":" expiry ",\"ratio\":" ratio ",\"greed\":" greed

Test(report, what_no_worker_says_is_refused)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    static const char begin[] = "{\"policy\":\"tree\"," REST ",\"links\":[";
    static const char link[] = "{\"bytes\":1,\"us\":1},";
    static const struct {
        psd_status_t rc;
        const char *text;
    } TURNS[] = {
        {PSD_OK, NUMBERS("1", "0.5", "1")},
        {PSD_OK, NUMBERS("1", "0.5", "1") ",\"may\":[]"},
        {PSD_PROTO, "\"num\":1"},
        {PSD_INVALID, NUMBERS("0", "0.5", "1")},
        {PSD_INVALID, NUMBERS("1", "1.5", "1")},
        {PSD_INVALID, NUMBERS("1", "0.5", "-0.1")},
        {PSD_OK, NUMBERS("1", "0.5", "1") ",\"may\":[0,1,2,4095]"},
        {PSD_INVALID, NUMBERS("1", "0.5", "1") ",\"may\":[0,4096]"},
        {PSD_INVALID, NUMBERS("1", "0.5", "1") ",\"may\":[7]"},
        {PSD_INVALID, NUMBERS("1", "0.5", "1") ",\"may\":[7,6]"},
        {PSD_INVALID, NUMBERS("1", "0.5", "1") ",\"may\":[0,7,7,9]"},
        {PSD_PROTO, NUMBERS("1", "0.5", "1") ",\"may\":[1,\"x\"]"},
        {PSD_OK, NUMBERS("1", "0.5", "1") ",\"site\":\"\""},
        {PSD_INVALID, NUMBERS("1", "0.5", "1") ",\"site\":\"a b\""},
        {PSD_PROTO, NUMBERS("1", "0.5", "1") ",\"site\":7"},
        {PSD_PROTO, NUMBERS("1", "0.5", "1") ",\"between\":1"},
        {PSD_PROTO, NUMBERS("1", "0.5", "1") ",\"within\":\"no\""},
    };
    PSD_AUTO(ps_buffer_done) ps_buffer_t many = {.size = 0};

    cr_assert_eq(read_text("{\"policy\":\"tree\"," REST ",\"links\":[]}", err), PSD_OK);
    cr_assert_eq(read_text("{" REST ",\"links\":[]}", err), PSD_PROTO);
    cr_assert_eq(read_text("{\"policy\":\"auto\",\"clock\":1,\"bytes\":1,\"links\":[]}", err),
                 PSD_PROTO);
    cr_assert_eq(read_text("{\"policy\":\"auto\"," REST "}", err), PSD_PROTO);
    cr_assert_eq(read_text("{\"policy\":\"auto\"," REST ",\"links\":[7]}", err), PSD_PROTO);
    cr_assert_eq(
        read_text("{\"policy\":\"auto\"," REST ",\"links\":[{\"bytes\":1,\"us\":0}]}", err),
        PSD_INVALID);
    cr_assert_eq(read_text("{\"policy\":\"auto\",\"clock\":1,\"ago_us\":90000000000,\"bytes\":1,"
                           "\"links\":[]}",
                           err),
                 PSD_INVALID);
    for (size_t i = 0; i < sizeof TURNS / sizeof *TURNS; i++) {
        char turns[300];

        (void)snprintf(turns, sizeof turns, "{\"policy\":\"queue\"," REST ",\"links\":[],%s}",
                       TURNS[i].text);
        cr_assert_eq(read_text(turns, err), TURNS[i].rc, "%s: %s", TURNS[i].text,
                     psd_error_text(err));
    }
    cr_assert(ps_buffer_append(&many, begin, strlen(begin)));
    for (uint32_t i = 0; i < PS_OVERLAY_REPORT_LINKS; i++) {
        cr_assert(ps_buffer_append(&many, link, strlen(link)));
    }
    cr_assert(ps_buffer_append(&many, "{}]}", sizeof "{}]}"));
    cr_assert_neq(read_text((const char *)many.data, err), PSD_OK);
}
