/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/relay/report.h: what a worker has measured, in JSON. */
#include "protocol/relay/report.h"

#include <criterion/criterion.h>
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
    const ps_overlay_report_t report = {.is_auto = true,
                                        .clock = 12,
                                        .ago_us = 340,
                                        .bytes = 5000000000,
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
                     "\"bytes\":5000000000}");
    cr_assert_eq(ps_overlay_report_from_doc(doc, &read, NULL), PSD_OK);
    cr_assert(read.is_auto);
    cr_assert_eq(read.clock, 12);
    cr_assert_eq(read.ago_us, 340);
    cr_assert_eq(read.bytes, 5000000000);
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

#define REST "\"clock\":1,\"ago_us\":1,\"bytes\":1"

Test(report, what_no_worker_says_is_refused)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    static const char begin[] = "{\"policy\":\"tree\"," REST ",\"links\":[";
    static const char link[] = "{\"bytes\":1,\"us\":1},";
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
    cr_assert(ps_buffer_append(&many, begin, strlen(begin)));
    for (uint32_t i = 0; i < PS_OVERLAY_REPORT_LINKS; i++) {
        cr_assert(ps_buffer_append(&many, link, strlen(link)));
    }
    cr_assert(ps_buffer_append(&many, "{}]}", sizeof "{}]}"));
    cr_assert_neq(read_text((const char *)many.data, err), PSD_OK);
}
