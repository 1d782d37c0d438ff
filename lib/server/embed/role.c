/* SPDX-License-Identifier: Apache-2.0 */
/* psd_start: one program as scheduler, server and worker of a job. */
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "client/job/gather.h"
#include "server/embed/embed_ask.h"
#include "server/embed/embed_inner.h"
#include "transport/environment/environment.h"

#define BEGIN_MS 60000    /* for the first worker to join */
#define END_MS 60000      /* for the servers to end before their scheduler */
#define RUN_MS UINT32_MAX /* of a job: seven weeks */

static psd_status_t read_endpoint(ps_environment_t *ret, psd_error_t *err)
{
    psd_status_t rc = ps_environment_read("PSD_ENDPOINT", ret, err);

    if (rc == PSD_OK && (ret->text == NULL || strncmp(ret->text, "tcp://", 6) != 0 ||
                         strchr(ret->text, ',') != NULL)) {
        rc = psd_error_set(err, PSD_INVALID,
                           "PSD_ENDPOINT (DMLC_PS_ROOT_URI, DMLC_PS_ROOT_PORT) is \"%.80s\"; "
                           "allowed with a role: tcp://HOST:PORT of the scheduler",
                           ret->text == NULL ? "" : ret->text);
    }
    return rc;
}

/* Until the job has ended: as long as it takes, but for its beginning. */
static psd_status_t serve(psd_embed_t *server, const char *job, psd_error_t *err)
{
    const char *endpoint = psd_embed_endpoint(server);
    psd_status_t rc = ps_embed_ask_begun(endpoint, job, BEGIN_MS, err);

    return rc == PSD_OK ? ps_embed_ask_job(endpoint, job, RUN_MS, err) : rc;
}

static psd_status_t set_all(psd_embed_options_t *options, const char *const (*pairs)[2],
                            psd_error_t *err)
{
    psd_status_t rc =
        options != NULL ? PSD_OK : psd_error_set(err, PSD_NOMEM, "no memory for options");

    for (size_t i = 0; rc == PSD_OK && pairs[i][0] != NULL; i++) {
        rc = psd_embed_options_set(options, pairs[i][0], pairs[i][1], err);
    }
    return rc;
}

/* Hosts the registry at PSD_ENDPOINT. It ends last. */
static psd_status_t be_scheduler(const char *job, psd_error_t *err)
{
    ps_environment_t endpoint;
    psd_status_t rc = read_endpoint(&endpoint, err);
    const char *const pairs[][2] = {{"data_dir", ""},
                                    {"node.name", PS_SCHEDULER_NODE},
                                    {"listen.endpoints", endpoint.text},
                                    {NULL, NULL}};
    psd_embed_options_t *options = rc == PSD_OK ? psd_embed_options_new() : NULL;
    psd_embed_t *server = NULL;

    if (rc == PSD_OK) {
        rc = set_all(options, pairs, err);
    }
    if (rc == PSD_OK) {
        rc = psd_embed_start(options, &server, err);
    }
    if (rc == PSD_OK) {
        rc = serve(server, job, err);
    }
    if (rc == PSD_OK) {
        rc = ps_embed_ask_alone(psd_embed_endpoint(server), PS_SCHEDULER_NODE, END_MS, err);
        if (rc == PSD_DEADLINE) { /* a server hangs; the job has ended well */
            psd_error_clear(err);
            rc = PSD_OK;
        }
    }
    psd_embed_stop(&server);
    psd_embed_options_destroy(&options);
    return rc;
}

static psd_status_t be_server(const char *job, psd_error_t *err)
{
    ps_environment_t endpoint;
    psd_status_t rc = read_endpoint(&endpoint, err);
    const char *const pairs[][2] = {
        {"data_dir", ""}, {"cluster.join", endpoint.text}, {NULL, NULL}};
    psd_embed_options_t *options = rc == PSD_OK ? psd_embed_options_new() : NULL;
    psd_embed_t *server = NULL;

    if (rc == PSD_OK) {
        rc = set_all(options, pairs, err);
    }
    if (rc == PSD_OK) {
        rc = psd_embed_start(options, &server, err);
    }
    if (rc == PSD_OK) {
        rc = serve(server, job, err);
    }
    psd_embed_stop(&server);
    psd_embed_options_destroy(&options);
    return rc;
}

/* The scheduler may start later. */
static psd_status_t be_worker(psd_error_t *err)
{
    psd_options_t *options = psd_options_new();
    psd_client_t *client = NULL;
    psd_status_t rc = PSD_OK;

    if (options == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a client");
    }
    psd_options_set_wait(options, true);
    rc = psd_connect(NULL, options, &client, err);
    psd_close(&client);
    psd_options_destroy(&options);
    return rc;
}

psd_status_t psd_start(const char *job, bool *ret_works, psd_error_t *err)
{
    psd_error_clear(err);

    const ps_env_setting_t *setting = ps_env_setting("PSD_ROLE");
    ps_environment_t said;
    psd_status_t rc = ps_environment_read("PSD_ROLE", &said, err);

    *ret_works = false;
    if (rc == PSD_OK && said.text != NULL) {
        rc = ps_env_check(setting, said.text, said.origin, err);
    }
    if (rc != PSD_OK || (said.text != NULL && strcmp(said.text, "none") == 0)) {
        return rc;
    }
    job = job != NULL ? job : getenv("PSD_JOB");
    job = job != NULL && job[0] != '\0' ? job : "default";
    if (said.text == NULL || strcmp(said.text, "worker") == 0) {
        rc = said.text == NULL ? PSD_OK : be_worker(err);
        *ret_works = rc == PSD_OK;
    } else if (strcmp(said.text, "scheduler") == 0) {
        rc = be_scheduler(job, err);
    } else if (strcmp(said.text, "server") == 0) {
        rc = be_server(job, err);
    } else {
        return psd_error_set(err, PSD_INVALID,
                             "%s is \"%s\": a process is server and worker at once only alone; "
                             "start servers by themselves, or set PSD_ENDPOINT=embed:",
                             said.origin, said.text);
    }
    return rc == PSD_OK ? rc : psd_error_wrap(err, rc, "start as %.20s", said.text);
}
