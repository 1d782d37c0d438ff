/* SPDX-License-Identifier: Apache-2.0 */
/* A document from random text. What is accepted is read through every getter
 * and printed; the print has to parse and to print the same again. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "wire/messages/doc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good) {
        abort();
    }
}

/* A refusal has a reason, on one line. */
static void check_reason(psd_status_t rc, psd_error_t *err)
{
    const char *text = psd_error_text(err);

    check((rc == PSD_OK) == (text[0] == '\0'));
    for (; *text != '\0'; text++) {
        check((unsigned char)*text >= ' ' && *text != 0x7F);
    }
    psd_error_clear(err);
}

static void read_scalars(const ps_doc_t *doc, const char *key, psd_error_t *err)
{
    uint64_t number = 0;
    int64_t integer = 0;
    double real = 0;
    bool flag = false;
    const char *text = NULL;
    ps_id_t id;
    psd_status_t rc = ps_doc_get_u64(doc, key, 1, 100, &number, err);

    check(rc != PSD_OK || (number >= 1 && number <= 100));
    check_reason(rc, err);
    rc = ps_doc_get_i64(doc, key, -5, 5, &integer, err);
    check(rc != PSD_OK || (integer >= -5 && integer <= 5));
    check_reason(rc, err);
    rc = ps_doc_get_f64(doc, key, &real, err);
    check(rc != PSD_OK || isfinite(real));
    check_reason(rc, err);
    check_reason(ps_doc_get_bool(doc, key, &flag, err), err);
    rc = ps_doc_get_text(doc, key, 40, &text, err);
    check(rc != PSD_OK || strlen(text) <= 40);
    check_reason(rc, err);
    check_reason(ps_doc_get_id(doc, key, &id, err), err);
}

static void read_keys(const ps_doc_t *doc, int depth, psd_error_t *err);

static void read_items(const ps_doc_t *array, int depth, psd_error_t *err)
{
    for (size_t i = 0; i < ps_doc_count(array); i++) {
        const ps_doc_t *object = NULL;
        const char *text = NULL;
        uint64_t number = 0;
        psd_status_t rc = ps_doc_at_object(array, i, &object, err);

        check_reason(rc, err);
        if (rc == PSD_OK) {
            read_keys(object, depth + 1, err);
        }
        check_reason(ps_doc_at_u64(array, i, &number, err), err);
        check_reason(ps_doc_at_text(array, i, 40, &text, err), err);
    }
}

static void read_keys(const ps_doc_t *doc, int depth, psd_error_t *err)
{
    static const char *const keys[] = {"", "a", "op", "routes", "spec"};

    check(depth <= PS_DOC_DEPTH_MAX);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const ps_doc_t *child = NULL;
        psd_status_t rc = ps_doc_get_object(doc, keys[i], &child, err);

        check_reason(rc, err);
        if (rc == PSD_OK) {
            read_keys(child, depth + 1, err);
        }
        rc = ps_doc_get_array(doc, keys[i], 8, &child, err);
        check_reason(rc, err);
        if (rc == PSD_OK) {
            read_items(child, depth + 1, err);
        }
        read_scalars(doc, keys[i], err);
    }
}

static void check_prints_the_same(const ps_doc_t *doc)
{
    ps_buffer_t first = {0};
    ps_buffer_t second = {0};
    ps_doc_t *again = NULL;

    check(ps_doc_print(doc, &first));
    check(ps_doc_parse((ps_bytes_t){first.data, first.size}, &again, NULL) == PSD_OK);
    check(ps_doc_print(again, &second));
    check(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
    ps_doc_destroy(&again);
    ps_buffer_done(&first);
    ps_buffer_done(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    psd_error_t *err = psd_error_new();
    ps_doc_t *doc = NULL;
    psd_status_t rc = ps_doc_parse((ps_bytes_t){data, size}, &doc, err);

    check((rc == PSD_OK) == (doc != NULL));
    check(rc == PSD_OK || rc == PSD_PROTO || rc == PSD_LIMIT);
    check_reason(rc, err);
    if (rc == PSD_OK) {
        read_keys(doc, 1, err);
        check_prints_the_same(doc);
    }
    ps_doc_destroy(&doc);
    psd_error_destroy(&err);
    return 0;
}
