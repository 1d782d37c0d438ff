/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of the cluster as a whole, in place of what the nodes' files say. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "server/quorum/replica.h"
#include "server/state/control_inner.h"

#define KEY_MAX 63
#define VALUE_MAX 63

static const ps_origin_t TYPED = {.source = PS_SOURCE_FLAG, .flag = "cluster set"};

/* The row of the configuration that a setting has. */
static const ps_key_t *key_of(ps_setting_id_t id)
{
    const ps_key_t *key = ps_config_key((ps_key_id_t)0);

    for (int i = 0; i < PS_KEY_COUNT; i++) {
        key = ps_config_key((ps_key_id_t)i);
        if (strcmp(key->path, ps_setting_key(id)) == 0) {
            break;
        }
    }
    return key;
}

static bool has_config(const char *path)
{
    for (int i = 0; i < PS_KEY_COUNT; i++) {
        if (strcmp(ps_config_key((ps_key_id_t)i)->path, path) == 0) {
            return true;
        }
    }
    return false;
}

static psd_status_t find(const char *path, ps_setting_id_t *ret_id, psd_error_t *err)
{
    char shown[2 * KEY_MAX + 3];
    char names[512] = "";

    for (int id = 1; id < PS_SETTING_END; id++) {
        const char *key = ps_setting_key((ps_setting_id_t)id);
        size_t used = strlen(names);

        if (key != NULL && strcmp(key, path) == 0) {
            *ret_id = (ps_setting_id_t)id;
            return PSD_OK;
        }
        (void)snprintf(names + used, sizeof names - used, "%s%s", used == 0 ? "" : ", ", key);
    }
    (void)ps_config_show(path, shown, sizeof shown);
    return has_config(path)
               ? psd_error_set(err, PSD_INVALID,
                               "%s is set in the file of each node, and needs its restart; of the "
                               "cluster: %s",
                               path, names)
               : psd_error_set(err, PSD_INVALID, "there is no setting %s; allowed: %s", shown,
                               names);
}

/* The values that count now, as a configuration. */
static psd_status_t make_config(const ps_control_t *self, ps_config_t *config, psd_error_t *err)
{
    psd_status_t rc = ps_config_init(config, err);

    if (rc != PSD_OK) {
        return rc;
    }
    ps_config_take_numbers(config, self->is.config);
    for (int id = 1; id < PS_SETTING_END; id++) {
        ps_config_set_number(config, key_of((ps_setting_id_t)id)->id,
                             ps_registry_setting(self->is.registry, (ps_setting_id_t)id));
    }
    return PSD_OK;
}

/* ---- shown ---- */

static bool set_value(ps_doc_t *doc, const char *name, const ps_config_t *config,
                      const ps_key_t *key)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};

    return ps_config_value_print(config, key->id, &text) && ps_buffer_append(&text, "", 1) &&
           ps_doc_set_text(doc, name, (const char *)text.data);
}

static bool set_origin(ps_doc_t *doc, const char *name, const ps_config_t *config,
                       const ps_key_t *key)
{
    char place[512];

    return ps_doc_set_text(doc, name,
                           ps_origin_print(&config->origins[key->id], key, place, sizeof place));
}

/* {"key":…,"value":…,"origin":"cluster" or a place,"own":…,"own_origin":…}; own: what this
 * node's file says. */
static bool fill(const ps_control_t *self, const ps_config_t *config, ps_setting_id_t id,
                 ps_doc_t *doc)
{
    const ps_key_t *key = key_of(id);
    bool is_set = ps_registry_is_set(self->is.registry, id);

    return ps_doc_set_text(doc, "key", key->path) && set_value(doc, "value", config, key) &&
           ps_doc_set_text(doc, "unit", key->unit) &&
           (is_set ? ps_doc_set_text(doc, "origin", "cluster")
                   : set_origin(doc, "origin", self->is.config, key)) &&
           set_value(doc, "own", self->is.config, key) &&
           set_origin(doc, "own_origin", self->is.config, key);
}

psd_status_t ps_control_settings(ps_control_t *self, ps_control_request_t *request,
                                 psd_error_t *err)
{
    PSD_AUTO(ps_config_done) ps_config_t config = {0};
    ps_doc_t *array = NULL;
    psd_status_t rc = make_config(self, &config, err);

    if (rc != PSD_OK) {
        return rc;
    }
    array = ps_doc_add_array(request->reply, "settings");
    for (int id = 1; array != NULL && id < PS_SETTING_END; id++) {
        ps_doc_t *doc = ps_doc_append_object(array);

        array = doc != NULL && fill(self, &config, (ps_setting_id_t)id, doc) ? array : NULL;
    }
    return array != NULL && ps_doc_set_text(request->reply, "node", self->is.node) &&
                   ps_doc_set_u64(request->reply, "machine", ps_registry_machine(self->is.registry))
               ? PSD_OK
               : ps_control_no_memory(err);
}

/* ---- set ---- */

static void tell_one(const ps_control_t *self, ps_setting_id_t id, const ps_config_t *config)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t value = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t own = {0};
    const ps_key_t *key = key_of(id);
    const ps_origin_t *origin = &self->is.config->origins[key->id];
    char place[512];

    if (origin->source == PS_SOURCE_DEFAULT || !ps_registry_is_set(self->is.registry, id) ||
        ps_config_number(config, key->id) == ps_config_number(self->is.config, key->id) ||
        !ps_config_value_print(config, key->id, &value) ||
        !ps_config_value_print(self->is.config, key->id, &own)) {
        return;
    }
    ps_replica_log(self->is.replica, PS_LOG_WARN, "setting_overridden",
                   "key=%s value=%.*s here=%.*s origin=%s hint=\"the cluster's value counts; pscli "
                   "cluster unset gives way to the file's\"",
                   key->path, (int)value.size, (const char *)value.data, (int)own.size,
                   (const char *)own.data, ps_origin_print(origin, key, place, sizeof place));
}

void ps_control_tell_overridden(const ps_control_t *self, uint32_t only)
{
    PSD_AUTO(ps_config_done) ps_config_t config = {0};

    if (make_config(self, &config, NULL) != PSD_OK) {
        return; /* it is a hint */
    }
    for (int id = 1; id < PS_SETTING_END; id++) {
        if (only == 0 || (uint32_t)id == only) {
            tell_one(self, (ps_setting_id_t)id, &config);
        }
    }
}

/* As the file of a node is read, with the same rules between values. */
static psd_status_t read_value(const ps_control_t *self, const ps_doc_t *doc, const ps_key_t *key,
                               ps_config_t *config, psd_error_t *err)
{
    const char *text = NULL;
    psd_status_t rc = make_config(self, config, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_text(doc, "value", VALUE_MAX, &text, err);
    }
    if (rc == PSD_OK) {
        rc = ps_config_set(config, key->id, text, &TYPED, err);
    }
    if (rc == PSD_OK) {
        rc = ps_config_check_numbers(config, err);
    }
    return rc == PSD_CONFIG ? psd_error_wrap(err, PSD_INVALID, "%s", "setting") : rc;
}

static psd_status_t plan(const ps_control_t *self, const ps_doc_t *doc, ps_setting_id_t id,
                         ps_command_t *command, psd_error_t *err)
{
    PSD_AUTO(ps_config_done) ps_config_t config = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t shown = {0};
    const ps_key_t *key = key_of(id);
    uint64_t value = 0;
    psd_status_t rc = PSD_OK;

    if (!ps_doc_has(doc, "value")) {
        /* What is left must fit together, too. */
        rc = make_config(self, &config, err);
        if (rc == PSD_OK) {
            ps_config_set_number(&config, key->id, ps_registry_own_setting(self->is.registry, id));
            config.origins[key->id] = self->is.config->origins[key->id];
            rc = ps_config_check_numbers(&config, err);
        }
        rc = rc == PSD_CONFIG ? psd_error_wrap(err, PSD_INVALID, "%s", "setting") : rc;
        return rc == PSD_OK ? ps_registry_plan_setting(self->is.registry, id, NULL, "",
                                                       ps_unix_ms(), command, err)
                            : rc;
    }
    rc = read_value(self, doc, key, &config, err);
    if (rc == PSD_OK &&
        (!ps_config_value_print(&config, key->id, &shown) || !ps_buffer_append(&shown, "", 1))) {
        rc = ps_control_no_memory(err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    value = ps_config_number(&config, key->id);
    return ps_registry_plan_setting(self->is.registry, id, &value, (const char *)shown.data,
                                    ps_unix_ms(), command, err);
}

psd_status_t ps_control_setting_set(ps_control_t *self, ps_control_request_t *request,
                                    psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    PSD_AUTO(ps_config_done) ps_config_t config = {0};
    ps_setting_id_t id = PS_SETTING_END;
    const char *path = NULL;
    psd_status_t rc = ps_doc_get_text(request->doc, "key", KEY_MAX, &path, err);

    if (rc == PSD_OK) {
        rc = find(path, &id, err);
    }
    if (rc == PSD_OK && request->outcome.kind != PS_COMMAND_SETTING) {
        rc = plan(self, request->doc, id, &command, err);
        if (rc == PSD_OK && command.kind != 0) {
            rc = ps_control_commit_for(self, request, &command, 0, PS_LOG_INFO, err);
        }
        if (rc == PSD_OK && command.kind != 0) {
            ps_control_tell_overridden(self, (uint32_t)id);
            ps_overseer_tell_settings(self->overseer);
            ps_control_decide_later(self);
        }
    }
    if (rc == PSD_OK) {
        rc = make_config(self, &config, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    return fill(self, &config, id, request->reply) ? PSD_OK : ps_control_no_memory(err);
}
