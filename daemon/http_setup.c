/* SPDX-License-Identifier: Apache-2.0 */
/* From keys to an open port. */
#include "daemon/http_setup.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/config/endpoint.h"
#include "server/control_ops.h"

#define AUTO "auto"
#define OFF "off"
#define LOOPBACK "127.0.0.1"

/* With ipc alone, psd opens no tcp port. */
static bool has_tcp(const ps_config_t *config)
{
    for (size_t i = 0; i < config->listen.endpoints.n_items; i++) {
        if (strncmp(config->listen.endpoints.items[i], "tcp://", strlen("tcp://")) == 0) {
            return true;
        }
    }
    return false;
}

static uint32_t count_plain(const ps_config_t *config)
{
    uint32_t n = 0;

    for (size_t i = 0;
         i < config->listen.endpoints.n_items && config->security.level == PS_SECURITY_PLAIN; i++) {
        n += ps_endpoint_is_local(config->listen.endpoints.items[i]) ? 0 : 1;
    }
    return n;
}

static psd_status_t make_metrics(const ps_config_t *config, ps_metrics_t **ret_metrics,
                                 psd_error_t *err)
{
    const char *kinds[PS_DIM_KIND];
    ps_metrics_args_t args = {.n_shards = (uint32_t)config->shards,
                              .kinds = kinds,
                              .names = config->http.names,
                              .series_max = (uint32_t)config->http.series,
                              .memory_bytes = config->limits.memory_bytes,
                              .plain_endpoints = count_plain(config)};

    for (; args.n_kinds < ps_control_n_ops && args.n_kinds < PS_DIM_KIND; args.n_kinds++) {
        kinds[args.n_kinds] = ps_control_ops[args.n_kinds].name;
    }
    return ps_metrics_new(&args, ret_metrics, err);
}

/* Where it listens; the settings were checked. */
static ps_http_args_t address_of(const ps_config_t *config, ps_metrics_t *metrics)
{
    const char *listen = config->http.listen;
    const char *colon = strrchr(listen, ':');
    ps_http_args_t args = {.host = LOOPBACK, .metrics = metrics};
    char endpoint[PS_ENDPOINT_MAX + 1];

    if (strcmp(listen, AUTO) == 0) {
        return args;
    }
    (void)snprintf(endpoint, sizeof endpoint, "tcp://%.200s", listen);
    args.token_for_all = !ps_endpoint_is_local(endpoint);
    args.port = (uint16_t)ps_endpoint_port(endpoint);
    (void)snprintf(args.host, sizeof args.host, "%.*s", (int)(colon - listen), listen);
    if (args.host[0] == '[') { /* [::1] */
        size_t size = strlen(args.host);

        memmove(args.host, args.host + 1, size);
        args.host[size - 2] = '\0';
    }
    return args;
}

psd_status_t ps_http_setup(const ps_config_t *config, ps_metrics_t **ret_metrics,
                           ps_http_t **ret_http, psd_error_t *err)
{
    bool is_auto = strcmp(config->http.listen, AUTO) == 0;
    PSD_AUTO(ps_metrics_destroy) ps_metrics_t *metrics = NULL;
    ps_http_args_t args;
    char quoted[512];
    psd_status_t rc = PSD_OK;

    if (strcmp(config->http.listen, OFF) == 0 || (is_auto && !has_tcp(config))) {
        return PSD_OK;
    }
    rc = make_metrics(config, &metrics, err);
    if (rc != PSD_OK) {
        return rc;
    }
    args = address_of(config, metrics);
    rc = ps_http_start(&args, ret_http, err);
    if (rc == PSD_IO && is_auto) {
        ps_log(PS_LOG_WARN, "http_off", "reason=%s",
               ps_log_quote(psd_error_text(err), quoted, sizeof quoted));
        psd_error_clear(err);
        return PSD_OK;
    }
    if (rc == PSD_OK) {
        *ret_metrics = metrics;
        metrics = NULL;
    }
    return rc;
}

psd_status_t ps_http_setup_api(ps_http_t *http, const char *dir, const char *endpoint,
                               psd_error_t *err)
{
    char token[PS_HTTP_TOKEN_SIZE];
    psd_status_t rc = PSD_OK;

    if (http == NULL) {
        return PSD_OK;
    }
    rc = ps_http_token_load(dir, token, err);
    return rc == PSD_OK ? ps_http_open_api(http, token, endpoint, err) : rc;
}
