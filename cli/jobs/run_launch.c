/* SPDX-License-Identifier: Apache-2.0 */
/* The launcher of a run, from its options. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "cli/jobs/run.h"
#include "cli/launch/manifest.h"
#include "protocol/overlay/site.h"

/* Options that only some launchers have. */
static const struct {
    const char *option;
    unsigned launchers; /* a bit for each */
    const char *allowed;
} RULES[] = {
    {"hosts", 1U << PS_LAUNCH_SSH | 1U << PS_LAUNCH_MPI, "ssh, mpi"},
    {"hostfile", 1U << PS_LAUNCH_SSH | 1U << PS_LAUNCH_MPI, "ssh, mpi"},
    {"ssh", 1U << PS_LAUNCH_SSH, "ssh"},
    {"mpi", 1U << PS_LAUNCH_MPI, "mpi"},
    {"slurm", 1U << PS_LAUNCH_SLURM, "slurm"},
    {"batch", 1U << PS_LAUNCH_SLURM, "slurm"},
    {"oversubscribe", 1U << PS_LAUNCH_MPI | 1U << PS_LAUNCH_SLURM, "mpi, slurm"},
    {"image", 1U << PS_LAUNCH_KUBERNETES | 1U << PS_LAUNCH_YARN, "kubernetes, yarn"},
    {"restart", 1U << PS_LAUNCH_LOCAL | 1U << PS_LAUNCH_SSH | 1U << PS_LAUNCH_SLURM,
     "local, ssh, slurm (mpirun hands orders to one rank only)"},
};

static ps_launcher_t launcher_of(const ps_cli_t *cli)
{
    static const char *const WORDS[] = {"local", "ssh", "mpi", "slurm", "kubernetes", "yarn"};
    const char *word = ps_args_text(&cli->args, "launcher");
    size_t i = 0;

    while (i + 1 < sizeof WORDS / sizeof WORDS[0] && strcmp(word, WORDS[i]) != 0) {
        i++;
    }
    return (ps_launcher_t)i;
}

static psd_status_t check_site(const ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *why = psd_error_new();
    ps_site_t site;

    return ps_site_find(ps_args_text(&cli->args, "site"), "--site", 0, &site, why) == PSD_OK
               ? PSD_OK
               : psd_error_set(err, PSD_USAGE, "%s", psd_error_text(why));
}

static psd_status_t check_options(const ps_cli_t *cli, ps_launcher_t kind, psd_error_t *err)
{
    const bool is_text = kind == PS_LAUNCH_KUBERNETES || kind == PS_LAUNCH_YARN;

    for (size_t i = 0; i < sizeof RULES / sizeof RULES[0]; i++) {
        if (ps_args_given(&cli->args, RULES[i].option) &&
            (RULES[i].launchers & 1U << (unsigned)kind) == 0) {
            return psd_error_set(err, PSD_USAGE, "--%s with launcher %s; allowed with: %s",
                                 RULES[i].option, ps_args_text(&cli->args, "launcher"),
                                 RULES[i].allowed);
        }
    }
    if (kind == PS_LAUNCH_SSH && !ps_args_given(&cli->args, "hosts") &&
        !ps_args_given(&cli->args, "hostfile")) {
        return psd_error_set(err, PSD_USAGE, "launcher ssh needs --hosts or --hostfile");
    }
    if (ps_args_given(&cli->args, "hosts") && ps_args_given(&cli->args, "hostfile")) {
        return psd_error_set(err, PSD_USAGE, "--hosts and --hostfile: give one of them");
    }
    if (ps_args_given(&cli->args, "overlay") && ps_args_i64(&cli->args, "max-delay") != 0 &&
        strcmp(ps_args_text(&cli->args, "overlay"), "off") != 0 &&
        strcmp(ps_args_text(&cli->args, "overlay"), "tree") != 0) {
        return psd_error_set(
            err, PSD_USAGE, "--overlay %s with --max-delay %" PRId64 "; allowed with it: tree, off",
            ps_args_text(&cli->args, "overlay"), ps_args_i64(&cli->args, "max-delay"));
    }
    if (is_text && !ps_args_on(&cli->args, "dry-run")) {
        return psd_error_set(err, PSD_USAGE,
                             "launcher %s is text only: with --dry-run pscli prints the manifest",
                             ps_args_text(&cli->args, "launcher"));
    }
    return check_site(cli, err);
}

/* mpirun takes what follows the first colon for slots, in brackets, too. */
static psd_status_t check_hosts(const ps_launch_t *launch, psd_error_t *err)
{
    for (size_t i = 0; launch->kind == PS_LAUNCH_MPI && i < launch->hosts.n; i++) {
        if (strchr(launch->hosts.items[i].name, ':') != NULL) {
            return psd_error_set(err, PSD_USAGE,
                                 "host %s with launcher mpi; allowed: names, and addresses of IPv4",
                                 launch->hosts.items[i].name);
        }
    }
    return PSD_OK;
}

static psd_status_t read_hosts(const ps_cli_t *cli, ps_launch_t *launch, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (ps_args_given(&cli->args, "hosts")) {
        rc = ps_hosts_parse(&launch->hosts, ps_args_text(&cli->args, "hosts"), err);
    } else if (ps_args_given(&cli->args, "hostfile")) {
        rc = ps_hosts_read(&launch->hosts, ps_args_text(&cli->args, "hostfile"), err);
    }
    if (rc == PSD_OK) {
        rc = check_hosts(launch, err);
    }
    return rc == PSD_OK && launch->hosts.n > 0 ? ps_hosts_place(&launch->hosts, launch->n, err)
                                               : rc;
}

psd_status_t ps_run_launch_open(const ps_cli_t *cli, ps_launch_t *ret_launch, psd_error_t *err)
{
    const ps_args_t *args = &cli->args;
    const char *pscli = ps_args_text(args, "pscli");
    const bool starts = !ps_args_on(args, "dry-run") && !ps_args_given(args, "batch");
    psd_status_t rc = PSD_OK;

    ret_launch->kind = launcher_of(cli);
    ret_launch->n = (uint32_t)ps_args_u64(args, "workers");
    ret_launch->ssh = ps_args_text(args, "ssh");
    ret_launch->more =
        ret_launch->kind == PS_LAUNCH_MPI ? ps_args_text(args, "mpi") : ps_args_text(args, "slurm");
    ret_launch->oversubscribe = ps_args_on(args, "oversubscribe");
    ret_launch->restarts = ps_args_u64(args, "restart") > 0;
    if (pscli != NULL) {
        (void)snprintf(ret_launch->pscli, sizeof ret_launch->pscli, "%s", pscli);
    }
    rc = check_options(cli, ret_launch->kind, err);
    if (rc == PSD_OK) {
        rc = ps_run_servers_read(cli, ret_launch, err);
    }
    if (rc == PSD_OK) {
        rc = ps_launch_settle(ret_launch, err);
    }
    if (rc == PSD_OK && ret_launch->kind != PS_LAUNCH_LOCAL) {
        rc = ps_launch_take_environment(ret_launch, ps_args_text(args, "env"), err);
    }
    if (rc == PSD_OK) {
        rc = read_hosts(cli, ret_launch, err);
    }
    if (rc == PSD_OK && starts) {
        rc = ps_launch_check(ret_launch, err);
    }
    if (rc == PSD_OK && starts && ret_launch->kind == PS_LAUNCH_SLURM) {
        rc = ps_launch_read_slurm(&ret_launch->hosts, err);
    }
    return rc;
}

psd_status_t ps_run_launch_set(const ps_cli_t *cli, ps_launch_t *launch, const char *endpoint,
                               const char *job, psd_error_t *err)
{
    const char *overlay = ps_args_text(&cli->args, "overlay");
    const char *site = ps_args_text(&cli->args, "site");
    char workers[16];
    char delay[32];
    char own[PS_ENDPOINT_MAX + 8];
    psd_status_t rc = PSD_OK;

    (void)snprintf(own, sizeof own, "%s%s",
                   launch->by_ranks ? "mpi:"
                   : launch->embeds ? "embed:"
                                    : "",
                   launch->by_ranks ? "" : endpoint);
    (void)snprintf(delay, sizeof delay, "%" PRId64, ps_args_i64(&cli->args, "max-delay"));
    rc = ps_launch_set(launch, "PSD_ENDPOINT", own, err);
    (void)snprintf(workers, sizeof workers, "%" PRIu32, launch->n_servers);
    if (rc == PSD_OK && launch->embeds && !launch->by_ranks) {
        rc = ps_launch_set(launch, "PSD_SERVERS", workers, err);
    }
    (void)snprintf(workers, sizeof workers, "%" PRIu32, launch->n);
    if (rc == PSD_OK) {
        rc = ps_launch_set(launch, "PSD_JOB", job, err);
    }
    if (rc == PSD_OK) {
        rc = ps_launch_set(launch, "PSD_WORKERS", workers, err);
    }
    if (rc == PSD_OK) {
        rc = ps_launch_set(launch, "PSD_MAX_DELAY", delay, err);
    }
    if (rc == PSD_OK && overlay != NULL) {
        rc = ps_launch_set(launch, "PSD_OVERLAY", overlay, err);
    }
    return rc == PSD_OK && site != NULL ? ps_launch_set(launch, "PSD_SITE", site, err) : rc;
}

/* ---- text ---- */

static psd_status_t print_command(const ps_launch_t *launch, uint32_t rank, ps_buffer_t *to,
                                  psd_error_t *err)
{
    PSD_AUTO(ps_words_done) ps_words_t words = {0};
    psd_status_t rc = ps_launch_command(launch, rank, true, &words, err);

    if (rc == PSD_OK && !ps_quote_all(to, (const char *const *)words.items)) {
        rc = psd_error_set(err, PSD_NOMEM, "no memory for a command");
    }
    return rc;
}

static psd_status_t show_manifest(const ps_cli_t *cli, const ps_launch_t *launch, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    const ps_manifest_t manifest = {.launch = launch,
                                    .image = ps_args_text(&cli->args, "image"),
                                    .n_servers = launch->n_servers};
    psd_status_t rc = launch->kind == PS_LAUNCH_YARN
                          ? ps_manifest_yarn(&manifest, &text, err)
                          : ps_manifest_kubernetes(&manifest, &text, err);

    if (rc == PSD_OK) {
        (void)fwrite(text.data, 1, text.size, cli->out.out);
    }
    return rc;
}

psd_status_t ps_run_launch_show(const ps_cli_t *cli, const ps_launch_t *launch, psd_error_t *err)
{
    const bool shows = cli->out.format == PS_FORMAT_TABLE || cli->out.format == PS_FORMAT_WIDE;
    PSD_AUTO(ps_json_unref) json_t *doc = NULL;
    json_t *list = NULL;
    psd_status_t rc = PSD_OK;

    if (launch->kind == PS_LAUNCH_KUBERNETES || launch->kind == PS_LAUNCH_YARN) {
        return show_manifest(cli, launch, err);
    }
    doc = json_pack("{s:s,s:b,s:[]}", "launcher", ps_args_text(&cli->args, "launcher"), "dry_run",
                    1, "commands");
    list = json_object_get(doc, "commands");
    for (uint32_t i = 0; rc == PSD_OK && i < ps_launch_engines(launch); i++) {
        PSD_AUTO(ps_buffer_done) ps_buffer_t line = {0};

        rc = print_command(launch, i, &line, err);
        if (rc == PSD_OK && shows) {
            ps_print(cli->out.out, "%s\n", (const char *)line.data);
        } else if (rc == PSD_OK) {
            (void)json_array_append_new(list, json_pack("{s:s}", "command", line.data));
        }
    }
    if (rc == PSD_OK && !shows) {
        static const ps_column_t COMMANDS[] = {{"COMMAND", "command", PS_UNIT_NONE, false},
                                               {NULL, NULL, PS_UNIT_NONE, false}};

        ps_out_list(&cli->out, doc, "commands", COMMANDS);
    }
    return rc;
}

/* The options that the script hands on to the run inside. */
static bool add_options(const ps_cli_t *cli, const char *job, ps_words_t *to)
{
    static const char *const VALUES[] = {"workers", "servers", "address", "max-delay",
                                         "restart", "env",     "psd",     "allow-lost",
                                         "timeout", "pscli",   NULL};
    bool ok = ps_words_add(to, "--job") && ps_words_add(to, "%s", job);

    if (ok && ps_args_given(&cli->args, "endpoint")) {
        ok = ps_words_add(to, "--endpoint") && ps_words_add(to, "%s", cli->endpoint);
    }
    if (ok && ps_args_on(&cli->args, "oversubscribe")) {
        ok = ps_words_add(to, "--oversubscribe");
    }
    for (size_t i = 0; ok && VALUES[i] != NULL; i++) {
        if (ps_args_given(&cli->args, VALUES[i])) {
            ok = ps_words_add(to, "--%s", VALUES[i]) &&
                 ps_words_add(to, "%s", ps_args_text(&cli->args, VALUES[i]));
        }
    }
    return ok;
}

/* The lines that sbatch reads, with words quoted as it takes them; then the run. */
static bool make_script(const ps_cli_t *cli, const ps_launch_t *launch, const char *job,
                        ps_buffer_t *to)
{
    PSD_AUTO(ps_words_done) ps_words_t words = {0};
    PSD_AUTO(ps_words_done) ps_words_t more = {0};
    bool ok = (launch->more == NULL || ps_words_split(&more, launch->more)) &&
              ps_words_add(&words, "%s", launch->pscli) && ps_words_add(&words, "run") &&
              ps_words_add(&words, "--launcher") && ps_words_add(&words, "slurm") &&
              add_options(cli, job, &words) && ps_words_add(&words, "--");

    for (size_t i = 0; ok && launch->argv[i] != NULL; i++) {
        ok = ps_words_add(&words, "%s", launch->argv[i]);
    }
    ok = ok &&
         ps_buffer_print(to, "#!/bin/sh\n#SBATCH --job-name=%s\n#SBATCH --ntasks=%" PRIu32 "\n",
                         job, launch->n) &&
         ps_buffer_print(to, "#SBATCH --chdir=") && ps_quote(to, launch->dir) &&
         ps_buffer_print(to, "\n");
    if (ok && more.n > 0) {
        ok = ps_buffer_print(to, "#SBATCH ") && ps_quote_all(to, (const char *const *)more.items) &&
             ps_buffer_print(to, "\n");
    }
    return ok && ps_buffer_print(to, "exec ") &&
           ps_quote_all(to, (const char *const *)words.items) && ps_buffer_print(to, "\n");
}

psd_status_t ps_run_batch_write(const ps_cli_t *cli, const ps_launch_t *launch, const char *job,
                                psd_error_t *err)
{
    const char *path = ps_args_text(&cli->args, "batch");
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    FILE *file = NULL;
    bool ok = true;

    if (strchr(launch->dir, '\n') != NULL) {
        return psd_error_set(err, PSD_USAGE,
                             "--batch: the name of the working directory has more than one line");
    }
    if (!make_script(cli, launch, job, &text)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a script");
    }
    if (ps_args_on(&cli->args, "dry-run")) {
        ps_print(cli->out.out, "%.*s", (int)text.size, (const char *)text.data);
        return PSD_OK;
    }
    file = fopen(path, ps_args_on(&cli->args, "yes") ? "we" : "wxe");
    if (file == NULL && errno == EEXIST) {
        return psd_error_set(err, PSD_USAGE, "--batch %s: the file exists; --yes replaces it",
                             path);
    }
    if (file != NULL) {
        ok = fwrite(text.data, 1, text.size, file) == text.size && fchmod(fileno(file), 0755) == 0;
        ok = fclose(file) == 0 && ok;
    }
    if (file == NULL || !ok) {
        return psd_error_set(err, PSD_IO, "--batch %s: %s", path, strerror(errno));
    }
    ps_say(&cli->out, "wrote %s; start it with: sbatch %s", path, path);
    return PSD_OK;
}
