/* SPDX-License-Identifier: Apache-2.0 */
/* pscli worker: the members of a job. */
#include "cli/jobs/jobs.h"

#include "base/alloc.h"

static const ps_column_t WORKERS[] = {{"WORKER", "worker", PS_UNIT_NONE, false},
                                      {"STATE", "state", PS_UNIT_NONE, false},
                                      {"CLOCK", "clock", PS_UNIT_NONE, false},
                                      {"SEEN", "last_seen_s", PS_UNIT_SECONDS, false},
                                      {"MEMBERS", "members|n_members", PS_UNIT_COUNT, true},
                                      {"JOINS", "joins", PS_UNIT_NONE, true},
                                      {NULL, NULL, PS_UNIT_NONE, false}};

psd_status_t ps_cmd_worker_list(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    const char *job = NULL;
    psd_status_t rc = ps_cli_name(cli, 0, "JOB", &job, err);

    if (rc == PSD_OK) {
        rc = ps_cli_request(cli, "worker_list", "job", job, &reply, err);
    }
    if (rc == PSD_OK) {
        ps_out_list(&cli->out, reply, "workers", WORKERS);
    }
    return rc;
}
