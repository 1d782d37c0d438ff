/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a bundle: the counts of contributors and spans, u16 each, then
 * its bytes. What is accepted writes the same bytes again, and keeps the rules.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "wire/records/bundle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good) {
        abort();
    }
}

/* Each contributor is in the one span that has its worker's position, or in
 * none. */
static void check_rules(const ps_bundle_t *bundle)
{
    for (uint16_t i = 0; i < bundle->n_from; i++) {
        uint32_t worker = bundle->from[i].worker;
        unsigned n = 0;

        for (uint16_t k = 0; k < bundle->n_spans; k++) {
            const ps_bundle_span_t *span = &bundle->spans[k];
            bool is_of = i >= span->from && i - span->from < span->n_from;

            check(is_of == (worker >= span->first && worker - span->first < span->n));
            n += is_of ? 1 : 0;
        }
        check(n <= 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    PSD_AUTO(ps_bundle_done) ps_bundle_t bundle = {.from = NULL};
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    uint8_t *exact = NULL;
    uint8_t *again = NULL;
    size_t n = 0;

    if (size < 4) {
        return 0;
    }
    exact = ps_alloc_raw(size - 4, 1); /* so that reading beyond is seen */
    check(exact != NULL);
    memcpy(exact, data + 4, size - 4);
    if (ps_bundle_read((ps_bytes_t){exact, size - 4}, ps_load_u16(data), ps_load_u16(data + 2),
                       &bundle, err) == PSD_OK) {
        check(ps_bundle_size(&bundle, &n) && n == size - 4);
        again = ps_alloc_raw(n, 1);
        check(again != NULL);
        ps_bundle_write(&bundle, again);
        check(memcmp(again, exact, n) == 0);
        check_rules(&bundle);
        ps_free(again);
    } else {
        check(psd_error_text(err)[0] != '\0');
    }
    ps_free(exact);
    return 0;
}
