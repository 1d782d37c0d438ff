/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration from random text. What is refused has a reason on one line;
 * what is accepted prints to a file that gives the same values. */
#include <stdlib.h>
#include <string.h>

#include "daemon/config_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good) {
        abort();
    }
}

static void check_again(const ps_config_t *config, psd_error_t *err)
{
    ps_buffer_t text = {0};
    ps_config_t again;

    check(ps_config_print(config, &text));
    check(ps_config_init(&again, err) == PSD_OK);
    check(ps_config_parse(&again, "printed", (ps_bytes_t){.data = text.data, .size = text.size},
                          err) == PSD_OK);
    for (int i = 0; i < PS_KEY_COUNT; i++) {
        ps_buffer_t a = {0};
        ps_buffer_t b = {0};

        check(ps_config_value_print(config, (ps_key_id_t)i, &a));
        check(ps_config_value_print(&again, (ps_key_id_t)i, &b));
        check(a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0));
        ps_buffer_done(&a);
        ps_buffer_done(&b);
    }
    ps_config_done(&again);
    ps_buffer_done(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    psd_error_t *err = psd_error_new();
    ps_config_t config;
    psd_status_t rc = PSD_OK;

    check(setenv("XDG_STATE_HOME", "/state", 1) == 0);
    check(ps_config_init(&config, err) == PSD_OK);
    rc = ps_config_parse(&config, "f.yaml", (ps_bytes_t){.data = data, .size = size}, err);
    check((rc == PSD_OK) == (psd_error_text(err)[0] == '\0'));
    check(strpbrk(psd_error_text(err), "\r\n") == NULL);
    if (rc == PSD_OK) {
        check_again(&config, err);
    }
    ps_config_done(&config);
    psd_error_destroy(&err);
    return 0;
}
