/* SPDX-License-Identifier: Apache-2.0 */
/* One question, answered by y or by anything else. */
#include "cli/confirm.h"

#include <stdio.h>
#include <unistd.h>

psd_status_t
ps_confirm_drop(const ps_cli_t *cli, const char *what, psd_error_t *err)
{
    char answer[64] = "";

    if (ps_args_on(&cli->args, "yes")) {
        return PSD_OK;
    }
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
        return psd_error_set(
            err, PSD_USAGE,
            "dropping %s needs --yes where there is no terminal to ask on",
            what);
    }
    ps_print(cli->out.err, "drop %s? [y/N] ", what);
    (void)fflush(cli->out.err);
    if (fgets(answer, sizeof answer, stdin) != NULL &&
        (answer[0] == 'y' || answer[0] == 'Y')) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_FAILED, "not dropped");
}
