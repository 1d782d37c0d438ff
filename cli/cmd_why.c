/* SPDX-License-Identifier: Apache-2.0 */
/* pscli why: one line for each worker that waits. */
#include "cli/cli.h"

#include "base/alloc.h"

static const ps_column_t WAITERS[] = {
    {"WORKER", "worker", PS_UNIT_NONE, false},
    {"CLOCK", "clock", PS_UNIT_NONE, false},
    {"WAITING", "waiting_s", PS_UNIT_SECONDS, false},
    {"WAITING_FOR", "waiting_for|for", PS_UNIT_NONE, false},
    {"TEXT", "text", PS_UNIT_NONE, true},
    {NULL, NULL, PS_UNIT_NONE, false}};

psd_status_t
ps_cmd_why(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    const char *job = NULL;
    psd_status_t rc = ps_cli_name(cli, 0, "JOB", &job, err);

    if (rc == PSD_OK) {
        rc = ps_cli_request(cli, "why", "job", job, &reply, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (cli->out.format != PS_FORMAT_TABLE &&
        cli->out.format != PS_FORMAT_WIDE) {
        ps_out_list(&cli->out, reply, "waiters", WAITERS);
        return PSD_OK;
    }
    const json_t *text = ps_json_at(reply, "text");

    for (size_t i = 0; i < json_array_size(text); i++) {
        const char *line = json_string_value(json_array_get(text, i));

        ps_print(cli->out.out, "%s\n", line == NULL ? "" : line);
    }
    if (json_array_size(text) == 0) {
        ps_say(&cli->out, "nobody waits in job \"%s\"", job);
    }
    return PSD_OK;
}
