/* SPDX-License-Identifier: Apache-2.0 */
/* Many threads localize batch after batch and find what a plain sort finds. */
#include <stdio.h>

#include "localizer_batch.h"

#define N ((size_t)20000)
#define ROUNDS 12

int main(void)
{
    psd_localizer_t *localizer = NULL;
    uint64_t *keys = malloc(N * sizeof *keys);
    const char *wrong = NULL;

    if (keys == NULL || psd_localizer_new(5, &localizer, NULL) != PSD_OK) {
        puts("no localizer");
        return 1;
    }
    for (int round = 0; round < ROUNDS && wrong == NULL; round++) {
        size_t n = N - 7 * (size_t)round;

        batch_fill(keys, n, (batch_kind_t)(round % BATCH_KINDS), 3);
        if (psd_localizer_run(localizer, keys, n, NULL) != PSD_OK) {
            wrong = "a run failed";
        } else {
            wrong = batch_check(localizer, keys, n);
        }
    }
    if (wrong == NULL) { /* all threads add to the cells of one sketch */
        batch_fill(keys, N, BATCH_FEW, 5);
        if (psd_localizer_set_min_count(localizer, 2, 64, NULL) != PSD_OK ||
            psd_localizer_run(localizer, keys, N, NULL) != PSD_OK) {
            wrong = "a run with a minimum count failed";
        } else {
            wrong = batch_check(localizer, keys, N);
        }
    }
    psd_localizer_destroy(&localizer);
    free(keys);
    if (wrong != NULL) {
        puts(wrong);
    }
    return wrong != NULL;
}
