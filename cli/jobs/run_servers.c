/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of --servers embed: in the processes of the workers, with a registry here. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "cli/jobs/run.h"
#include "transport/sockets/ranks.h"

#define EMBED "embed"
#define SERVERS_MAX 4096

/* On the command line; that of the environment or a context is for other commands. */
static bool names_endpoint(const ps_cli_t *cli)
{
    const ps_opts_t *opts = &cli->args.opts;

    return ps_args_given(&cli->args, "endpoint") &&
           strcmp(opts->values[ps_opts_find(opts, "endpoint")].origin, "--endpoint") == 0;
}

/* ":M" after the word; without it every worker serves. */
static psd_status_t read_embed(const ps_cli_t *cli, const char *rest, ps_launch_t *launch,
                               psd_error_t *err)
{
    uint64_t n = launch->n;

    if (launch->kind == PS_LAUNCH_KUBERNETES || launch->kind == PS_LAUNCH_YARN) {
        return psd_error_set(err, PSD_USAGE,
                             "--servers " EMBED
                             " with launcher %s; allowed with: local, ssh, mpi, slurm",
                             ps_args_text(&cli->args, "launcher"));
    }
    if (names_endpoint(cli)) {
        return psd_error_set(err, PSD_USAGE,
                             "--servers " EMBED " with --endpoint: the workers are a cluster of "
                             "their own; give one of them");
    }
    if (*rest != '\0' && (*rest != ':' || !ps_text_u64(rest + 1, &n) || n < 1 || n > launch->n)) {
        return psd_error_set(err, PSD_USAGE,
                             "--servers is \"%.40s\"; allowed: " EMBED ", " EMBED
                             ":M with M of 1..%" PRIu32 " (--workers)",
                             ps_args_text(&cli->args, "servers"), launch->n);
    }
    launch->by_ranks = launch->kind == PS_LAUNCH_MPI && ps_ranks_use() != PS_RANKS_UNUSED;
    if (launch->by_ranks && n != launch->n) {
        return psd_error_set(
            err, PSD_USAGE,
            "--servers is \"%.40s\", and with PSD_TRANSPORT=mpi or mpi,auto each rank serves; "
            "allowed: " EMBED,
            ps_args_text(&cli->args, "servers"));
    }
    launch->n_servers = (uint32_t)n;
    launch->embeds = true;
    return PSD_OK;
}

psd_status_t ps_run_servers_read(const ps_cli_t *cli, ps_launch_t *launch, psd_error_t *err)
{
    const char *text = ps_args_text(&cli->args, "servers");
    uint64_t n = 0;

    if (strncmp(text, EMBED, strlen(EMBED)) == 0) {
        return read_embed(cli, text + strlen(EMBED), launch, err);
    }
    if (!ps_text_u64(text, &n) || n > SERVERS_MAX) {
        return psd_error_set(err, PSD_USAGE,
                             "--servers is \"%.40s\"; allowed: 0..%d, " EMBED ", " EMBED ":M", text,
                             SERVERS_MAX);
    }
    launch->n_servers = (uint32_t)n;
    return PSD_OK;
}

/* A node that drains gets no copies; with none it has nothing to move. */
psd_status_t ps_run_servers_found(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *nodes = NULL;
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc = ps_cli_request(cli, "node_list", NULL, NULL, &nodes, err);

    if (rc != PSD_OK) {
        return rc;
    }
    return ps_cli_request(cli, "node_drain", "name",
                          ps_json_text(json_array_get(ps_json_at(nodes, "nodes"), 0), "name"),
                          &reply, err);
}
