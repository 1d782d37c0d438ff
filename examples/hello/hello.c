/* SPDX-License-Identifier: Apache-2.0 */
/* Pushes three keys and pulls them back:
 *     cc hello.c -o hello $(pkg-config --cflags --libs libpsd) && ./hello */
#include <psd.h>
#include <stdio.h>

int
main(void)
{
    uint64_t keys[] = {1, 3, 5};
    float deltas[] = {0.5F, 1.5F, 2.5F}, values[3] = {0};
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;
    psd_spec_t *spec = psd_spec_new();
    psd_error_t *err = psd_error_new();
    if (psd_connect(NULL, NULL, &client, err) == PSD_OK &&
        psd_spec_set(spec, "rows", "1000", err) == PSD_OK &&
        psd_table_ensure(client, "hello", spec, &table, err) == PSD_OK &&
        psd_push(table, keys, 3, deltas, 3, err) == PSD_OK &&
        psd_pull(table, keys, 3, values, 3, err) == PSD_OK) {
        printf("%g %g %g\n", values[0], values[1], values[2]);
    }
    if (psd_error_status(err) != PSD_OK) {
        fprintf(stderr, "hello: %s\n", psd_error_text(err));
    }
    psd_table_close(&table);
    psd_close(&client);
    psd_spec_destroy(&spec);
    psd_error_destroy(&err);
    return values[0] > 0 ? 0 : 1;
}
