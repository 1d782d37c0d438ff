/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the settings of a context, and which one is the current one. */
#include "cli/options/args_context.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "cli/options/commands.h"

#define CONTEXT_BYTES_MAX 65536

/* $XDG_CONFIG_HOME/pscli/TAIL. */
static psd_status_t find_path(const char *tail, char ret_path[PATH_MAX], psd_error_t *err)
{
    const char *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    int n = 0;

    if (config != NULL && config[0] == '/') {
        n = snprintf(ret_path, PATH_MAX, "%s/pscli/%s", config, tail);
    } else {
        n = snprintf(ret_path, PATH_MAX, "%s/.config/pscli/%s", home == NULL ? "" : home, tail);
    }
    return n >= 0 && n < PATH_MAX
               ? PSD_OK
               : psd_error_set(err, PSD_USAGE, "pscli/%s: its path is too long", tail);
}

psd_status_t ps_args_context_path(const char *name, char ret_path[PATH_MAX], psd_error_t *err)
{
    char tail[sizeof "contexts/" + PS_CONTEXT_NAME_MAX] = "contexts";

    if (name != NULL && !ps_text_is_name(name)) {
        return psd_error_set(err, PSD_USAGE,
                             "the context is \"%.80s\"; allowed: 1 to 63 letters, digits, \"_\", "
                             "\".\", \"-\"",
                             name);
    }
    if (name != NULL) {
        (void)snprintf(tail, sizeof tail, "contexts/%.*s", PS_CONTEXT_NAME_MAX, name);
    }
    return find_path(tail, ret_path, err);
}

psd_status_t ps_args_context_current_path(char ret_path[PATH_MAX], psd_error_t *err)
{
    return find_path("current", ret_path, err);
}

psd_status_t ps_args_context_current(char ret_name[PS_CONTEXT_NAME_MAX + 1], psd_error_t *err)
{
    char path[PATH_MAX];
    char line[PS_CONTEXT_NAME_MAX + 3] = "";
    FILE *file = NULL;
    size_t n = 0;
    psd_status_t rc = ps_args_context_current_path(path, err);

    ret_name[0] = '\0';
    if (rc != PSD_OK) {
        return rc;
    }
    file = fopen(path, "re");
    if (file == NULL) {
        return errno == ENOENT || errno == ENOTDIR
                   ? PSD_OK
                   : psd_error_set(err, PSD_USAGE, "%s: %s", path, strerror(errno));
    }
    n = fread(line, 1, sizeof line - 1, file);
    (void)fclose(file);
    line[n] = '\0';
    line[strcspn(line, "\n")] = '\0';
    if (!ps_text_is_name(line)) {
        return psd_error_set(err, PSD_USAGE,
                             "%s: not the name of a context; choose one with pscli context use",
                             path);
    }
    (void)snprintf(ret_name, PS_CONTEXT_NAME_MAX + 1, "%.*s", PS_CONTEXT_NAME_MAX, line);
    return PSD_OK;
}

psd_status_t ps_args_context_offer(void *arg, const char *key, const char *value,
                                   const char *origin, psd_error_t *err)
{
    const ps_opts_t global = {.lists = {ps_opts_global}};
    int i = ps_opts_find(&global, key);

    if (i < 0 || strcmp(key, "context") == 0 || strcmp(key, "help") == 0 ||
        strcmp(key, "version") == 0) {
        return psd_error_set(err, PSD_USAGE,
                             "%s: unknown key; allowed: endpoint, output, "
                             "timeout and the other global options",
                             origin);
    }
    return ps_opts_offer(arg, i, value, origin, err);
}

static psd_status_t read_file(const char *name, const char *path, char **ret_text, psd_error_t *err)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t n = 0;

    if (file == NULL) {
        return psd_error_set(err, PSD_USAGE, "context \"%s\" cannot be read: %s: %s", name, path,
                             strerror(errno));
    }
    text = ps_alloc(CONTEXT_BYTES_MAX + 1, 1);
    if (text != NULL) {
        n = fread(text, 1, CONTEXT_BYTES_MAX + 1, file);
    }
    (void)fclose(file);
    *ret_text = text;
    if (text == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a context");
    }
    if (n > CONTEXT_BYTES_MAX || memchr(text, '\0', n) != NULL) {
        return psd_error_set(err, PSD_USAGE, "%s: not a text of at most %d bytes", path,
                             CONTEXT_BYTES_MAX);
    }
    text[n] = '\0';
    return PSD_OK;
}

/* Cuts the blanks off both ends. */
static char *trim(char *text)
{
    size_t n = 0;

    text += strspn(text, " \t\r");
    n = strlen(text);
    while (n > 0 && strchr(" \t\r", text[n - 1]) != NULL) {
        n--;
    }
    text[n] = '\0';
    return text;
}

psd_status_t ps_args_context_read(const char *name, char **ret_text, ps_args_context_set_t set,
                                  void *arg, psd_error_t *err)
{
    char path[PATH_MAX];
    char *next = NULL;
    psd_status_t rc = ps_args_context_path(name, path, err);

    if (rc == PSD_OK) {
        rc = read_file(name, path, ret_text, err);
    }
    next = rc == PSD_OK ? *ret_text : NULL;
    for (int number = 1; rc == PSD_OK && next != NULL; number++) {
        char *line = strsep(&next, "\n");
        char origin[PATH_MAX + 128];
        char *value = NULL;

        line = trim(line);
        if (line[0] == '\0' || line[0] == '#') {
            continue;
        }
        value = strchr(line, '=');
        if (value == NULL) {
            return psd_error_set(err, PSD_USAGE, "%s:%d: \"%s\" is not key=value", path, number,
                                 line);
        }
        *value++ = '\0';
        (void)snprintf(origin, sizeof origin, "%s:%d: %s", path, number, trim(line));
        rc = set(arg, trim(line), trim(value), origin, err);
    }
    return rc;
}
