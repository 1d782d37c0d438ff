/* SPDX-License-Identifier: Apache-2.0 */
/* pscli clock: the clock of each worker, and which worker waits for which. */
#include "cli/jobs/jobs.h"

#include <inttypes.h>

#include "base/alloc.h"

static const ps_column_t CLOCKS[] = {{"JOB", "job|name", PS_UNIT_NONE, false},
                                     {"STATE", "state", PS_UNIT_NONE, true},
                                     {"MAX_DELAY", "max_delay", PS_UNIT_NONE, false},
                                     {"MIN", "min", PS_UNIT_NONE, false},
                                     {"MAX", "max", PS_UNIT_NONE, false},
                                     {"WORKERS", "workers", PS_UNIT_COUNT, false},
                                     {"WAITING", "waiting", PS_UNIT_COUNT, false},
                                     {NULL, NULL, PS_UNIT_NONE, false}};

static const ps_column_t WORKERS[] = {{"WORKER", "worker", PS_UNIT_NONE, false},
                                      {"STATE", "state", PS_UNIT_NONE, false},
                                      {"CLOCK", "clock", PS_UNIT_NONE, false},
                                      {"SEEN", "last_seen_s", PS_UNIT_SECONDS, false},
                                      {"WAITING", "waiting_s", PS_UNIT_SECONDS, false},
                                      {"WAITING_FOR", "waiting_for", PS_UNIT_NONE, false},
                                      {NULL, NULL, PS_UNIT_NONE, false}};

psd_status_t ps_cmd_clock_list(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc = ps_cli_request(cli, "clock_list", NULL, NULL, &reply, err);

    if (rc == PSD_OK) {
        ps_out_list(&cli->out, reply, "clocks", CLOCKS);
    }
    return rc;
}

/* The line above the table of workers. */
static void show_bound(const ps_cli_t *cli, const char *job, const json_t *reply)
{
    const json_t *delay = ps_json_at(reply, "max_delay");
    int64_t max_delay = json_integer_value(delay);
    uint64_t min = ps_json_u64(reply, "min");
    uint64_t max = ps_json_u64(reply, "max");

    ps_print(cli->out.out,
             "job %s  %s max_delay %" PRId64 "  clocks %" PRIu64 " to %" PRIu64 ", spread %" PRIu64
             "\n\n",
             job,
             max_delay == 0  ? "BSP"
             : max_delay > 0 ? "SSP"
                             : "ASP",
             max_delay, min, max, max >= min ? max - min : 0);
}

psd_status_t ps_cmd_clock_inspect(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    const char *job = NULL;
    psd_status_t rc = ps_cli_name(cli, 0, "JOB", &job, err);

    if (rc == PSD_OK) {
        rc = ps_cli_request(cli, "clock_inspect", "job", job, &reply, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (cli->out.format == PS_FORMAT_TABLE || cli->out.format == PS_FORMAT_WIDE) {
        show_bound(cli, job, reply);
    }
    ps_out_list(&cli->out, reply, "workers", WORKERS);
    return PSD_OK;
}
