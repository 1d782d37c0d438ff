/* SPDX-License-Identifier: Apache-2.0 */
/* lib/server/embed/embed_options.c: what a server in a program cannot have. */
#include "server/embed/embed_inner.h"

#include <criterion/criterion.h>
#include <stdlib.h>

/* Its program would need a key for the way to itself. */
Test(embed_options, level_encrypt_is_refused_by_name)
{
    psd_error_t *err = psd_error_new();
    ps_config_t config = {0};
    bool temporary = false;

    cr_assert_eq(setenv("PSD_SECURITY_LEVEL", "encrypt", 1), 0);
    cr_assert_eq(ps_embed_options_config(NULL, &config, &temporary, err), PSD_CONFIG);
    cr_assert_str_eq(psd_error_text(err),
                     "security.level is encrypt, which a server in a program cannot have yet; "
                     "allowed here: plain");
    psd_error_clear(err);
    cr_assert_eq(setenv("PSD_SECURITY_LEVEL", "plain", 1), 0);
    cr_assert_eq(ps_embed_options_config(NULL, &config, &temporary, err), PSD_OK, "%s",
                 psd_error_text(err));
    ps_config_done(&config);
    cr_assert_eq(unsetenv("PSD_SECURITY_LEVEL"), 0);
    psd_error_destroy(&err);
}
