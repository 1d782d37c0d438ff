/* SPDX-License-Identifier: Apache-2.0 */
/* wire/messages/doc.h: documents from birth to text. Reading is test_doc_get.c. */
#include "wire/messages/doc.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "support/fail_alloc.h"

static ps_bytes_t text_of(const char *text)
{
    return (ps_bytes_t){(const uint8_t *)text, strlen(text)};
}

static void assert_refused(ps_bytes_t text, psd_status_t status, const char *wanted)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_doc_t *doc = NULL;

    cr_assert_eq(ps_doc_parse(text, &doc, err), status);
    cr_assert_str_eq(psd_error_text(err), wanted);
    cr_assert_null(doc);
}

static void assert_prints(const ps_doc_t *doc, const char *wanted)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t buffer = {0};

    cr_assert(ps_doc_print(doc, &buffer));
    cr_assert(ps_buffer_append(&buffer, "", 1));
    cr_assert_str_eq((const char *)buffer.data, wanted);
}

static ps_doc_t *parse(const char *text)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_doc_t *doc = NULL;

    cr_assert_eq(ps_doc_parse(text_of(text), &doc, err), PSD_OK, "%s", psd_error_text(err));
    return doc;
}

/* ---- parsing ----------------------------------------------------------- */

Test(doc, text_comes_back_compact_and_in_order)
{
    PSD_AUTO(ps_doc_destroy)
    ps_doc_t *doc = parse(" {\"z\" : 1, \"a\":[ true,null, \"\xC3\xBC\" ],\n\"m\":{}} ");

    assert_prints(doc, "{\"z\":1,\"a\":[true,null,\"\xC3\xBC\"],\"m\":{}}");
}

/* The reason's words are the parser's and may change with it. */
static void assert_refused_at(ps_bytes_t text, int line, int column)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_doc_t *doc = NULL;
    char wanted[64];

    (void)snprintf(wanted, sizeof wanted, "document, line %d, column %d: ", line, column);
    cr_assert_eq(ps_doc_parse(text, &doc, err), PSD_PROTO);
    cr_assert_eq(strncmp(psd_error_text(err), wanted, strlen(wanted)), 0, "%s, not: %s",
                 psd_error_text(err), wanted);
    cr_assert_gt(strlen(psd_error_text(err)), strlen(wanted));
    for (const char *at = psd_error_text(err); *at != '\0'; at++) {
        cr_assert(*at >= ' ' && *at != 0x7F, "control byte in the reason");
    }
    cr_assert_null(doc);
}

Test(doc, wrong_text_is_refused_with_line_and_column)
{
    assert_refused_at(text_of(""), 1, 0);
    assert_refused_at((ps_bytes_t){NULL, 0}, 1, 0);
    assert_refused_at(text_of("{\"a\":1,\n\"a\":2}"), 2, 3);
    assert_refused_at(text_of("{} x"), 1, 4);
    assert_refused_at(text_of("{\"a\":\"\xFF\"}"), 1, 6);
    assert_refused_at(text_of("{\"a\":\"\\u0000\"}"), 1, 13);
    assert_refused_at(text_of("{\"a\":\"\\uD800\"}"), 1, 13);
    assert_refused_at(text_of("{\"a\":99999999999999999999}"), 1, 25);
    assert_refused_at(text_of("{\"a\":1e999}"), 1, 10);
    assert_refused_at((ps_bytes_t){(const uint8_t *)"{\0}", 3}, 1, 2);
}

Test(doc, reason_is_one_line_whatever_the_peer_sent)
{
    assert_refused_at(text_of("{\"a\":\"b\nc\"}"), 1, 7);
    assert_refused_at(text_of("{\"a\" \x7F}"), 1, 6);
    assert_refused_at(text_of("{\"a\":\x01}"), 1, 6);
}

Test(doc, only_an_object_is_a_document)
{
    assert_refused(text_of("[]"), PSD_PROTO, "document is an array; allowed: an object");
    assert_refused_at(text_of("1"), 1, 1);
}

static void nest(char *text, size_t depth)
{
    memcpy(text, "{\"a\":", 5);
    memset(text + 5, '[', depth - 1);
    memset(text + 5 + depth - 1, ']', depth - 1);
    memcpy(text + 5 + 2 * (depth - 1), "}", 2);
}

Test(doc, depth_is_bounded)
{
    char text[256];
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;

    nest(text, PS_DOC_DEPTH_MAX);
    doc = parse(text);
    cr_assert_not_null(doc);
    nest(text, PS_DOC_DEPTH_MAX + 1);
    assert_refused(text_of(text), PSD_LIMIT,
                   "document is nested deeper than 32 at line 1, column 37");
    text[4] = '\n';
    assert_refused(text_of(text), PSD_LIMIT,
                   "document is nested deeper than 32 at line 2, column 32");
}

Test(doc, brackets_in_texts_do_not_nest)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;
    char text[128] = "{\"\\\"\\\\\":\"";
    size_t size = strlen(text);

    memset(text + size, '[', 64);
    memcpy(text + size + 64, "\"}", 3);
    doc = parse(text);
    cr_assert(ps_doc_has(doc, "\"\\"));
}

Test(doc, size_is_bounded)
{
    size_t size = (size_t)PS_DOC_BYTES_MAX + 1;
    PSD_AUTO(ps_free_at) uint8_t *text = ps_alloc_raw(size, 1);
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;

    memset(text, ' ', size);
    text[0] = '{';
    text[size - 2] = '}';
    assert_refused((ps_bytes_t){text, size}, PSD_LIMIT,
                   "document is 16777217 bytes; allowed: 0..16777216");
    cr_assert_eq(ps_doc_parse((ps_bytes_t){text, size - 1}, &doc, NULL), PSD_OK);
}

/* A megabyte of "[[],[], ..." must not become a gigabyte. */
Test(doc, number_of_values_is_bounded)
{
    size_t size = (size_t)3 << 20;
    PSD_AUTO(ps_free_at) uint8_t *text = ps_alloc_raw(size, 1);

    for (size_t i = 0; i < size; i++) {
        text[i] = (uint8_t) "[],"[i % 3];
    }
    memcpy(text, "{\"a\":[", 6);
    assert_refused((ps_bytes_t){text, size}, PSD_LIMIT,
                   "document has more than 1048576 values at line 1, column "
                   "1572868");
}

/* ---- writing ----------------------------------------------------------- */

Test(doc, new_ones_are_empty)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *object = ps_doc_new();
    PSD_AUTO(ps_doc_destroy) ps_doc_t *array = ps_doc_new_array();

    assert_prints(object, "{}");
    assert_prints(array, "[]");
}

Test(doc, destroy_takes_nothing)
{
    ps_doc_t *doc = NULL;

    ps_doc_destroy(NULL);
    ps_doc_destroy(&doc);
    doc = ps_doc_new();
    ps_doc_destroy(&doc);
    cr_assert_null(doc);
}

Test(doc, values_are_written_in_order)
{
    static const ps_id_t id = {{0x12, 0x34}};
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();
    ps_doc_t *object = NULL;
    ps_doc_t *array = NULL;

    cr_assert(ps_doc_set_u64(doc, "u", 7));
    cr_assert(ps_doc_set_i64(doc, "i", INT64_MIN));
    cr_assert(ps_doc_set_f64(doc, "f", 0.5));
    cr_assert(ps_doc_set_bool(doc, "b", true));
    cr_assert(ps_doc_set_text(doc, "t", "x\n\"\xC3\xBC"));
    cr_assert(ps_doc_set_id(doc, "id", &id));
    object = ps_doc_add_object(doc, "o");
    cr_assert(ps_doc_set_u64(object, "n", 1));
    array = ps_doc_add_array(doc, "a");
    cr_assert(ps_doc_append_u64(array, 2));
    cr_assert(ps_doc_append_text(array, "z"));
    cr_assert(ps_doc_set_bool(ps_doc_append_object(array), "q", false));
    assert_prints(doc, "{\"u\":7,\"i\":-9223372036854775808,\"f\":0.5,\"b\":true,"
                       "\"t\":\"x\\n\\\"\xC3\xBC\","
                       "\"id\":\"12340000-0000-0000-0000-000000000000\","
                       "\"o\":{\"n\":1},\"a\":[2,\"z\",{\"q\":false}]}");
    assert_prints(object, "{\"n\":1}");
    assert_prints(array, "[2,\"z\",{\"q\":false}]");
}

Test(doc, number_above_a_signed_one_is_digits)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();
    ps_doc_t *array = ps_doc_add_array(doc, "a");

    cr_assert(ps_doc_set_u64(doc, "n", INT64_MAX));
    cr_assert(ps_doc_set_u64(doc, "m", UINT64_C(1) << 63));
    cr_assert(ps_doc_append_u64(array, UINT64_MAX));
    assert_prints(doc, "{\"a\":[\"18446744073709551615\"],"
                       "\"n\":9223372036854775807,"
                       "\"m\":\"9223372036854775808\"}");
}

Test(doc, doubles_come_back_to_the_bit)
{
    static const double values[] = {0.1,
                                    1.0 / 3,
                                    5e-324,
                                    1.7976931348623157e308,
                                    -0.0,
                                    1e23,
                                    123456789012345678.0,
                                    2.2250738585072014e-308};

    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();
        PSD_AUTO(ps_doc_destroy) ps_doc_t *again = NULL;
        PSD_AUTO(ps_buffer_done) ps_buffer_t buffer = {0};
        double got = 0;

        cr_assert(ps_doc_set_f64(doc, "x", values[i]));
        cr_assert(ps_doc_print(doc, &buffer));
        cr_assert_eq(ps_doc_parse((ps_bytes_t){buffer.data, buffer.size}, &again, NULL), PSD_OK);
        cr_assert_eq(ps_doc_get_f64(again, "x", &got, NULL), PSD_OK);
        cr_assert_arr_eq(&got, &values[i], sizeof got);
    }
}

Test(doc, what_json_cannot_say_is_not_set)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();
    ps_doc_t *array = ps_doc_add_array(doc, "a");

    cr_assert_not(ps_doc_set_f64(doc, "x", (double)NAN));
    cr_assert_not(ps_doc_set_f64(doc, "x", (double)INFINITY));
    cr_assert_not(ps_doc_set_text(doc, "x", "\xFF"));
    cr_assert_not(ps_doc_set_u64(doc, "\xFF", 1));
    cr_assert_not(ps_doc_append_text(array, "\xC3"));
    cr_assert_null(ps_doc_add_object(doc, "\xFF"));
    assert_prints(doc, "{\"a\":[]}");
}

Test(doc, object_is_not_an_array)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();
    ps_doc_t *array = ps_doc_add_array(doc, "a");

    cr_assert_not(ps_doc_append_u64(doc, 1));
    cr_assert_null(ps_doc_append_object(doc));
    cr_assert_not(ps_doc_set_u64(array, "x", 1));
    cr_assert_null(ps_doc_add_array(array, "x"));
    assert_prints(doc, "{\"a\":[]}");
}

Test(doc, setting_again_replaces)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();
    ps_doc_t *old = ps_doc_add_object(doc, "o");

    cr_assert(ps_doc_set_u64(doc, "u", 1));
    cr_assert(ps_doc_set_text(doc, "u", "two"));
    cr_assert_neq(ps_doc_add_object(doc, "o"), old);
    cr_assert(ps_doc_set_u64(old, "lost", 1), "it is still there to write to");
    assert_prints(doc, "{\"o\":{},\"u\":\"two\"}");
}

/* ---- memory ------------------------------------------------------------ */

static psd_status_t write_and_parse(void *fixture)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t buffer = {0};
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();
    PSD_AUTO(ps_doc_destroy) ps_doc_t *again = NULL;
    const ps_doc_t *array = NULL;
    const ps_doc_t *item = NULL;
    ps_doc_t *child = NULL;
    psd_status_t rc = PSD_OK;

    (void)fixture;
    if (doc == NULL) {
        return PSD_NOMEM;
    }
    child = ps_doc_add_array(doc, "a");
    cr_assert_eq(child != NULL, ps_doc_has(doc, "a"));
    if (child == NULL || ps_doc_append_object(child) == NULL) {
        return PSD_NOMEM;
    }
    cr_assert(ps_buffer_append(&buffer, "=", 1) || buffer.size == 0);
    if (buffer.size == 0) {
        return PSD_NOMEM;
    }
    if (!ps_doc_print(doc, &buffer)) {
        cr_assert_eq(buffer.size, 1, "half a document is none");
        return PSD_NOMEM;
    }
    rc = ps_doc_parse((ps_bytes_t){buffer.data + 1, buffer.size - 1}, &again, NULL);
    if (rc == PSD_OK) {
        rc = ps_doc_get_array(again, "a", 1, &array, NULL);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_at_object(array, 0, &item, NULL);
    }
    cr_assert((rc == PSD_OK) == (item != NULL));
    return rc;
}

Test(doc, no_memory_of_ours_is_survived)
{
    cr_assert_null(fail_alloc_sweep(write_and_parse, NULL));
}

static psd_status_t write_long_key(void *fixture)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t buffer = {0};
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();
    char key[1000];

    (void)fixture;
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    if (doc == NULL || !ps_doc_set_u64(doc, key, 7) || !ps_doc_print(doc, &buffer)) {
        return PSD_NOMEM;
    }
    cr_assert_eq(buffer.size, strlen("{\"\":7}") + sizeof key - 1);
    return PSD_OK;
}

/* Jansson went on behind a key that could not be written, and a question that
 * nobody understood was asked until its deadline. */
Test(doc, a_key_without_memory_is_no_document)
{
    cr_assert_null(fail_alloc_sweep(write_long_key, NULL));
}
