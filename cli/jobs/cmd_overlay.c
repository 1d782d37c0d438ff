/* SPDX-License-Identifier: Apache-2.0 */
/* pscli job check-overlay: is a settings file of an overlay right? */
#include "cli/jobs/jobs.h"

#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "protocol/overlay/overlay_conf.h"
#include "transport/environment/environment.h"

static const ps_column_t SETTINGS[] = {{"SETTING", "name", PS_UNIT_NONE, false},
                                       {"VALUE", "value", PS_UNIT_NONE, false},
                                       {"LINE", "line", PS_UNIT_NONE, false},
                                       {NULL, NULL, PS_UNIT_NONE, false}};

static const ps_column_t CONNECTIONS[] = {{"FROM", "from", PS_UNIT_NONE, false},
                                          {"TO", "to", PS_UNIT_NONE, false},
                                          {"REMOVED", "removed", PS_UNIT_NONE, false},
                                          {"LINE", "line", PS_UNIT_NONE, false},
                                          {NULL, NULL, PS_UNIT_NONE, false}};

/* -1 stands for "none is set". */
static json_t *value_json(double value)
{
    if (value < 0) {
        return json_null();
    }
    return value == floor(value) ? json_integer((json_int_t)value) : json_real(value);
}

static bool add_number(json_t *settings, const char *name, const ps_overlay_number_t *number)
{
    json_t *line = number->line == 0 ? json_null() : json_integer(number->line);

    return json_array_append_new(settings, json_pack("{s:s, s:o, s:o}", "name", name, "value",
                                                     value_json(number->value), "line", line)) == 0;
}

static json_t *edges_json(const ps_overlay_conf_t *conf)
{
    json_t *edges = json_array();

    for (size_t i = 0; i < conf->n_edges; i++) {
        const ps_overlay_edge_t *edge = &conf->edges[i];

        if (json_array_append_new(edges, json_pack("{s:i, s:i, s:b, s:i}", "from", (int)edge->from,
                                                   "to", (int)edge->to, "removed", edge->is_cut,
                                                   "line", (int)edge->line)) != 0) {
            json_decref(edges);
            return NULL;
        }
    }
    return edges;
}

static json_t *settings_json(const ps_overlay_conf_t *conf)
{
    json_t *settings = json_array();
    bool ok = settings != NULL;

#define X(name, member, least, most, otherwise) \
    ok = ok && add_number(settings, name, &conf->member);
    PS_OVERLAY_NUMBERS(X)
#undef X
    if (!ok) {
        json_decref(settings);
        return NULL;
    }
    return settings;
}

/* conf is initialised. */
static psd_status_t read_conf(const char *path, uint32_t n_workers, ps_overlay_conf_t *conf,
                              psd_error_t *err)
{
    PSD_AUTO(ps_free_at) char *text = ps_alloc_raw(1, PS_OVERLAY_CONF_BYTES);
    size_t length = 0;
    psd_status_t rc = PSD_OK;

    if (text == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %s", path);
    }
    rc = ps_environment_file(path, text, PS_OVERLAY_CONF_BYTES, &length, err);
    return rc == PSD_OK ? ps_overlay_conf_read(conf, text, length, path, n_workers, err) : rc;
}

psd_status_t ps_overlay_file_check(const char *path, psd_error_t *err)
{
    PSD_AUTO(ps_overlay_conf_done) ps_overlay_conf_t conf;

    ps_overlay_conf_init(&conf);
    return read_conf(path, 0, &conf, err);
}

psd_status_t ps_cmd_job_check_overlay(ps_cli_t *cli, psd_error_t *err)
{
    const char *path = cli->args.words[0];
    PSD_AUTO(ps_overlay_conf_done) ps_overlay_conf_t conf;
    PSD_AUTO(ps_json_unref) json_t *doc = NULL;
    psd_status_t rc = PSD_OK;

    ps_overlay_conf_init(&conf);
    rc = read_conf(path, (uint32_t)ps_args_u64(&cli->args, "workers"), &conf, err);
    if (rc != PSD_OK) {
        return rc;
    }
    doc = json_pack("{s:s, s:o, s:o}", "file", path, "settings", settings_json(&conf),
                    "connections", edges_json(&conf));
    if (doc == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the settings of %s", path);
    }
    ps_out_list(&cli->out, doc, "settings", SETTINGS);
    if (cli->out.format <= PS_FORMAT_WIDE && conf.n_edges > 0) {
        ps_print(cli->out.out, "\n");
        ps_out_table(&cli->out, json_object_get(doc, "connections"), CONNECTIONS);
    }
    return PSD_OK;
}
