/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up a plug-in, and checks that it can be called. */
#include "model/updaters/plugin.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "model/updaters/updater.h"

/* The public header defines the same numbers. */
_Static_assert(PSD_UPDATER_NO_WORKER == PS_UPDATER_NO_WORKER &&
                   PSD_UPDATER_STATES_MAX == PS_UPDATER_STATES_MAX,
               "limits of updaters");
_Static_assert(PSD_UPDATER_I32 == PS_TYPE_I32 && PSD_UPDATER_I64 == PS_TYPE_I64 &&
                   PSD_UPDATER_F32 == PS_TYPE_F32 && PSD_UPDATER_F64 == PS_TYPE_F64,
               "types of values");

psd_status_t ps_plugin_check(const char *name, const psd_updater_t *functions, psd_error_t *err)
{
    if (functions == NULL) {
        return psd_error_set(err, PSD_INVALID, "psd_updater_plugin returned nothing");
    }
    if (functions->abi != PSD_UPDATER_ABI) {
        return psd_error_set(err, PSD_VERSION, "it has ABI %" PRIu32 "; this psd has %d",
                             functions->abi, PSD_UPDATER_ABI);
    }
    if (functions->size != sizeof *functions) {
        return psd_error_set(err, PSD_VERSION,
                             "its psd_updater_t has %" PRIu32 " bytes; ABI %d has %zu",
                             functions->size, PSD_UPDATER_ABI, sizeof *functions);
    }
    if (functions->name == NULL || strcmp(functions->name, name) != 0) {
        return psd_error_set(err, PSD_INVALID, "it calls itself \"%.63s\", the file is %s.so",
                             functions->name == NULL ? "" : functions->name, name);
    }
    if (functions->open == NULL || functions->close == NULL || functions->n_states == NULL ||
        functions->apply == NULL) {
        return psd_error_set(err, PSD_INVALID, "open, close, n_states or apply is NULL");
    }
    return PSD_OK;
}

static const ps_plugin_t *find(const ps_plugins_t *self, const char *name)
{
    for (size_t i = 0; i < self->n_plugins; i++) {
        if (strcmp(self->plugins[i].name, name) == 0) {
            return &self->plugins[i];
        }
    }
    return NULL;
}

/* There is no such file; the message lists the available ones. */
static psd_status_t not_found(const ps_plugins_t *self, const char *name, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t names = {0};
    bool ok = true;
    size_t n = 0;

    for (size_t i = 0; ok && i < self->n_plugins && n < 10; i++) {
        if (self->plugins[i].functions != NULL) {
            ok = ps_buffer_print(&names, "%s%s", n > 0 ? ", " : "", self->plugins[i].name);
            n++;
        }
    }
    return psd_error_set(err, PSD_UNSUPPORTED,
                         "plug-in %s is not loaded: there was no %s.so in "
                         "updaters.dir %s when psd started; loaded: %s",
                         name, name, self->dir, ok && n > 0 ? (const char *)names.data : "none");
}

/* Asks the plug-in itself. */
static psd_status_t try_table(const psd_updater_t *functions, const ps_table_spec_t *table,
                              psd_error_t *err)
{
    const ps_updater_spec_t *updater = &table->updater;
    char reason[PS_PLUGIN_REASON_SIZE] = "";
    void *made = NULL;
    uint32_t n_states = 0;

    if ((functions->types >> (uint32_t)table->type & 1) == 0) {
        return psd_error_set(err, PSD_INVALID, "plug-in %s does not take type %s", updater->plugin,
                             ps_type_name(table->type));
    }
    if (functions->sparse != 1 && table->row_format != PS_ROW_DENSE) {
        return psd_error_set(err, PSD_INVALID, "plug-in %s takes row format dense only, not %s",
                             updater->plugin, ps_row_format_name(table->row_format));
    }
    if (functions->sums != 1 && table->combine != PS_COMBINE_EACH) {
        return psd_error_set(err, PSD_INVALID, "plug-in %s takes combine each only, not %s",
                             updater->plugin, ps_combine_name(table->combine));
    }
    if (functions->open((uint32_t)table->type, updater->parameters, &made, reason, sizeof reason) !=
        0) {
        reason[sizeof reason - 1] = '\0';
        return psd_error_set(err, PSD_INVALID, "plug-in %s refuses \"%s\" for type %s: %s",
                             updater->plugin, updater->parameters, ps_type_name(table->type),
                             *reason == '\0' ? "no reason given" : reason);
    }
    n_states = functions->n_states(made);
    functions->close(made);
    if (n_states > PS_UPDATER_STATES_MAX) {
        return psd_error_set(err, PSD_INVALID,
                             "plug-in %s asks for %" PRIu32 " state arrays; 0..%d are allowed",
                             updater->plugin, n_states, PS_UPDATER_STATES_MAX);
    }
    return PSD_OK;
}

psd_status_t ps_plugins_bind(const ps_plugins_t *self, ps_table_spec_t *table, psd_error_t *err)
{
    const char *name = table->updater.plugin;
    const ps_plugin_t *plugin = NULL;
    psd_status_t rc = PSD_OK;

    if (table->updater.kind != PS_UPDATER_PLUGIN) {
        return PSD_OK;
    }
    if (self->dir[0] == '\0') {
        return psd_error_set(err, PSD_DENIED,
                             "plug-in %s is not allowed: updaters.dir is not "
                             "set in the daemon's configuration",
                             name);
    }
    plugin = find(self, name);
    if (plugin == NULL) {
        return not_found(self, name, err);
    }
    if (plugin->functions == NULL) {
        return psd_error_set(err, PSD_UNSUPPORTED, "plug-in %s was refused when psd started: %s",
                             name, plugin->reason);
    }
    rc = try_table(plugin->functions, table, err);
    if (rc == PSD_OK) {
        table->updater.functions = plugin->functions;
    }
    return rc;
}
