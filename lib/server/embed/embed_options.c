/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of an embedded server: its own defaults, the environment, the options. */
#include "server/embed/embed_inner.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

/* Where they differ from those of config_keys.def. */
static const struct {
    ps_key_id_t id;
    const char *text;
} DEFAULTS[] = {
    {PS_KEY_runtime_dir, ""}, /* $RUNTIME_DIRECTORY is the program's */
    {PS_KEY_listen_endpoints, "tcp://127.0.0.1:0"},
    {PS_KEY_log_level, "warn"},
};

static const ps_origin_t OPTION = {.source = PS_SOURCE_FLAG, .flag = "option"};

psd_embed_options_t *psd_embed_options_new(void)
{
    return ps_alloc(1, sizeof(psd_embed_options_t));
}

void psd_embed_options_destroy(psd_embed_options_t **self_p)
{
    psd_embed_options_t *self = self_p == NULL ? NULL : *self_p;

    if (self == NULL) {
        return;
    }
    for (int id = 0; id < PS_KEY_COUNT; id++) {
        ps_free(self->texts[id]);
    }
    ps_free(self);
    *self_p = NULL;
}

static psd_status_t refuse_key(const char *key, psd_error_t *err)
{
    const char *names[PS_KEY_COUNT + 1];
    const char *near = NULL;
    char shown[100];

    for (int id = 0; id < PS_KEY_COUNT; id++) {
        names[id] = ps_config_key((ps_key_id_t)id)->path;
    }
    names[PS_KEY_COUNT] = NULL;
    near = ps_text_suggest(key, names);
    (void)ps_config_show(key, shown, sizeof shown);
    return near != NULL
               ? psd_error_set(err, PSD_CONFIG, "unknown key %s; did you mean %s?", shown, near)
               : psd_error_set(err, PSD_CONFIG, "unknown key %s; allowed: the keys of psd.yaml",
                               shown);
}

static const ps_key_t *find_key(const char *path)
{
    for (int id = 0; id < PS_KEY_COUNT; id++) {
        const ps_key_t *key = ps_config_key((ps_key_id_t)id);

        if (strcmp(key->path, path) == 0) {
            return key;
        }
    }
    return NULL;
}

/* A text that is no value: the name of the host, or what is free of "HOST-2" … */
static bool is_any_name(ps_key_id_t id, const char *text)
{
    return id == PS_KEY_node_name && text[0] == '\0';
}

/* The other one: a temporary directory. */
static bool is_temporary(ps_key_id_t id, const char *text)
{
    return id == PS_KEY_data_dir && text[0] == '\0';
}

psd_status_t psd_embed_options_set(psd_embed_options_t *self, const char *key, const char *value,
                                   psd_error_t *err)
{
    psd_error_clear(err);

    PSD_AUTO(ps_config_done) ps_config_t config = {0};
    const ps_key_t *found = find_key(key);
    char *copy = NULL;
    psd_status_t rc = PSD_OK;

    if (found == NULL) {
        return refuse_key(key, err);
    }
    if (strcmp(found->section, "http") == 0) {
        return psd_error_set(err, PSD_CONFIG,
                             "%s is for the program psd: a server in a program has no HTTP port",
                             key);
    }
    if (!is_temporary(found->id, value) && !is_any_name(found->id, value)) {
        rc = ps_config_init(&config, err);
        if (rc == PSD_OK) {
            rc = ps_config_set(&config, found->id, value, &OPTION, err);
        }
    }
    if (rc != PSD_OK) {
        return rc;
    }
    copy = ps_strdup(value);
    if (copy == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %s", key);
    }
    ps_free(self->texts[found->id]);
    self->texts[found->id] = copy;
    return PSD_OK;
}

void psd_embed_options_set_on_log(psd_embed_options_t *self, psd_on_log_t *on_log, void *user)
{
    self->on_log = on_log;
    self->on_log_user = user;
}

void psd_embed_options_set_on_end(psd_embed_options_t *self, psd_on_end_t *on_end, void *user)
{
    self->on_end = on_end;
    self->on_end_user = user;
}

static psd_status_t take_defaults(ps_config_t *config, psd_error_t *err)
{
    const ps_origin_t origin = {.source = PS_SOURCE_DEFAULT};
    psd_status_t rc = ps_config_init(config, err);

    for (size_t i = 0; rc == PSD_OK && i < sizeof DEFAULTS / sizeof *DEFAULTS; i++) {
        rc = ps_config_set(config, DEFAULTS[i].id, DEFAULTS[i].text, &origin, err);
    }
    return rc;
}

/* The default, and not the environment's. */
static psd_status_t take_any_name(ps_config_t *config, psd_error_t *err)
{
    const ps_origin_t origin = {.source = PS_SOURCE_DEFAULT};
    PSD_AUTO(ps_config_done) ps_config_t fresh = {0};
    psd_status_t rc = ps_config_init(&fresh, err);

    return rc == PSD_OK ? ps_config_set(config, PS_KEY_node_name, fresh.node.name, &origin, err)
                        : rc;
}

static psd_status_t take_options(const psd_embed_options_t *self, ps_config_t *config,
                                 psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (int id = 0; self != NULL && rc == PSD_OK && id < PS_KEY_COUNT; id++) {
        const char *text = self->texts[id];

        if (text != NULL && is_any_name((ps_key_id_t)id, text)) {
            rc = take_any_name(config, err);
        } else if (text != NULL && !is_temporary((ps_key_id_t)id, text)) {
            rc = ps_config_set(config, (ps_key_id_t)id, text, &OPTION, err);
        }
    }
    return rc;
}

psd_status_t ps_embed_options_config(const psd_embed_options_t *self, ps_config_t *ret_config,
                                     bool *ret_temporary, psd_error_t *err)
{
    PSD_AUTO(ps_config_done) ps_config_t config = {0};
    const char *dir = self == NULL ? NULL : self->texts[PS_KEY_data_dir];
    psd_status_t rc = take_defaults(&config, err);

    if (rc == PSD_OK) {
        rc = ps_config_take_env(&config, err);
    }
    if (rc == PSD_OK) {
        rc = take_options(self, &config, err);
    }
    if (rc == PSD_OK && config.security.level != PS_SECURITY_PLAIN) {
        rc = psd_error_set(err, PSD_CONFIG,
                           "security.level is encrypt, which a server in a program cannot have "
                           "yet; allowed here: plain");
    }
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_temporary =
        dir != NULL ? dir[0] == '\0' : config.origins[PS_KEY_data_dir].source == PS_SOURCE_DEFAULT;
    *ret_config = config;
    config = (ps_config_t){0};
    return PSD_OK;
}
