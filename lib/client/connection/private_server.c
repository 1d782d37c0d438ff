/* SPDX-License-Identifier: Apache-2.0 */
/* Loads libpsd_server, starts servers of it, and counts the clients that use the private one. */
#include "client/connection/private_server.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "psd_server.h"
#include "transport/threads/fork.h"

#define LIBRARY "libpsd_server.so.0"
#define PATH_SIZE 4200

/* What is used of it. */
typedef struct library {
    psd_status_t (*start)(const psd_embed_options_t *options, psd_embed_t **ret_server,
                          psd_error_t *err);
    const char *(*endpoint)(const psd_embed_t *server);
    psd_status_t (*drain)(psd_embed_t *server, uint32_t timeout_ms, psd_error_t *err);
    void (*stop)(psd_embed_t **server_p);
    psd_embed_options_t *(*new_options)(void);
    void (*destroy_options)(psd_embed_options_t **options_p);
    psd_status_t (*set)(psd_embed_options_t *options, const char *key, const char *value,
                        psd_error_t *err);
} library_t;

/* One for the process, whose clients know nothing of each other. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static library_t library;
static psd_embed_t *server; /* NULL: it does not run */
static unsigned n_holders;
static unsigned n_forks; /* before it was started */

/* Beside libpsd, wherever that is; else where the system looks. */
static void *load(void)
{
    Dl_info mine = {0};
    const char *slash = NULL;
    char path[PATH_SIZE];
    void *handle = NULL;

    if (dladdr(&mutex, &mine) != 0 && mine.dli_fname != NULL) {
        slash = strrchr(mine.dli_fname, '/');
    }
    if (slash != NULL) {
        (void)snprintf(path, sizeof path, "%.*s/" LIBRARY, (int)(slash - mine.dli_fname),
                       mine.dli_fname);
        handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return handle != NULL ? handle : dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
}

/* ISO C has no way from an object's pointer to a function's but this. */
static bool find(void *handle, const char *name, void *ret_function)
{
    void *symbol = dlsym(handle, name);

    memcpy(ret_function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static psd_status_t open_library(psd_error_t *err)
{
    void *handle = NULL;

    if (library.start != NULL) {
        return PSD_OK;
    }
    handle = load();
    if (handle == NULL) {
        return psd_error_set(
            err, PSD_IO, "a server in this process needs " LIBRARY " (package libpsd-server0): %s",
            dlerror());
    }
    if (!find(handle, "psd_embed_endpoint", &library.endpoint) ||
        !find(handle, "psd_embed_drain", &library.drain) ||
        !find(handle, "psd_embed_stop", &library.stop) ||
        !find(handle, "psd_embed_options_new", &library.new_options) ||
        !find(handle, "psd_embed_options_destroy", &library.destroy_options) ||
        !find(handle, "psd_embed_options_set", &library.set) ||
        !find(handle, "psd_embed_start", &library.start)) {
        library = (library_t){.start = NULL};
        return psd_error_set(err, PSD_IO, LIBRARY " is of another version: %s", dlerror());
    }
    return PSD_OK;
}

/* What would be wrong for a node of a job, or the same for all its processes on a host,
 * whatever the environment says. The registry is one node's. */
static psd_status_t set_all(psd_embed_options_t *options, const char *join, const char *listen,
                            psd_error_t *err)
{
    static const char *const FIXED[][2] = {{"data_dir", ""},
                                           {"runtime_dir", ""},
                                           {"node.name", ""},
                                           {"registry.voters", "1"},
                                           {"registry.automatic", "false"}};
    psd_status_t rc = library.set(options, "cluster.join", join == NULL ? "" : join, err);

    if (rc == PSD_OK && join == NULL) {
        rc = library.set(options, "security.token_file", "", err);
    }
    if (rc == PSD_OK && listen != NULL) {
        rc = library.set(options, "listen.endpoints", listen, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < sizeof FIXED / sizeof FIXED[0]; i++) {
        rc = library.set(options, FIXED[i][0], FIXED[i][1], err);
    }
    /* Where workers serve there is mostly one on each core. */
    if (rc == PSD_OK && getenv("PSD_SHARDS") == NULL) {
        rc = library.set(options, "shards", "1", err);
    }
    return rc;
}

psd_status_t ps_private_server_start(const char *join, const char *listen, psd_embed_t **ret_server,
                                     const char **ret_endpoint, psd_error_t *err)
{
    psd_embed_options_t *options = NULL;
    psd_status_t rc = PSD_OK;

    (void)pthread_mutex_lock(&mutex);
    rc = open_library(err);
    (void)pthread_mutex_unlock(&mutex);
    if (rc != PSD_OK) {
        return rc;
    }
    options = library.new_options();
    if (options == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a server");
    }
    rc = set_all(options, join, listen, err);
    if (rc == PSD_OK) {
        rc = library.start(options, ret_server, err);
    }
    library.destroy_options(&options);
    if (rc == PSD_OK) {
        *ret_endpoint = library.endpoint(*ret_server);
    }
    return rc;
}

psd_status_t ps_private_server_drain(psd_embed_t *self, uint32_t timeout_ms, psd_error_t *err)
{
    return library.drain(self, timeout_ms, err);
}

void ps_private_server_stop(psd_embed_t **server_p)
{
    if (*server_p != NULL) {
        library.stop(server_p);
    }
}

/* The lock may be held while a server starts, when another thread forks. */
static void in_child(void)
{
    mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, in_child);
}

psd_status_t ps_private_server_hold(const char **ret_endpoint, psd_error_t *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    psd_status_t rc = PSD_OK;

    (void)pthread_once(&once, watch_forks);
    (void)pthread_mutex_lock(&mutex);
    if (server != NULL && ps_fork_is_since(n_forks)) {
        server = NULL; /* the parent's */
        n_holders = 0;
    }
    if (server == NULL) {
        rc = open_library(err);
        n_forks = ps_fork_count();
        if (rc == PSD_OK) {
            rc = library.start(NULL, &server, err);
        }
    }
    if (rc == PSD_OK) {
        n_holders++;
        *ret_endpoint = library.endpoint(server);
    }
    (void)pthread_mutex_unlock(&mutex);
    return rc;
}

void ps_private_server_release(void)
{
    psd_embed_t *last = NULL;

    (void)pthread_mutex_lock(&mutex);
    /* A client that was made before a fork held another server. */
    if (n_holders > 0 && --n_holders == 0) {
        last = server;
        server = NULL;
    }
    (void)pthread_mutex_unlock(&mutex);
    if (last != NULL) {
        library.stop(&last);
    }
}
