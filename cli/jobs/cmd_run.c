/* SPDX-License-Identifier: Apache-2.0 */
/* pscli run: the workers of a job, as children or by a launcher. */
#include "cli/jobs/jobs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"
#include "cli/jobs/workers.h"
#include "cli/jobs/run.h"
#include "transport/sockets/ranks.h"

#define JOB_SIZE 64

static const ps_column_t WORKERS[] = {{"WORKER", "worker", PS_UNIT_NONE, false},
                                      {"EXIT", "exit", PS_UNIT_NONE, false},
                                      {"SIGNAL", "signal", PS_UNIT_NONE, false},
                                      {NULL, NULL, PS_UNIT_NONE, false}};

static const ps_column_t PLAN[] = {{"JOB", "job", PS_UNIT_NONE, false},
                                   {"WORKERS", "workers", PS_UNIT_NONE, false},
                                   {"MAX_DELAY", "max_delay", PS_UNIT_NONE, false},
                                   {"ENDPOINT", "endpoint", PS_UNIT_NONE, false},
                                   {"PROGRAM", "program", PS_UNIT_NONE, false},
                                   {"DRY_RUN", "dry_run", PS_UNIT_NONE, false},
                                   {NULL, NULL, PS_UNIT_NONE, false}};

/* PROGRAM-20260102-030405-77: so a job of that name is unlikely to exist. */
static void make_job_name(const char *program, char ret_job[JOB_SIZE])
{
    const char *slash = strrchr(program, '/');
    const char *base = slash == NULL ? program : slash + 1;
    time_t now = time(NULL);
    struct tm parts = {0};
    char stamp[32] = "0";
    size_t n = 0;

    for (; n < 24 && base[n] != '\0'; n++) {
        const char c[2] = {base[n], '\0'};

        ret_job[n] = base[n];
        if (strchr("-.", base[n]) != NULL ? n == 0 : !ps_text_is_name(c)) {
            ret_job[n] = '_';
        }
    }
    if (gmtime_r(&now, &parts) != NULL) {
        (void)strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &parts);
    }
    (void)snprintf(ret_job + n, JOB_SIZE - n, "-%s-%d", stamp, (int)getpid());
}

static psd_status_t choose_job(const ps_cli_t *cli, char ret_job[JOB_SIZE], psd_error_t *err)
{
    const char *job = ps_args_text(&cli->args, "job");

    if (job == NULL) {
        make_job_name(ps_cli_word(cli, 0), ret_job);
        return PSD_OK;
    }
    if (!ps_text_is_name(job)) {
        return psd_error_set(err, PSD_USAGE,
                             "--job is \"%s\"; allowed: 1 to 63 letters, "
                             "digits, \"_\", \".\", \"-\"",
                             job);
    }
    (void)snprintf(ret_job, JOB_SIZE, "%s", job);
    return PSD_OK;
}

static void show_workers(const ps_cli_t *cli, const ps_workers_t *workers, const char *job)
{
    PSD_AUTO(ps_json_unref)
    json_t *doc =
        json_pack("{s:s,s:i,s:[]}", "job", job, "exit", ps_workers_exit(workers), "workers");
    json_t *list = json_object_get(doc, "workers");

    for (uint32_t i = 0; i < workers->n; i++) {
        const ps_local_worker_t *worker = &workers->items[i];
        json_t *item = json_pack("{s:i,s:i,s:o}", "worker", (int)i, "exit", worker->exit, "signal",
                                 worker->signal == 0 ? json_null() : json_integer(worker->signal));

        (void)json_array_append_new(list, item);
    }
    ps_out_list(&cli->out, doc, "workers", WORKERS);
}

/* Some workers failed: with --allow-lost the run still succeeds when the
 * others have done their part. */
static void allow_lost(ps_cli_t *cli, const ps_workers_t *workers)
{
    uint64_t allowed = ps_args_u64(&cli->args, "allow-lost");
    char why[PS_JOB_WHY_SIZE] = "";
    uint32_t n_lost = 0;

    for (uint32_t i = 0; i < workers->n; i++) {
        n_lost += workers->items[i].exit != 0 ? 1 : 0;
    }
    if (allowed == 0) {
        return;
    }
    if (n_lost > allowed) {
        ps_say(&cli->out, "%" PRIu32 " workers were lost, --allow-lost allows %" PRIu64, n_lost,
               allowed);
    } else if (ps_workers_job_is_whole(workers->args->registered, why)) {
        ps_say(&cli->out,
               "%" PRIu32 " of %" PRIu32 " workers were lost; the others finished all slices",
               n_lost, workers->n);
        cli->exit_code = 0;
    } else {
        ps_say(&cli->out, "%s", why);
    }
}

static psd_status_t run_workers(ps_cli_t *cli, const ps_workers_args_t *args, psd_error_t *err)
{
    PSD_AUTO(ps_workers_done) ps_workers_t workers = {.signals = -1};
    psd_status_t rc = ps_workers_start(&workers, args, err);

    if (rc == PSD_OK) {
        rc = ps_workers_wait(&workers, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (cli->out.format != PS_FORMAT_TABLE && cli->out.format != PS_FORMAT_WIDE) {
        show_workers(cli, &workers, args->job);
    }
    cli->exit_code = ps_workers_exit(&workers);
    if (cli->exit_code != 0 && workers.asked == 0 && workers.cut_ms == 0) {
        allow_lost(cli, &workers);
    }
    return PSD_OK;
}

static psd_status_t show_plan(const ps_cli_t *cli, const ps_workers_args_t *args, psd_error_t *err)
{
    if (args->launch != NULL) {
        return ps_run_launch_show(cli, args->launch, err);
    }
    PSD_AUTO(ps_json_unref)
    json_t *doc = json_pack("{s:s,s:I,s:I,s:s,s:s,s:b}", "job", args->job, "workers",
                            (json_int_t)args->n, "max_delay", (json_int_t)args->max_delay,
                            "endpoint", args->n_serving > 0 ? "embed:" : args->endpoint, "program",
                            args->argv[0], "dry_run", 1);

    if (doc == NULL) {
        return psd_error_set(err, PSD_INVALID, "PROGRAM is not UTF-8");
    }
    ps_say(&cli->out, "would start %" PRIu32 " workers", args->n);
    ps_out_object(&cli->out, doc, PLAN);
    return PSD_OK;
}

/* The program's words, NULL-terminated. NULL: no memory. */
static const char **copy_words(const ps_cli_t *cli)
{
    const char **argv = ps_alloc(cli->args.n_words + 1, sizeof *argv);

    if (argv != NULL) {
        memcpy(argv, cli->args.words, cli->args.n_words * sizeof *argv);
    }
    return argv;
}

/* A server inside of a process is no other process's, and pscli is no rank of MPI. */
static psd_status_t check_endpoint(const ps_cli_t *cli, const ps_launch_t *launch, psd_error_t *err)
{
    const bool is_ranks = strcmp(cli->endpoint, "mpi:") == 0;

    if (!launch->by_ranks && (is_ranks || ps_ranks_use() == PS_RANKS_ALONE)) {
        return psd_error_set(err, PSD_USAGE,
                             "%s works only in programs that mpirun starts: set PSD_TRANSPORT=mpi, "
                             "and give --launcher mpi --servers embed",
                             is_ranks ? "PSD_ENDPOINT=mpi:" : "PSD_TRANSPORT=mpi");
    }
    if (launch->embeds || strncmp(cli->endpoint, "embed:", strlen("embed:")) != 0) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_USAGE,
                         "the endpoint is embed:, a server inside of one process; workers need one "
                         "that they share: give --servers embed, or unset PSD_ENDPOINT and give "
                         "--servers 1, or name a psd with --endpoint");
}

/* With the psd that is there, or a private one. */
static psd_status_t run_beside_psd(ps_cli_t *cli, ps_workers_args_t *args, ps_launch_t *launch,
                                   ps_workers_job_t *registered, psd_error_t *err)
{
    PSD_AUTO(ps_private_nodes_done) ps_private_nodes_t own = {0};
    const char *endpoint = cli->endpoint;
    psd_status_t rc = ps_run_find_psd(cli, launch, &own, err);

    args->endpoint = cli->endpoint;
    if (rc == PSD_OK && ps_args_text(&cli->args, "job") == NULL) {
        ps_say(&cli->out, "job %s", args->job);
    }
    if (rc == PSD_OK) {
        rc = ps_workers_job_open(registered, cli, args->job, args->n, err);
    }
    if (rc == PSD_OK && launch->embeds) {
        (void)snprintf(registered->nodes.name, sizeof registered->nodes.name, "%s.nodes",
                       args->job);
    }
    if (rc == PSD_OK && args->launch != NULL) {
        rc = ps_run_launch_set(cli, launch, cli->endpoint, args->job, err);
    }
    if (rc == PSD_OK) {
        rc = run_workers(cli, args, err);
    }
    psd_close(&cli->client); /* while a private psd still runs */
    cli->endpoint = endpoint;
    return rc;
}

/* All of psd is in the ranks of mpirun. */
static psd_status_t run_ranks(ps_cli_t *cli, ps_workers_args_t *args, ps_launch_t *launch,
                              ps_workers_job_t *registered, psd_error_t *err)
{
    psd_status_t rc = ps_run_launch_set(cli, launch, "", args->job, err);

    registered->is_out_of_reach = true;
    ps_say(&cli->out, "%" PRIu32 " ranks serve; rank 0 has their registry", launch->n);
    if (ps_args_text(&cli->args, "job") == NULL) {
        ps_say(&cli->out, "job %s", args->job);
    }
    return rc == PSD_OK ? run_workers(cli, args, err) : rc;
}

psd_status_t ps_cmd_run(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_launch_done) ps_launch_t launch = {0};
    PSD_AUTO(ps_free_at) const char **argv = copy_words(cli);
    ps_workers_job_t registered = {.cli = cli};
    char job[JOB_SIZE] = "";
    bool shows = cli->out.format == PS_FORMAT_TABLE || cli->out.format == PS_FORMAT_WIDE;
    ps_workers_args_t args = {.n = (uint32_t)ps_args_u64(&cli->args, "workers"),
                              .endpoint = cli->endpoint,
                              .job = job,
                              .max_delay = ps_args_i64(&cli->args, "max-delay"),
                              .overlay = ps_args_text(&cli->args, "overlay"),
                              .site = ps_args_text(&cli->args, "site"),
                              .argv = argv,
                              .restarts = (uint32_t)ps_args_u64(&cli->args, "restart"),
                              .to = {shows ? cli->out.out : cli->out.err, cli->out.err},
                              .out = &cli->out,
                              .registered = &registered,
                              .color = cli->out.color && shows};
    psd_status_t rc = argv == NULL ? psd_error_set(err, PSD_NOMEM, "no memory for the program")
                                   : choose_job(cli, job, err);

    launch.argv = argv;
    if (rc == PSD_OK) {
        rc = ps_run_launch_open(cli, &launch, err);
    }
    if (rc == PSD_OK) {
        rc = check_endpoint(cli, &launch, err);
    }
    args.launch = launch.kind == PS_LAUNCH_LOCAL ? NULL : &launch;
    args.n_serving = launch.embeds ? launch.n_servers : 0;
    if (rc == PSD_OK && ps_args_given(&cli->args, "batch")) {
        return ps_run_batch_write(cli, &launch, job, err);
    }
    if (rc == PSD_OK && ps_args_on(&cli->args, "dry-run")) {
        rc = ps_run_launch_set(cli, &launch, cli->endpoint, job, err);
        return rc == PSD_OK ? show_plan(cli, &args, err) : rc;
    }
    if (rc == PSD_OK && launch.by_ranks) {
        return run_ranks(cli, &args, &launch, &registered, err);
    }
    return rc == PSD_OK ? run_beside_psd(cli, &args, &launch, &registered, err) : rc;
}
