/* SPDX-License-Identifier: Apache-2.0 */
/* wire/messages/doc.h: reading, and what is said of that which is wrong. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "wire/messages/doc.h"

static ps_doc_t *parse(const char *text)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_doc_t *doc = NULL;

    cr_assert_eq(ps_doc_parse((ps_bytes_t){(const uint8_t *)text, strlen(text)}, &doc, err), PSD_OK,
                 "%s", psd_error_text(err));
    return doc;
}

/* A call that takes `err` as the last argument, and what it must say. */
#define SAYS(status, text, call)                       \
    do {                                               \
        psd_error_t *err = psd_error_new();            \
        psd_status_t rc = (call);                      \
        cr_assert_str_eq(psd_error_text(err), (text)); \
        cr_assert_eq(rc, (status));                    \
        psd_error_destroy(&err);                       \
    } while (0)

Test(doc_get, unsigned_numbers)
{
    PSD_AUTO(ps_doc_destroy)
    ps_doc_t *doc = parse("{\"n\":7,\"m\":-1,\"s\":\"18446744073709551615\",\"t\":\"7x\","
                          "\"f\":1.5,\"z\":null,\"b\":true,\"o\":{},\"a\":[],\"big\":"
                          "\"18446744073"
                          "709551616\"}");
    uint64_t got = 99;

    SAYS(PSD_OK, "", ps_doc_get_u64(doc, "n", 7, 7, &got, err));
    cr_assert_eq(got, 7);
    SAYS(PSD_OK, "", ps_doc_get_u64(doc, "s", 0, UINT64_MAX, &got, err));
    cr_assert_eq(got, UINT64_MAX);
    got = 99;
    SAYS(PSD_INVALID, "n is 7; allowed: 8..9", ps_doc_get_u64(doc, "n", 8, 9, &got, err));
    SAYS(PSD_INVALID, "n is 7; allowed: 0..6", ps_doc_get_u64(doc, "n", 0, 6, &got, err));
    SAYS(PSD_INVALID, "m is -1; allowed: 0..9", ps_doc_get_u64(doc, "m", 0, 9, &got, err));
    SAYS(PSD_INVALID, "s is \"18446744073709551615\"; allowed: 0..9",
         ps_doc_get_u64(doc, "s", 0, 9, &got, err));
    SAYS(PSD_PROTO, "t is \"7x\"; allowed: 0..9", ps_doc_get_u64(doc, "t", 0, 9, &got, err));
    SAYS(PSD_PROTO, "big is \"18446744073709551616\"; allowed: 0..9",
         ps_doc_get_u64(doc, "big", 0, 9, &got, err));
    SAYS(PSD_PROTO, "f is 1.5; allowed: 0..9", ps_doc_get_u64(doc, "f", 0, 9, &got, err));
    SAYS(PSD_PROTO, "z is null; allowed: 0..9", ps_doc_get_u64(doc, "z", 0, 9, &got, err));
    SAYS(PSD_PROTO, "b is true; allowed: 0..9", ps_doc_get_u64(doc, "b", 0, 9, &got, err));
    SAYS(PSD_PROTO, "o is an object; allowed: 0..9", ps_doc_get_u64(doc, "o", 0, 9, &got, err));
    SAYS(PSD_PROTO, "a is an array; allowed: 0..9", ps_doc_get_u64(doc, "a", 0, 9, &got, err));
    SAYS(PSD_PROTO, "y is missing", ps_doc_get_u64(doc, "y", 0, 9, &got, err));
    cr_assert_eq(got, 99, "set on success only");
}

Test(doc_get, fallback_is_for_what_is_missing_never_for_what_is_wrong)
{
    PSD_AUTO(ps_doc_destroy)
    ps_doc_t *doc = parse("{\"n\":7,\"z\":null,\"t\":\"x\"}");
    uint64_t got = 99;
    const char *text = NULL;

    SAYS(PSD_OK, "", ps_doc_get_u64_or(doc, "n", 0, 9, 3, &got, err));
    cr_assert_eq(got, 7);
    SAYS(PSD_OK, "", ps_doc_get_u64_or(doc, "y", 0, 9, 3, &got, err));
    cr_assert_eq(got, 3);
    SAYS(PSD_PROTO, "z is null; allowed: 0..9", ps_doc_get_u64_or(doc, "z", 0, 9, 3, &got, err));
    SAYS(PSD_INVALID, "n is 7; allowed: 0..6", ps_doc_get_u64_or(doc, "n", 0, 6, 3, &got, err));
    SAYS(PSD_OK, "", ps_doc_get_text_or(doc, "t", 1, "d", &text, err));
    cr_assert_str_eq(text, "x");
    SAYS(PSD_OK, "", ps_doc_get_text_or(doc, "y", 1, "d", &text, err));
    cr_assert_str_eq(text, "d");
    SAYS(PSD_OK, "", ps_doc_get_text_or(doc, "y", 1, NULL, &text, err));
    cr_assert_null(text);
    SAYS(PSD_PROTO, "n is 7; allowed: a text", ps_doc_get_text_or(doc, "n", 1, "d", &text, err));
}

Test(doc_get, signed_numbers)
{
    PSD_AUTO(ps_doc_destroy)
    ps_doc_t *doc = parse("{\"n\":-9223372036854775808,\"s\":\"1\"}");
    int64_t got = 99;

    SAYS(PSD_OK, "", ps_doc_get_i64(doc, "n", INT64_MIN, INT64_MAX, &got, err));
    cr_assert_eq(got, INT64_MIN);
    SAYS(PSD_INVALID, "n is -9223372036854775808; allowed: -1..1",
         ps_doc_get_i64(doc, "n", -1, 1, &got, err));
    SAYS(PSD_PROTO, "s is \"1\"; allowed: -1..1", ps_doc_get_i64(doc, "s", -1, 1, &got, err));
    SAYS(PSD_PROTO, "y is missing", ps_doc_get_i64(doc, "y", -1, 1, &got, err));
}

Test(doc_get, doubles)
{
    PSD_AUTO(ps_doc_destroy)
    ps_doc_t *doc = parse("{\"x\":-0.25,\"n\":3,\"s\":\"1\"}");
    double got = 99;

    SAYS(PSD_OK, "", ps_doc_get_f64(doc, "x", &got, err));
    cr_assert_eq(got, -0.25);
    SAYS(PSD_OK, "", ps_doc_get_f64(doc, "n", &got, err));
    cr_assert_eq(got, 3);
    SAYS(PSD_PROTO, "s is \"1\"; allowed: a number", ps_doc_get_f64(doc, "s", &got, err));
    SAYS(PSD_PROTO, "y is missing", ps_doc_get_f64(doc, "y", &got, err));
}

Test(doc_get, bools)
{
    PSD_AUTO(ps_doc_destroy)
    ps_doc_t *doc = parse("{\"t\":true,\"f\":false,\"n\":0}");
    bool got = false;

    SAYS(PSD_OK, "", ps_doc_get_bool(doc, "t", &got, err));
    cr_assert(got);
    SAYS(PSD_OK, "", ps_doc_get_bool(doc, "f", &got, err));
    cr_assert_not(got);
    SAYS(PSD_PROTO, "n is 0; allowed: true, false", ps_doc_get_bool(doc, "n", &got, err));
    SAYS(PSD_PROTO, "y is missing", ps_doc_get_bool(doc, "y", &got, err));
}

Test(doc_get, texts)
{
    PSD_AUTO(ps_doc_destroy)
    ps_doc_t *doc = parse("{\"t\":\"abc\",\"e\":\"\",\"n\":1}");
    const char *got = NULL;

    SAYS(PSD_OK, "", ps_doc_get_text(doc, "t", 3, &got, err));
    cr_assert_str_eq(got, "abc");
    SAYS(PSD_OK, "", ps_doc_get_text(doc, "e", 0, &got, err));
    cr_assert_str_eq(got, "");
    SAYS(PSD_INVALID, "t has 3 bytes; allowed: 0..2", ps_doc_get_text(doc, "t", 2, &got, err));
    SAYS(PSD_PROTO, "n is 1; allowed: a text", ps_doc_get_text(doc, "n", 2, &got, err));
    SAYS(PSD_PROTO, "y is missing", ps_doc_get_text(doc, "y", 2, &got, err));
}

Test(doc_get, ids)
{
    PSD_AUTO(ps_doc_destroy)
    ps_doc_t *doc = parse("{\"i\":\"00010203-0405-0607-0809-0a0b0c0d0e0f\",\"t\":\"no\","
                          "\"n\":1}");
    ps_id_t got = {{0}};

    SAYS(PSD_OK, "", ps_doc_get_id(doc, "i", &got, err));
    for (uint8_t i = 0; i < PS_ID_SIZE; i++) {
        cr_assert_eq(got.bytes[i], i);
    }
    SAYS(PSD_PROTO, "t is \"no\"; allowed: a UUID", ps_doc_get_id(doc, "t", &got, err));
    SAYS(PSD_PROTO, "n is 1; allowed: a UUID", ps_doc_get_id(doc, "n", &got, err));
    SAYS(PSD_PROTO, "y is missing", ps_doc_get_id(doc, "y", &got, err));
}

Test(doc_get, items)
{
    PSD_AUTO(ps_doc_destroy)
    ps_doc_t *doc = parse("{\"a\":[1,\"x\",{},\"18446744073709551615\"],\"n\":1}");
    const ps_doc_t *array = NULL;
    const ps_doc_t *object = NULL;
    const ps_doc_t *again = NULL;
    const char *text = NULL;
    uint64_t number = 0;

    SAYS(PSD_OK, "", ps_doc_get_array(doc, "a", 4, &array, err));
    cr_assert_eq(ps_doc_count(array), 4);
    cr_assert_eq(ps_doc_count(doc), 0);
    SAYS(PSD_OK, "", ps_doc_at_u64(array, 0, &number, err));
    cr_assert_eq(number, 1);
    SAYS(PSD_OK, "", ps_doc_at_text(array, 1, 1, &text, err));
    cr_assert_str_eq(text, "x");
    SAYS(PSD_OK, "", ps_doc_at_object(array, 2, &object, err));
    SAYS(PSD_OK, "", ps_doc_at_object(array, 2, &again, err));
    cr_assert_eq(object, again, "one node for one object");
    SAYS(PSD_OK, "", ps_doc_at_u64(array, 3, &number, err));
    cr_assert_eq(number, UINT64_MAX);
    SAYS(PSD_PROTO, "a[1] is \"x\"; allowed: 0..18446744073709551615",
         ps_doc_at_u64(array, 1, &number, err));
    SAYS(PSD_PROTO, "a[0] is 1; allowed: a text", ps_doc_at_text(array, 0, 1, &text, err));
    SAYS(PSD_INVALID, "a[1] has 1 bytes; allowed: 0..0", ps_doc_at_text(array, 1, 0, &text, err));
    SAYS(PSD_PROTO, "a[0] is 1; allowed: an object", ps_doc_at_object(array, 0, &object, err));
    SAYS(PSD_INVALID, "a has 4 items; allowed: 0..3", ps_doc_get_array(doc, "a", 3, &array, err));
    SAYS(PSD_PROTO, "n is 1; allowed: an array", ps_doc_get_array(doc, "n", 3, &array, err));
    SAYS(PSD_PROTO, "y is missing", ps_doc_get_array(doc, "y", 3, &array, err));
}

/* ---- places ------------------------------------------------------------ */

Test(doc_get, errors_name_the_whole_path)
{
    PSD_AUTO(ps_doc_destroy)
    ps_doc_t *doc = parse("{\"spec\":{\"cols\":0,\"init\":{\"a\":\"x\"}},"
                          "\"routes\":[{},{},{\"to\":[[]]}]}");
    const ps_doc_t *spec = NULL;
    const ps_doc_t *init = NULL;
    const ps_doc_t *routes = NULL;
    const ps_doc_t *route = NULL;
    const ps_doc_t *to = NULL;
    uint64_t number = 0;
    double real = 0;

    SAYS(PSD_OK, "", ps_doc_get_object(doc, "spec", &spec, err));
    SAYS(PSD_OK, "", ps_doc_get_object(spec, "init", &init, err));
    SAYS(PSD_OK, "", ps_doc_get_array(doc, "routes", 3, &routes, err));
    SAYS(PSD_OK, "", ps_doc_at_object(routes, 2, &route, err));
    SAYS(PSD_OK, "", ps_doc_get_array(route, "to", 1, &to, err));
    SAYS(PSD_INVALID, "spec.cols is 0; allowed: 1..2147483648",
         ps_doc_get_u64(spec, "cols", 1, UINT64_C(1) << 31, &number, err));
    SAYS(PSD_PROTO, "spec.init.a is \"x\"; allowed: a number",
         ps_doc_get_f64(init, "a", &real, err));
    SAYS(PSD_PROTO, "routes[2].epoch is missing",
         ps_doc_get_u64(route, "epoch", 0, 9, &number, err));
    SAYS(PSD_PROTO, "routes[2].to[0] is an array; allowed: an object",
         ps_doc_at_object(to, 0, &route, err));
    SAYS(PSD_PROTO, "spec is an object; allowed: an array",
         ps_doc_get_array(doc, "spec", 1, &to, err));
    SAYS(PSD_PROTO, "routes is an array; allowed: an object",
         ps_doc_get_object(doc, "routes", &to, err));
}

Test(doc_get, path_begins_at_an_array_too)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new_array();
    ps_doc_t *item = ps_doc_append_object(doc);
    ps_doc_t *child = ps_doc_add_object(item, "c");
    uint64_t number = 0;

    SAYS(PSD_PROTO, "[0].c.y is missing", ps_doc_get_u64(child, "y", 0, 9, &number, err));
}

/* DEL once went through to the error's text: JSON has no need to escape it. */
Test(doc_get, value_is_shown_without_control_bytes)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = parse("{\"t\":\"0\x7F\"}");
    uint64_t number = 0;

    SAYS(PSD_PROTO, "t is \"0?\"; allowed: 0..9", ps_doc_get_u64(doc, "t", 0, 9, &number, err));
}

/* The key is the object's own, not the caller's. */
Test(doc_get, path_outlives_the_key_that_was_asked_for)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = parse("{\"abc\":{}}");
    ps_doc_t *added = NULL;
    const ps_doc_t *object = NULL;
    char key[8] = "abc";
    uint64_t number = 0;

    SAYS(PSD_OK, "", ps_doc_get_object(doc, key, &object, err));
    memcpy(key, "def", 4);
    added = ps_doc_add_object(doc, key);
    memcpy(key, "ghi", 4);
    SAYS(PSD_PROTO, "abc.y is missing", ps_doc_get_u64(object, "y", 0, 9, &number, err));
    SAYS(PSD_PROTO, "def.y is missing", ps_doc_get_u64(added, "y", 0, 9, &number, err));
}

Test(doc_get, long_path_keeps_its_end)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();
    ps_doc_t *at = doc;
    uint64_t number = 0;
    char wanted[512] = "...";
    size_t size = 3;

    for (int i = 0; i < 100; i++) {
        at = ps_doc_add_object(at, "abcde");
    }
    for (int i = 0; i < 41; i++) {
        size += (size_t)snprintf(wanted + size, sizeof wanted - size, ".abcde");
    }
    (void)snprintf(wanted + size, sizeof wanted - size, ".y is missing");
    SAYS(PSD_PROTO, wanted, ps_doc_get_u64(at, "y", 0, 9, &number, err));
}

Test(doc_get, long_value_is_cut)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();
    char text[200];
    uint64_t number = 0;

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    cr_assert(ps_doc_set_text(doc, "t", text));
    SAYS(PSD_PROTO,
         "t is \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...;"
         " allowed: 0..9",
         ps_doc_get_u64(doc, "t", 0, 9, &number, err));
}

Test(doc_get, value_is_shown_on_one_line_of_ascii)
{
    PSD_AUTO(ps_doc_destroy)
    ps_doc_t *doc = parse("{\"t\":\"a\\n\\u0007\xC3\xBC\"}");
    uint64_t number = 0;

    SAYS(PSD_PROTO, "t is \"a\\n\\u0007\\u00FC\"; allowed: 0..9",
         ps_doc_get_u64(doc, "t", 0, 9, &number, err));
}

Test(doc_get, array_has_no_keys)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = parse("{\"a\":[1]}");
    const ps_doc_t *array = NULL;
    uint64_t number = 0;

    SAYS(PSD_OK, "", ps_doc_get_array(doc, "a", 1, &array, err));
    cr_assert_not(ps_doc_has(array, "x"));
    SAYS(PSD_PROTO, "a.x is missing", ps_doc_get_u64(array, "x", 0, 9, &number, err));
}
