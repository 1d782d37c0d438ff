/* SPDX-License-Identifier: Apache-2.0 */
/* The paths below /api/v1/. */
#include "daemon/http/http_api.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "model/tables/table.h"
#include "wire/messages/envelope.h"

#define NAME "NAME" /* stands for a name in a path */
#define LAST_MAX 10000
#define EVENTS_LAST 200 /* without an argument */

/* A path, the operation of the control port, and the member that gets the name. */
static const struct {
    const char *path;
    const char *op;
    const char *key; /* NULL: the path has no name */
} PATHS[] = {
    {"cluster", "cluster_status", NULL},
    {"nodes", "node_list", NULL},
    {"nodes/" NAME, "node_inspect", "name"},
    {"registry", "registry_list", NULL},
    {"settings", "settings", NULL},
    {"tables", "table_list", NULL},
    {"tables/" NAME, "table_inspect", "name"},
    {"jobs", "job_list", NULL},
    {"jobs/" NAME, "job_inspect", "job"},
    {"jobs/" NAME "/workers", "worker_list", "job"},
    {"jobs/" NAME "/why", "why", "job"},
    {"clocks", "clock_list", NULL},
    {"clocks/" NAME, "clock_inspect", "job"},
    {"checkpoints", "checkpoint_list", NULL},
    {"slow", "slow", NULL},
    {"events", "cluster_events", NULL},
};
#define N_PATHS (sizeof PATHS / sizeof PATHS[0])

const char *ps_http_api_path(size_t i)
{
    return i < N_PATHS ? PATHS[i].path : NULL;
}

/* Whether it has the form of the pattern. ret_name: what stands for NAME; "": it has none. */
static bool is_like(const char *path, const char *pattern, char ret_name[PS_NAME_MAX + 2])
{
    const char *mark = strstr(pattern, NAME);
    size_t before = mark == NULL ? strlen(pattern) : (size_t)(mark - pattern);
    size_t size = 0;

    ret_name[0] = '\0';
    if (strncmp(path, pattern, before) != 0) {
        return false;
    }
    if (mark == NULL) {
        return path[before] == '\0';
    }
    size = strcspn(path + before, "/");
    (void)snprintf(ret_name, PS_NAME_MAX + 2, "%.*s", (int)(size > INT16_MAX ? INT16_MAX : size),
                   path + before); /* one that is cut is too long for a name */
    return strcmp(path + before + size, mark + strlen(NAME)) == 0;
}

static ps_http_found_t ask_last(const char *last, ps_buffer_t *question)
{
    uint64_t n = EVENTS_LAST;

    if (last != NULL && (!ps_text_u64(last, &n) || n == 0 || n > LAST_MAX)) {
        return PS_HTTP_BAD_NAME;
    }
    return ps_buffer_print(question, "{\"op\":\"cluster_events\",\"limit\":%" PRIu64 "}", n)
               ? PS_HTTP_FOUND
               : PS_HTTP_NO_QUESTION_MEMORY;
}

static ps_http_found_t ask(size_t i, const char *name, const char *last, ps_buffer_t *question)
{
    if (strcmp(PATHS[i].op, "cluster_events") == 0) {
        return ask_last(last, question);
    }
    if (PATHS[i].key != NULL && !ps_text_is_name(name)) {
        return PS_HTTP_BAD_NAME;
    }
    return (PATHS[i].key == NULL ? ps_buffer_print(question, "{\"op\":\"%s\"}", PATHS[i].op)
                                 : ps_buffer_print(question, "{\"op\":\"%s\",\"%s\":\"%s\"}",
                                                   PATHS[i].op, PATHS[i].key, name))
               ? PS_HTTP_FOUND
               : PS_HTTP_NO_QUESTION_MEMORY;
}

ps_http_found_t ps_http_api_find(const char *path, const char *last, ps_buffer_t *ret_question)
{
    const char *rest = path + strlen(PS_HTTP_API);
    char name[PS_NAME_MAX + 2];

    for (size_t i = 0; i < N_PATHS; i++) {
        if (is_like(rest, PATHS[i].path, name)) {
            PSD_AUTO(ps_buffer_done) ps_buffer_t question = {0};
            ps_http_found_t found = ask(i, name, last, &question);

            if (found == PS_HTTP_FOUND) {
                *ret_question = question;
                question = (ps_buffer_t){0};
            }
            return found;
        }
    }
    return PS_HTTP_NO_PATH;
}

bool ps_http_api_write(const char *text, ps_buffer_t *ret_text)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;
    const ps_bytes_t bytes = {.data = (const uint8_t *)text, .size = strlen(text)};

    if (ps_doc_parse(bytes, &doc, NULL) != PSD_OK) {
        return false;
    }
    ps_envelope_strip(doc);
    return ps_doc_set_u64(doc, "schema_version", 1) && ps_doc_print(doc, ret_text);
}

bool ps_http_api_refuse(psd_status_t status, const char *text, ps_buffer_t *ret_text)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();
    ps_doc_t *error = doc == NULL ? NULL : ps_doc_add_object(doc, "error");

    return error != NULL && ps_doc_set_u64(doc, "schema_version", 1) &&
           ps_doc_set_text(error, "code", psd_status_code(status)) &&
           ps_doc_set_i64(error, "exit", psd_status_exit(status)) &&
           ps_doc_set_text(error, "message", text[0] == '\0' ? psd_status_text(status) : text) &&
           ps_doc_set_text(error, "hint", psd_status_hint(status)) && ps_doc_print(doc, ret_text);
}

unsigned ps_http_api_status(psd_status_t status)
{
    switch (psd_status_exit(status)) {
    case 0:
        return 200;
    case 2:
        return 400;
    case 4:
        return 403;
    case 5:
        return 404;
    case 3:
    case 7:
        return 503;
    default:
        return 500;
    }
}
