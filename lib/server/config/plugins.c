/* SPDX-License-Identifier: Apache-2.0 */
/* From a directory to a list of functions. */
#include "server/config/plugins.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "transport/sockets/shared_object.h"

#define ENDING ".so"

typedef const psd_updater_t *entry_t(void);

static psd_status_t load_object(int dir, const char *file, ps_plugin_t *plugin, psd_error_t *err)
{
    void *object = NULL;
    void *symbol = NULL;
    entry_t *entry = NULL;
    const psd_updater_t *functions = NULL;
    psd_status_t rc = ps_object_load(dir, file, "psd_updater_plugin", &object, &symbol, err);

    if (rc != PSD_OK) {
        return rc;
    }
    memcpy(&entry, &symbol, sizeof entry); /* as POSIX requires */
    functions = entry();
    rc = ps_plugin_check(plugin->name, functions, err);
    if (rc != PSD_OK) {
        (void)dlclose(object);
        return rc;
    }
    plugin->functions = functions; /* the object stays loaded */
    return PSD_OK;
}

/* NAME of NAME.so; false: it is something else. */
static bool take_name(const char *file, char ret_name[PS_NAME_MAX + 1])
{
    size_t length = strlen(file);

    if (length <= strlen(ENDING) || length - strlen(ENDING) > (size_t)PS_NAME_MAX ||
        strcmp(file + length - strlen(ENDING), ENDING) != 0) {
        return false;
    }
    (void)snprintf(ret_name, PS_NAME_MAX + 1, "%.*s", (int)(length - strlen(ENDING)), file);
    return ps_text_is_name(ret_name);
}

static psd_status_t take_file(ps_plugins_t *self, int dir, const char *file, psd_error_t *err)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *why = NULL;
    ps_plugin_t *plugin = &self->plugins[self->n_plugins];
    char name[PS_NAME_MAX + 1];
    char quoted[PS_PLUGIN_REASON_SIZE + 64];

    if (!take_name(file, name)) {
        return PSD_OK;
    }
    if (self->n_plugins == PS_PLUGINS_MAX) {
        return psd_error_set(err, PSD_CONFIG, "updaters.dir %s has more than %d plug-ins",
                             self->dir, PS_PLUGINS_MAX);
    }
    why = psd_error_new();
    if (why == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a plug-in");
    }
    memcpy(plugin->name, name, sizeof name);
    self->n_plugins++;
    if (load_object(dir, file, plugin, why) == PSD_OK) {
        ps_log(PS_LOG_INFO, "plugin_loaded", "plugin=%s", name);
        return PSD_OK;
    }
    (void)snprintf(plugin->reason, sizeof plugin->reason, "%.*s", (int)sizeof plugin->reason - 1,
                   psd_error_text(why));
    ps_log(PS_LOG_WARN, "plugin_refused", "plugin=%s reason=%s", name,
           ps_log_quote(plugin->reason, quoted, sizeof quoted));
    return PSD_OK;
}

static psd_status_t bad_dir(const char *dir, const char *why, psd_error_t *err)
{
    return psd_error_set(err, PSD_CONFIG, "updaters.dir %s: %s", dir, why);
}

/* In the order of their names, so that every start is the same. */
static psd_status_t take_files(ps_plugins_t *self, int dir, psd_error_t *err)
{
    struct dirent **entries = NULL;
    int n = scandirat(dir, ".", &entries, NULL, alphasort);
    psd_status_t rc = PSD_OK;

    if (n < 0) {
        return bad_dir(self->dir, strerror(errno), err);
    }
    for (int i = 0; i < n; i++) {
        if (rc == PSD_OK) {
            rc = take_file(self, dir, entries[i]->d_name, err);
        }
        free(entries[i]);
    }
    free(entries);
    return rc;
}

static psd_status_t open_dir(const char *dir, int *ret_fd, psd_error_t *err)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *why = psd_error_new();

    if (why == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for plug-ins");
    }
    return ps_object_dir(dir, ret_fd, why) == PSD_OK ? PSD_OK
                                                     : bad_dir(dir, psd_error_text(why), err);
}

psd_status_t ps_plugins_load(const char *dir, ps_plugins_t *ret_plugins, psd_error_t *err)
{
    PSD_AUTO(ps_plugins_done) ps_plugins_t self = {.dir = dir};
    int fd = -1;
    psd_status_t rc = PSD_OK;

    if (dir[0] == '\0') {
        *ret_plugins = self;
        return PSD_OK;
    }
    self.plugins = ps_alloc(PS_PLUGINS_MAX, sizeof *self.plugins);
    if (self.plugins == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for plug-ins");
    }
    rc = open_dir(dir, &fd, err);
    if (rc == PSD_OK) {
        rc = take_files(&self, fd, err);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_plugins = self;
    self = (ps_plugins_t){.dir = ""};
    return PSD_OK;
}

void ps_plugins_done(ps_plugins_t *self)
{
    ps_free(self->plugins);
    *self = (ps_plugins_t){.dir = ""};
}
