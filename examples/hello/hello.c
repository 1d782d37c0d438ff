/* SPDX-License-Identifier: Apache-2.0 */
/* Pushes three keys and pulls them back:
 *     cc hello.c -o hello $(pkg-config --cflags --libs libpsd) && ./hello */
#include <stdio.h>
#include <string.h>

#include "psd.h"

int main(int argc, char **argv)
{
    const uint64_t keys[] = {1, 3, 5};
    const float deltas[] = {0.5F, 1.5F, 2.5F};
    float values[3];
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;
    psd_spec_t *spec = NULL;
    psd_error_t *err = NULL;
    int exit_code = 0;
    int is_help = 0;

    if (argc > 1) {
        is_help = strcmp(argv[1], "--help") == 0;
        (void)fputs("usage: psd-hello\n", is_help ? stdout : stderr);
        return is_help ? 0 : 2;
    }
    spec = psd_spec_new();
    err = psd_error_new();
    if (psd_spec_set(spec, "rows", "1000", err) == PSD_OK &&
        psd_connect(NULL, NULL, &client, err) == PSD_OK &&
        psd_table_ensure(client, "hello", spec, &table, err) == PSD_OK &&
        psd_push(table, keys, 3, deltas, 3, err) == PSD_OK &&
        psd_pull(table, keys, 3, values, 3, err) == PSD_OK) {
        (void)printf("%g %g %g\n", values[0], values[1], values[2]);
    } else {
        (void)fprintf(stderr, "hello: %s\n", psd_error_text(err));
        exit_code = 1;
    }
    psd_table_close(&table);
    psd_close(&client);
    psd_spec_destroy(&spec);
    psd_error_destroy(&err);
    return exit_code;
}
