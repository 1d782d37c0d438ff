/* SPDX-License-Identifier: Apache-2.0 */
/* Loads libpsd_server and reads configurations of tests. */
#include "support/daemon_embed.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "psd_server.h"

#define LINE_SIZE 1024

static struct {
    psd_embed_options_t *(*options_new)(void);
    void (*options_destroy)(psd_embed_options_t **self_p);
    psd_status_t (*set)(psd_embed_options_t *self, const char *key, const char *value,
                        psd_error_t *err);
    void (*set_on_log)(psd_embed_options_t *self, psd_on_log_t *on_log, void *user);
    psd_status_t (*start)(const psd_embed_options_t *options, psd_embed_t **ret_server,
                          psd_error_t *err);
    void (*stop)(psd_embed_t **self_p);
} library;
static int log_fd = -1; /* of the server that was started last */

bool daemon_embed_is_on(void)
{
    const char *server = getenv("PSD_TEST_SERVER");

    return server != NULL && strcmp(server, "embed") == 0;
}

static bool find(void *handle, const char *name, void *ret_function)
{
    void *symbol = dlsym(handle, name);

    memcpy(ret_function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool load(void)
{
    const char *path = getenv("PSD_SERVER_LIBRARY");
    void *handle = library.stop != NULL || path == NULL ? NULL : dlopen(path, RTLD_NOW);

    if (library.stop != NULL) {
        return true;
    }
    if (handle == NULL || !find(handle, "psd_embed_options_new", &library.options_new) ||
        !find(handle, "psd_embed_options_destroy", &library.options_destroy) ||
        !find(handle, "psd_embed_options_set", &library.set) ||
        !find(handle, "psd_embed_options_set_on_log", &library.set_on_log) ||
        !find(handle, "psd_embed_start", &library.start) ||
        !find(handle, "psd_embed_stop", &library.stop)) {
        (void)fprintf(stderr, "PSD_SERVER_LIBRARY does not name libpsd_server.so: %s\n", dlerror());
        return false;
    }
    return true;
}

/* ---- the configuration ---- */

/* Cuts blanks, quotes and brackets of a list off both ends. */
static char *trim(char *text)
{
    size_t size = 0;

    text += strspn(text, " \t\"'[{");
    size = strlen(text);
    while (size > 0 && strchr(" \t\n\"']}", text[size - 1]) != NULL) {
        text[--size] = '\0';
    }
    return text;
}

static bool set(psd_embed_options_t *options, const char *section, char *name, char *value)
{
    psd_error_t *err = psd_error_new();
    char key[LINE_SIZE];
    bool done = false;

    (void)snprintf(key, sizeof key, "%.400s%s%.400s", section, section[0] == '\0' ? "" : ".",
                   trim(name));
    done = library.set(options, key, trim(value), err) == PSD_OK;
    if (!done) {
        (void)fprintf(stderr, "%s\n", psd_error_text(err));
    }
    psd_error_destroy(&err);
    return done;
}

/* "{a: 1, b: 2}" */
static bool set_all(psd_embed_options_t *options, const char *section, char *text)
{
    char *rest = NULL;
    bool done = true;

    for (char *pair = strtok_r(text, ",", &rest); done && pair != NULL;
         pair = strtok_r(NULL, ",", &rest)) {
        char *colon = strstr(pair, ": ");

        done = colon != NULL;
        if (done) {
            *colon = '\0';
            done = set(options, section, pair, colon + 1);
        }
    }
    return done;
}

static bool read_config(psd_embed_options_t *options, const char *path)
{
    FILE *file = fopen(path, "re");
    char section[LINE_SIZE] = "";
    char line[LINE_SIZE];
    bool done = true;

    while (file != NULL && done && fgets(line, sizeof line, file) != NULL) {
        char *colon = strchr(line, ':');
        bool is_inside = line[0] == ' ';
        char *value = NULL;

        if (colon == NULL || line[strspn(line, " ")] == '#') {
            continue;
        }
        *colon = '\0';
        value = colon + 1 + strspn(colon + 1, " ");
        if (!is_inside && value[0] == '\n') {
            (void)snprintf(section, sizeof section, "%s", line);
        } else if (value[0] == '{') {
            done = set_all(options, line, value);
        } else {
            done = set(options, is_inside ? section : "", line, value);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return done;
}

/* ---- the server ---- */

static void on_log(void *user, int level, const char *line)
{
    (void)user;
    (void)level;
    (void)dprintf(log_fd, "%s\n", line);
}

void *daemon_embed_start(const char *data_dir, const char *config, const char *log)
{
    psd_error_t *err = psd_error_new();
    psd_embed_options_t *options = load() ? library.options_new() : NULL;
    psd_embed_t *server = NULL;
    char place[LINE_SIZE];
    char key[] = "data_dir";

    if (access(config, R_OK) != 0) {
        (void)setenv("PSD_WORKERS_LOST_AFTER_MS", "60000", 0);
    }
    (void)setenv("PSD_LOG_LEVEL", "info", 0);
    if (log_fd >= 0) {
        (void)close(log_fd);
    }
    log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    (void)snprintf(place, sizeof place, "%s", data_dir);
    if (options != NULL && read_config(options, config) && set(options, "", key, place)) {
        library.set_on_log(options, on_log, NULL);
        if (library.start(options, &server, err) != PSD_OK) {
            (void)fprintf(stderr, "%s\n", psd_error_text(err));
        }
    }
    if (options != NULL) {
        library.options_destroy(&options);
    }
    psd_error_destroy(&err);
    return server;
}

void daemon_embed_stop(void **server_p)
{
    psd_embed_t *server = *server_p;

    *server_p = NULL;
    if (server != NULL) {
        library.stop(&server);
    }
}
