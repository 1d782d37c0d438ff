/* SPDX-License-Identifier: Apache-2.0 */
/* From an endpoint's first word to the functions of its carrier. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "transport/environment/environment.h"
#include "transport/sockets/plugin_socket.h"
#include "transport/sockets/shared_object.h"

#define FILE_SIZE 64
#define PATH_SIZE 4200

static const char *const NAMES[] = {"mpi", "ucx"};

const char *ps_plugin_name_of(const char *endpoint)
{
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        size_t size = strlen(NAMES[i]);

        if (strncmp(endpoint, NAMES[i], size) == 0 && strncmp(endpoint + size, "://", 3) == 0) {
            return NAMES[i];
        }
    }
    return NULL;
}

static psd_status_t check(const ps_carrier_plugin_t *plugin, const char *name, psd_error_t *err)
{
    if (plugin == NULL || plugin->abi != PS_CARRIER_ABI || plugin->size != sizeof *plugin) {
        return psd_error_set(err, PSD_UNSUPPORTED, "it is for another version of psd");
    }
    if (plugin->name == NULL || strcmp(plugin->name, name) != 0) {
        return psd_error_set(err, PSD_UNSUPPORTED, "it is the carrier \"%.16s\"",
                             plugin->name == NULL ? "" : plugin->name);
    }
    return PSD_OK;
}

/* A second load of the same file gives the same object. */
static psd_status_t load(int fd, const char *file, const char *name,
                         const ps_carrier_plugin_t **ret_plugin, psd_error_t *err)
{
    void *object = NULL;
    void *symbol = NULL;
    ps_carrier_entry_t *entry = NULL;
    const ps_carrier_plugin_t *plugin = NULL;
    psd_status_t rc = ps_object_load(fd, file, PS_CARRIER_ENTRY, &object, &symbol, err);

    if (rc != PSD_OK) {
        return rc;
    }
    memcpy(&entry, &symbol, sizeof entry); /* as POSIX requires */
    plugin = entry();
    rc = check(plugin, name, err);
    if (rc != PSD_OK) {
        (void)dlclose(object);
        return rc;
    }
    *ret_plugin = plugin; /* the object stays loaded */
    return PSD_OK;
}

/* The directory of carriers. */
static psd_status_t find_dir(ps_environment_t *said, const char **ret_dir, psd_error_t *err)
{
    psd_status_t rc = ps_environment_read("PSD_CARRIER_DIR", said, err);

    *ret_dir = said->text == NULL ? PS_CARRIER_DIR : said->text;
    return rc;
}

/* The loader knows an object by its file, whatever the path. */
const ps_carrier_plugin_t *ps_plugin_loaded(const char *name)
{
    ps_environment_t said = {.text = NULL};
    const char *dir = NULL;
    char path[PATH_SIZE];
    void *object = NULL;
    void *symbol = NULL;
    ps_carrier_entry_t *entry = NULL;
    const ps_carrier_plugin_t *plugin = NULL;

    if (find_dir(&said, &dir, NULL) != PSD_OK) {
        return NULL;
    }
    (void)snprintf(path, sizeof path, "%s/libpsd-%.16s.so", dir, name);
    object = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (object == NULL) {
        return NULL;
    }
    symbol = dlsym(object, PS_CARRIER_ENTRY);
    if (symbol != NULL) {
        memcpy(&entry, &symbol, sizeof entry);
        plugin = entry();
    }
    (void)dlclose(object); /* who loaded it keeps it */
    return plugin != NULL && check(plugin, name, NULL) == PSD_OK ? plugin : NULL;
}

psd_status_t ps_plugin_load(const char *name, const ps_carrier_plugin_t **ret_plugin,
                            psd_error_t *err)
{
    ps_environment_t said;
    const char *dir = NULL;
    char file[FILE_SIZE];
    int fd = -1;
    psd_status_t rc = find_dir(&said, &dir, err);

    if (rc != PSD_OK) {
        return rc;
    }
    (void)snprintf(file, sizeof file, "libpsd-%.16s.so", name);
    rc = ps_object_dir(dir, &fd, err);
    if (rc == PSD_OK) {
        rc = load(fd, file, name, ret_plugin, err);
        (void)close(fd);
    }
    if (rc == PSD_OK) {
        return PSD_OK;
    }
    /* To the caller it is an endpoint that cannot be used here, whatever the
     * system's reason is. */
    return psd_error_wrap(err, rc == PSD_DENIED || rc == PSD_NOMEM ? rc : PSD_UNSUPPORTED,
                          "carrier %s, %.300s/%s", name, dir, file);
}
