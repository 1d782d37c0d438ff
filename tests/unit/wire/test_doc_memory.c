/* SPDX-License-Identifier: Apache-2.0 */
/* wire/messages/doc.h: out of memory within the JSON library, which ps_alloc does not
 * see. Its allocator is set for the whole process; each test is one. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <string.h>

#include "base/alloc.h"
#include "wire/messages/doc.h"

static size_t n_calls;
static size_t failing_call;

static void *failing_malloc(size_t size)
{
    return n_calls++ == failing_call ? NULL : malloc(size);
}

static bool write_all(ps_doc_t *doc)
{
    static const ps_id_t id = {{0}};
    ps_doc_t *array = NULL;
    ps_doc_t *object = NULL;

    if (!ps_doc_set_u64(doc, "u", UINT64_MAX) || !ps_doc_set_i64(doc, "i", -1) ||
        !ps_doc_set_f64(doc, "f", 0.5) || !ps_doc_set_bool(doc, "b", true) ||
        !ps_doc_set_text(doc, "t", "x") || !ps_doc_set_id(doc, "id", &id)) {
        return false;
    }
    object = ps_doc_add_object(doc, "o");
    cr_assert_eq(object != NULL, ps_doc_has(doc, "o"));
    array = ps_doc_add_array(doc, "a");
    cr_assert_eq(array != NULL, ps_doc_has(doc, "a"));
    if (object == NULL || array == NULL) {
        return false;
    }
    for (uint64_t i = 0; i < 40; i++) {
        size_t count = ps_doc_count(array);

        if (!ps_doc_append_u64(array, i) || !ps_doc_append_text(array, "t") ||
            ps_doc_append_object(array) == NULL) {
            cr_assert_leq(ps_doc_count(array), count + 2);
            return false;
        }
    }
    return true;
}

/* True when nothing was short of memory. */
static bool run_once(void)
{
    static const char text[] = "{\"a\":[1,2.5,\"\xC3\xBC\\n\",true,null,{\"b\":{}}],\"c\":\"d\"}";
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();
    PSD_AUTO(ps_doc_destroy) ps_doc_t *array = ps_doc_new_array();
    PSD_AUTO(ps_doc_destroy) ps_doc_t *parsed = NULL;
    PSD_AUTO(ps_buffer_done) ps_buffer_t buffer = {0};
    psd_status_t rc = PSD_OK;

    if (doc == NULL || array == NULL || !write_all(doc)) {
        return false;
    }
    if (!ps_doc_print(doc, &buffer)) {
        cr_assert_eq(buffer.size, 0, "half a document is none");
        return false;
    }
    rc = ps_doc_parse((ps_bytes_t){(const uint8_t *)text, sizeof text - 1}, &parsed, NULL);
    cr_assert_eq(rc == PSD_OK, parsed != NULL);
    /* The parser takes some of its own failures for faults of the text. */
    cr_assert(rc == PSD_OK || rc == PSD_NOMEM || rc == PSD_PROTO);
    return rc == PSD_OK;
}

Test(doc_memory, every_failure_of_the_library_is_survived)
{
    size_t n_failed = 0;

    json_set_alloc_funcs(failing_malloc, free);
    for (failing_call = 0; failing_call < 10000; failing_call++) {
        bool good = false;

        n_calls = 0;
        good = run_once();
        if (n_calls <= failing_call) {
            cr_assert(good);
            cr_assert_gt(n_failed, 100);
            return;
        }
        n_failed++;
    }
    cr_assert_fail("it never got all the memory it asked for");
}
