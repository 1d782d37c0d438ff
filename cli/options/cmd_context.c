/* SPDX-License-Identifier: Apache-2.0 */
/* pscli context: named settings, kept in files of the user. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"
#include "cli/options/args_context.h"
#include "cli/options/commands.h"

static const ps_column_t CONTEXTS[] = {{"NAME", "name", PS_UNIT_NONE, false},
                                       {"CURRENT", "current", PS_UNIT_NONE, false},
                                       {"ENDPOINT", "endpoint", PS_UNIT_NONE, false},
                                       {"PROBLEM", "problem", PS_UNIT_NONE, false},
                                       {NULL, NULL, PS_UNIT_NONE, false}};
static const ps_column_t SETTINGS[] = {{"KEY", "key", PS_UNIT_NONE, false},
                                       {"VALUE", "value", PS_UNIT_NONE, false},
                                       {NULL, NULL, PS_UNIT_NONE, false}};
static const ps_column_t ANSWER[] = {{"NAME", "name", PS_UNIT_NONE, false},
                                     {NULL, NULL, PS_UNIT_NONE, false}};

/* ---- files ---- */

static psd_status_t refuse_path(const char *path, psd_error_t *err)
{
    return psd_error_set(err, PSD_IO, "%s: %s", path, strerror(errno));
}

/* Makes each directory that the file is in, for the user alone. */
static psd_status_t make_directories(const char *path, psd_error_t *err)
{
    char part[PATH_MAX];

    for (const char *end = strchr(path + 1, '/'); end != NULL; end = strchr(end + 1, '/')) {
        (void)snprintf(part, sizeof part, "%.*s", (int)(end - path), path);
        if (mkdir(part, 0700) != 0 && errno != EEXIST) {
            return refuse_path(part, err);
        }
    }
    return PSD_OK;
}

/* The file has the old text or the new one, whatever ends this process. */
static psd_status_t replace_file(const char *path, const char *text, psd_error_t *err)
{
    char fresh[PATH_MAX + 8];
    size_t length = strlen(text);
    bool written = false;
    int fd = -1;
    psd_status_t rc = make_directories(path, err);

    if (rc != PSD_OK) {
        return rc;
    }
    (void)snprintf(fresh, sizeof fresh, "%s~XXXXXX", path); /* no context has such a name */
    fd = mkostemp(fresh, O_CLOEXEC);
    if (fd < 0) {
        return refuse_path(path, err);
    }
    written = write(fd, text, length) == (ssize_t)length;
    written = close(fd) == 0 && written;
    if (!written || rename(fresh, path) != 0) {
        rc = refuse_path(path, err);
        (void)unlink(fresh);
    }
    return rc;
}

static psd_status_t check_exists(const char *name, psd_error_t *err)
{
    char path[PATH_MAX];
    psd_status_t rc = ps_args_context_path(name, path, err);

    if (rc == PSD_OK && access(path, F_OK) != 0) {
        rc = psd_error_set(err, PSD_USAGE,
                           "there is no context \"%s\"; \"pscli context list\" shows those that "
                           "are, \"pscli context set %s endpoint=URL\" makes it",
                           name, name);
    }
    return rc;
}

/* ---- list and show ---- */

static psd_status_t take_setting(void *arg, const char *key, const char *value, const char *origin,
                                 psd_error_t *err)
{
    PSD_AUTO(ps_opts_done) ps_opts_t opts = {.lists = {ps_opts_global}};
    json_t *list = arg;
    psd_status_t rc = ps_args_context_offer(&opts, key, value, origin, err);

    if (rc == PSD_OK &&
        json_array_append_new(list, json_pack("{s:s, s:s}", "key", key, "value", value)) != 0) {
        rc = psd_error_set(err, PSD_INVALID, "%s: not UTF-8", origin);
    }
    return rc;
}

/* ret_list: an array; the caller gives it back. */
static psd_status_t read_settings(const char *name, json_t **ret_list, psd_error_t *err)
{
    char *text = NULL;
    psd_status_t rc = PSD_OK;

    *ret_list = json_array();
    if (*ret_list == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the settings");
    }
    rc = ps_args_context_read(name, &text, take_setting, *ret_list, err);
    ps_free(text);
    return rc;
}

/* As in the file, the first line of a key counts. */
static const char *value_of(const json_t *settings, const char *key)
{
    const json_t *row = NULL;
    size_t i = 0;

    json_array_foreach(settings, i, row)
    {
        if (strcmp(ps_json_text(row, "key"), key) == 0) {
            return ps_json_text(row, "value");
        }
    }
    return NULL;
}

static bool add_context(json_t *list, const char *name, const char *current)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_json_unref) json_t *settings = NULL;
    psd_status_t rc = read_settings(name, &settings, err);
    json_t *row = json_pack("{s:s, s:b, s:s?, s:s?}", "name", name, "current",
                            strcmp(name, current) == 0, "endpoint", value_of(settings, "endpoint"),
                            "problem", rc == PSD_OK ? NULL : psd_error_text(err));

    return json_array_append_new(list, row) == 0;
}

static int is_context(const struct dirent *entry)
{
    return ps_text_is_name(entry->d_name) && entry->d_name[0] != '.' ? 1 : 0;
}

psd_status_t ps_cmd_context_list(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *doc = json_pack("{s:[]}", "contexts");
    json_t *list = json_object_get(doc, "contexts");
    char current[PS_CONTEXT_NAME_MAX + 1];
    char path[PATH_MAX];
    struct dirent **entries = NULL;
    bool ok = list != NULL;
    int n = 0;
    psd_status_t rc = ps_args_context_current(current, err);

    if (rc == PSD_OK) {
        rc = ps_args_context_path(NULL, path, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    n = scandir(path, &entries, is_context, alphasort);
    if (n < 0 && errno != ENOENT) {
        return refuse_path(path, err);
    }
    for (int i = 0; i < n; i++) {
        ok = ok && add_context(list, entries[i]->d_name, current);
        free(entries[i]); /* scandir's own */
    }
    free(entries);
    if (!ok) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the contexts");
    }
    ps_out_list(&cli->out, doc, "contexts", CONTEXTS);
    return PSD_OK;
}

psd_status_t ps_cmd_context_show(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *doc = NULL;
    json_t *settings = NULL;
    char current[PS_CONTEXT_NAME_MAX + 1] = "";
    const char *name = cli->args.n_words > 0 ? cli->args.words[0] : current;
    psd_status_t rc = cli->args.n_words > 0 ? PSD_OK : ps_args_context_current(current, err);

    if (rc == PSD_OK && name[0] == '\0') {
        rc = psd_error_set(err, PSD_USAGE,
                           "no context is the current one; name one, or choose one with pscli "
                           "context use");
    }
    if (rc == PSD_OK) {
        rc = check_exists(name, err);
    }
    if (rc == PSD_OK) {
        rc = read_settings(name, &settings, err);
        doc = json_pack("{s:s, s:o}", "name", name, "settings", settings);
    }
    if (rc == PSD_OK) {
        ps_out_list(&cli->out, doc, "settings", SETTINGS);
    }
    return rc;
}

/* ---- set, use and drop ---- */

/* KEY=VALUE, with a value that a context may have. ret_length: of KEY. */
static psd_status_t check_word(const char *word, size_t *ret_length, psd_error_t *err)
{
    PSD_AUTO(ps_opts_done) ps_opts_t opts = {.lists = {ps_opts_global}};
    const char *equals = strchr(word, '=');
    char key[PS_CONTEXT_NAME_MAX + 1];
    char origin[PS_CONTEXT_NAME_MAX + 32];

    if (equals == NULL || equals == word || equals - word > PS_CONTEXT_NAME_MAX ||
        strpbrk(word, "\n\r") != NULL) {
        return psd_error_set(err, PSD_USAGE, "\"%.80s\" is not KEY=VALUE, on one line", word);
    }
    *ret_length = (size_t)(equals - word);
    (void)snprintf(key, sizeof key, "%.*s", (int)*ret_length, word);
    (void)snprintf(origin, sizeof origin, "context set: %s", key);
    if (equals[1] == '\0') { /* it goes; so may one that an older pscli knew */
        return PSD_OK;
    }
    return ps_args_context_offer(&opts, key, equals + 1, origin, err);
}

/* Does the line of a file set the key of the word? */
static bool is_line_of(const char *line, size_t length, const char *word, size_t key_length)
{
    const char *end = memchr(line, '=', length);
    const char *begin = line;

    if (end == NULL) {
        return false;
    }
    while (begin < end && strchr(" \t", *begin) != NULL) {
        begin++;
    }
    while (end > begin && strchr(" \t", end[-1]) != NULL) {
        end--;
    }
    return (size_t)(end - begin) == key_length && memcmp(begin, word, key_length) == 0;
}

/* Puts the word in the place of its key's line, or at the end. */
static bool put_word(ps_buffer_t *text, const char *word, size_t key_length)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t old = *text;
    bool is_put = word[key_length + 1] == '\0';
    bool ok = true;

    *text = (ps_buffer_t){0};
    for (size_t at = 0; ok && at < old.size;) {
        const char *line = (const char *)old.data + at;
        const char *end = memchr(line, '\n', old.size - at);
        size_t length = end == NULL ? old.size - at : (size_t)(end - line);

        if (!is_line_of(line, length, word, key_length)) {
            ok = ps_buffer_append(text, line, length) && ps_buffer_append(text, "\n", 1);
        } else if (!is_put) {
            ok = ps_buffer_append(text, word, strlen(word)) && ps_buffer_append(text, "\n", 1);
            is_put = true;
        }
        at += length + 1;
    }
    return ok && (is_put ||
                  (ps_buffer_append(text, word, strlen(word)) && ps_buffer_append(text, "\n", 1)));
}

static psd_status_t take_nothing(void *arg, const char *key, const char *value, const char *origin,
                                 psd_error_t *err)
{
    (void)arg;
    (void)key;
    (void)value;
    (void)origin;
    (void)err;
    return PSD_OK;
}

/* The text as it is, and whether it is lines of settings. */
static psd_status_t read_whole(const char *path, ps_buffer_t *ret_text, psd_error_t *err)
{
    char piece[4096];
    size_t n = 0;
    bool ok = true;
    FILE *file = fopen(path, "re");

    if (file == NULL) {
        return errno == ENOENT ? PSD_OK : refuse_path(path, err);
    }
    while (ok && (n = fread(piece, 1, sizeof piece, file)) > 0) {
        ok = ps_buffer_append(ret_text, piece, n);
    }
    (void)fclose(file);
    return ok ? PSD_OK : psd_error_set(err, PSD_NOMEM, "no memory for a context");
}

static psd_status_t read_old(const char *name, const char *path, ps_buffer_t *ret_text,
                             psd_error_t *err)
{
    char *text = NULL;
    psd_status_t rc = PSD_OK;

    if (access(path, F_OK) == 0) {
        rc = ps_args_context_read(name, &text, take_nothing, NULL, err);
        ps_free(text);
    }
    return rc == PSD_OK ? read_whole(path, ret_text, err) : rc;
}

static void answer(const ps_cli_t *cli, const char *name, const char *says)
{
    PSD_AUTO(ps_json_unref) json_t *doc = json_pack("{s:s}", "name", name);

    ps_out_answer(&cli->out, doc, ANSWER, "%s", says);
}

psd_status_t ps_cmd_context_set(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    const char *name = cli->args.words[0];
    char says[PS_CONTEXT_NAME_MAX + 64];
    char path[PATH_MAX];
    psd_status_t rc = ps_args_context_path(name, path, err);

    if (rc == PSD_OK && name[0] == '.') {
        rc = psd_error_set(err, PSD_USAGE, "the context is \"%s\"; allowed: no \".\" in front",
                           name);
    }
    if (rc == PSD_OK) {
        rc = read_old(name, path, &text, err);
    }
    for (size_t i = 1; rc == PSD_OK && i < cli->args.n_words; i++) {
        size_t length = 0;

        rc = check_word(cli->args.words[i], &length, err);
        if (rc == PSD_OK && !put_word(&text, cli->args.words[i], length)) {
            rc = psd_error_set(err, PSD_NOMEM, "no memory for a context");
        }
    }
    if (rc == PSD_OK && !ps_buffer_append(&text, "", 1)) {
        rc = psd_error_set(err, PSD_NOMEM, "no memory for a context");
    }
    if (rc == PSD_OK) {
        rc = replace_file(path, (const char *)text.data, err);
    }
    if (rc == PSD_OK) {
        (void)snprintf(says, sizeof says, "context %s is set", name);
        answer(cli, name, says);
    }
    return rc;
}

static psd_status_t use_none(psd_error_t *err)
{
    char path[PATH_MAX];
    psd_status_t rc = ps_args_context_current_path(path, err);

    return rc == PSD_OK && unlink(path) != 0 && errno != ENOENT && errno != ENOTDIR
               ? refuse_path(path, err)
               : rc;
}

psd_status_t ps_cmd_context_use(ps_cli_t *cli, psd_error_t *err)
{
    const bool none = ps_args_on(&cli->args, "none");
    char text[PS_CONTEXT_NAME_MAX + 2];
    char says[PS_CONTEXT_NAME_MAX + 64];
    char path[PATH_MAX];
    psd_status_t rc = PSD_OK;

    if (none == (cli->args.n_words > 0)) {
        return psd_error_set(err, PSD_USAGE, "name the context to use, or --none");
    }
    if (none) {
        rc = use_none(err);
        if (rc == PSD_OK) {
            answer(cli, "", "no context is the current one");
        }
        return rc;
    }
    rc = check_exists(cli->args.words[0], err);
    if (rc == PSD_OK) {
        rc = ps_args_context_current_path(path, err);
    }
    if (rc == PSD_OK) {
        (void)snprintf(text, sizeof text, "%s\n", cli->args.words[0]);
        rc = replace_file(path, text, err);
    }
    if (rc == PSD_OK) {
        (void)snprintf(says, sizeof says, "context %s is the current one", cli->args.words[0]);
        answer(cli, cli->args.words[0], says);
    }
    return rc;
}

psd_status_t ps_cmd_context_drop(ps_cli_t *cli, psd_error_t *err)
{
    const char *name = cli->args.words[0];
    char current[PS_CONTEXT_NAME_MAX + 1];
    char says[PS_CONTEXT_NAME_MAX + 64];
    char path[PATH_MAX];
    psd_status_t rc = check_exists(name, err);

    if (rc == PSD_OK) {
        rc = ps_args_context_path(name, path, err);
    }
    if (rc == PSD_OK) {
        rc = ps_args_context_current(current, err);
    }
    if (rc == PSD_OK && strcmp(current, name) == 0) {
        rc = use_none(err);
    }
    if (rc == PSD_OK && unlink(path) != 0) {
        rc = refuse_path(path, err);
    }
    if (rc == PSD_OK) {
        (void)snprintf(says, sizeof says, "dropped context %s%s", name,
                       strcmp(current, name) == 0 ? ", which was the current one" : "");
        answer(cli, name, says);
    }
    return rc;
}
