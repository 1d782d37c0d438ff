/* SPDX-License-Identifier: Apache-2.0 */
/* examples/lr/libsvm.h: no text hurts; what is read keeps its promises, whole
 * and in slices. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libsvm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(const lr_samples_t *samples, const lr_slice_t *slice)
{
    assert(samples->n_seen > 0 && samples->n <= samples->n_seen);
    assert(samples->greatest <= slice->index_max);
    for (size_t i = 0; i < samples->n; i++) {
        assert(samples->labels[i] == 1 || samples->labels[i] == -1);
        assert(samples->starts[i] <= samples->starts[i + 1]);
        for (size_t k = samples->starts[i]; k < samples->starts[i + 1]; k++) {
            assert(isfinite(samples->values[k]) && samples->values[k] != 0);
            assert(samples->features[k] <= samples->greatest);
            assert(k == samples->starts[i] ||
                   samples->features[k] > samples->features[k - 1]);
        }
    }
    if (samples->n > 0) {
        assert(samples->starts[samples->n] == samples->n_entries);
    }
}

static psd_status_t
read_slice(const uint8_t *data,
           size_t size,
           const lr_slice_t *slice,
           size_t *ret_n)
{
    lr_samples_t samples = {0};
    psd_error_t *err = psd_error_new();
    FILE *stream = fmemopen((void *)data, size, "r");
    psd_status_t rc = PSD_OK;

    assert(stream != NULL);
    rc = lr_libsvm_read(stream, "x", slice, &samples, err);
    (void)fclose(stream);
    if (rc == PSD_OK) {
        check(&samples, slice);
        *ret_n = samples.n;
    } else {
        assert(rc == PSD_INVALID && samples.n == 0);
        assert(strncmp(psd_error_text(err), "x:", 2) == 0);
    }
    lr_samples_done(&samples);
    psd_error_destroy(&err);
    return rc;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    lr_slice_t slice = {.n_parts = 1, .index_max = LR_INDEX_MAX};
    size_t n_all = 0;
    size_t n_parts = 0;
    psd_status_t rc = PSD_OK;

    if (size == 0) {
        return 0; /* fmemopen has no stream of nothing */
    }
    rc = read_slice(data, size, &slice, &n_all);
    slice.n_parts = 3;
    for (slice.part = 0; slice.part < slice.n_parts; slice.part++) {
        size_t n = 0;

        /* A mistake is one whoever reads it. */
        assert(read_slice(data, size, &slice, &n) == rc);
        n_parts += n;
    }
    assert(n_parts == n_all);
    return 0;
}
