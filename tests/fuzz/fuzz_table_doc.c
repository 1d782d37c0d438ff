/* SPDX-License-Identifier: Apache-2.0 */
/* A table's spec and routes from any JSON. What is accepted is a valid spec and
 * comes back as it was. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/facts/table_doc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good) {
        abort();
    }
}

static void print_spec(const ps_table_spec_t *spec, ps_buffer_t *text)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();

    check(ps_table_spec_to_doc(spec, doc));
    check(ps_doc_print(doc, text));
}

static void check_comes_back(const ps_table_spec_t *spec)
{
    PSD_AUTO(ps_table_spec_done) ps_table_spec_t back = {0};
    PSD_AUTO(ps_table_spec_done) ps_table_spec_t settled = {0};
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;
    PSD_AUTO(ps_buffer_done) ps_buffer_t first = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t second = {0};

    print_spec(spec, &first);
    check(ps_doc_parse((ps_bytes_t){first.data, first.size}, &doc, NULL) == PSD_OK);
    check(ps_table_spec_from_doc(doc, &back, NULL) == PSD_OK);
    print_spec(&back, &second);
    check(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
    check(ps_table_spec_copy(spec, &settled, NULL) == PSD_OK);
    ps_table_spec_settle(&settled, 4);
    check(ps_table_spec_check(&settled, NULL) == PSD_OK);
}

static void read_routes(const ps_doc_t *doc)
{
    PSD_AUTO(ps_free_at) ps_route_t *routes = NULL;
    const ps_doc_t *array = NULL;
    uint32_t n = 0;

    if (ps_doc_get_array(doc, "routes", PS_TABLE_PARTITIONS_MAX, &array, NULL) == PSD_OK &&
        ps_routes_from_doc(array, &routes, &n, NULL) == PSD_OK) {
        check(n >= 1 && routes[n - 1].partition == n - 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;
    PSD_AUTO(ps_table_spec_done) ps_table_spec_t spec = {0};
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    psd_status_t rc = ps_doc_parse((ps_bytes_t){data, size}, &doc, NULL);

    if (rc != PSD_OK) {
        return 0;
    }
    rc = ps_table_spec_from_doc(doc, &spec, err);
    if (rc == PSD_OK) {
        check_comes_back(&spec);
    } else {
        check(rc == PSD_PROTO || rc == PSD_INVALID);
        check(psd_error_text(err)[0] != '\0');
    }
    read_routes(doc);
    return 0;
}
