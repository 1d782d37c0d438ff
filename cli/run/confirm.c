/* SPDX-License-Identifier: Apache-2.0 */
/* One question, answered by y or by anything else. */
#include "cli/run/confirm.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MORE_SIZE 32 /* quotes and a comma, or " and N more" */

void ps_confirm_names(const json_t *items, char ret_names[PS_CONFIRM_NAMES_SIZE])
{
    const size_t size = PS_CONFIRM_NAMES_SIZE;
    size_t n = json_array_size(items);
    size_t used = 0;

    ret_names[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(items, i);
        const char *name =
            json_is_string(item) ? json_string_value(item) : ps_json_text(item, "table");

        if (used + strlen(name) + MORE_SIZE > size) {
            (void)snprintf(ret_names + used, size - used, " and %zu more", n - i);
            return;
        }
        used +=
            (size_t)snprintf(ret_names + used, size - used, "%s\"%s\"", i == 0 ? "" : ", ", name);
    }
}

/* verb: "drop", with its other forms. */
static psd_status_t ask(const ps_cli_t *cli, const char *verb, const char *doing, const char *done,
                        const char *what, psd_error_t *err)
{
    char answer[64] = "";

    if (ps_args_on(&cli->args, "yes")) {
        return PSD_OK;
    }
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
        return psd_error_set(err, PSD_USAGE, "%s %s needs --yes, as there is no terminal to ask on",
                             doing, what);
    }
    ps_print(cli->out.err, "%s %s? [y/N] ", verb, what);
    (void)fflush(cli->out.err);
    if (fgets(answer, sizeof answer, stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y')) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_FAILED, "not %s", done);
}

psd_status_t ps_confirm_drop(const ps_cli_t *cli, const char *what, psd_error_t *err)
{
    return ask(cli, "drop", "dropping", "dropped", what, err);
}

psd_status_t ps_confirm_remove(const ps_cli_t *cli, const char *what, psd_error_t *err)
{
    return ask(cli, "remove", "removing", "removed", what, err);
}
