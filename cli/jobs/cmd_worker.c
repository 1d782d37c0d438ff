/* SPDX-License-Identifier: Apache-2.0 */
/* pscli worker: the members of a job, and the helper beside one. */
#include "cli/jobs/jobs.h"

#include <string.h>

#include "base/alloc.h"
#include "cli/launch/exec.h"
#include "cli/launch/record.h"

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

psd_status_t ps_cmd_worker_exec(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_free_at)
    const char **argv = ps_alloc(cli->args.n_words + 1, sizeof *argv);
    const char *launch = ps_args_text(&cli->args, "launch");
    const ps_exec_args_t args = {
        .launch = launch, .reads = ps_args_on(&cli->args, "stdin"), .argv = argv};

    if (argv == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the program");
    }
    if (launch != NULL && strlen(launch) != PS_LAUNCH_ID_SIZE - 1) {
        return psd_error_set(err, PSD_USAGE, "--launch is \"%s\"; allowed: %d hexadecimal digits",
                             launch, PS_LAUNCH_ID_SIZE - 1);
    }
    memcpy(argv, cli->args.words, cli->args.n_words * sizeof *argv);
    return ps_exec(&args, &cli->exit_code, err);
}
