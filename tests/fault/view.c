/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to the registry's node, and what is made of their answers. */
#include "view.h"

#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "support/check.h"

#define CALL_MS 2000
#define WHOLE_MS 120000
#define ANSWER_MS 60000
#define STEP_MS 20
#define REQUEST_SIZE 256

static uint64_t now_ms(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

bool view_open(view_t *self, const char *endpoint)
{
    psd_options_t *options = psd_options_new();

    *self = (view_t){.err = psd_error_new()};
    CHECK(options != NULL && self->err != NULL);
    CHECK_OK(psd_options_set_transport(options, "tcp", self->err), self->err);
    CHECK_OK(psd_connect(endpoint, options, &self->client, self->err), self->err);
    psd_options_destroy(&options);
    return true;
}

void view_close(view_t *self)
{
    psd_close(&self->client);
    psd_error_destroy(&self->err);
}

/* NULL: no answer, or a refusal; which is in self->err. */
static json_t *ask_text(view_t *self, const char *request)
{
    char *text = NULL;
    json_t *reply = NULL;

    psd_error_clear(self->err);
    if (psd_request(self->client, request, CALL_MS, &text, self->err) == PSD_OK) {
        reply = json_loads(text, 0, NULL);
    }
    psd_free(text);
    return reply;
}

static json_t *ask(view_t *self, const char *op, const char *key, const char *name)
{
    char request[REQUEST_SIZE];

    (void)snprintf(request, sizeof request, "{\"op\":\"%s\",\"%s\":\"%s\"}", op, key, name);
    return ask_text(self, request);
}

bool view_drain(view_t *self, const char *node, bool stay)
{
    char request[REQUEST_SIZE];
    uint64_t end_ms = now_ms() + ANSWER_MS;
    json_t *reply = NULL;

    (void)snprintf(request, sizeof request, "{\"op\":\"node_drain\",\"name\":\"%s\",\"stay\":%s}",
                   node, stay ? "true" : "false");
    do {
        reply = ask_text(self, request);
    } while (reply == NULL && psd_error_status(self->err) == PSD_DEADLINE && now_ms() < end_ms);
    if (reply == NULL) {
        (void)fprintf(stderr, "drain %s: %s\n", node, psd_error_text(self->err));
        return false;
    }
    json_decref(reply);
    return true;
}

/* Copies on the node; -1: no answer. */
static json_int_t count_copies(view_t *self, const char *node)
{
    json_t *reply = ask(self, "node_inspect", "name", node);
    const json_t *partitions = json_object_get(json_object_get(reply, "node"), "partitions");
    json_int_t n = partitions == NULL
                       ? -1
                       : json_integer_value(json_object_get(partitions, "primary")) +
                             json_integer_value(json_object_get(partitions, "replica"));

    json_decref(reply);
    return n;
}

static bool wait_copies(view_t *self, const char *node, json_int_t least, json_int_t most)
{
    const struct timespec step = {.tv_nsec = STEP_MS * 1000000L};
    uint64_t end_ms = now_ms() + WHOLE_MS;
    json_int_t n = count_copies(self, node);

    while ((n < least || n > most) && now_ms() < end_ms) {
        (void)nanosleep(&step, NULL);
        n = count_copies(self, node);
    }
    if (n < least || n > most) {
        (void)fprintf(stderr, "%s has %d copies: %s\n", node, (int)n,
                      n < 0 ? psd_error_text(self->err) : "");
        return false;
    }
    return true;
}

bool view_wait_drained(view_t *self, const char *node)
{
    return wait_copies(self, node, 0, 0);
}

bool view_wait_copies(view_t *self, const char *node, unsigned least)
{
    return wait_copies(self, node, least, INT_MAX);
}

static bool is_whole(const json_t *reply, unsigned n_copies)
{
    const json_t *partitions = json_object_get(json_object_get(reply, "table"), "partitions");
    size_t i = 0;
    const json_t *one = NULL;

    json_array_foreach(partitions, i, one)
    {
        const char *primary = json_string_value(json_object_get(one, "primary"));

        if (primary == NULL || primary[0] == '\0' ||
            json_array_size(json_object_get(one, "in_sync")) != n_copies) {
            return false;
        }
    }
    return json_array_size(partitions) > 0;
}

bool view_wait_whole(view_t *self, const char *table, unsigned n_copies)
{
    const struct timespec step = {.tv_nsec = STEP_MS * 1000000L};
    uint64_t end_ms = now_ms() + WHOLE_MS;

    for (;;) {
        json_t *reply = ask(self, "table_inspect", "name", table);
        bool whole = is_whole(reply, n_copies);
        bool late = !whole && now_ms() >= end_ms;

        if (late) {
            (void)fprintf(stderr, "not whole: %s\n",
                          reply == NULL ? psd_error_text(self->err) : "");
            (void)json_dumpf(reply, stderr, JSON_INDENT(1));
        }
        json_decref(reply);
        if (whole || late) {
            return whole;
        }
        (void)nanosleep(&step, NULL);
    }
}

/* The texts of an array, a line each; false: there is no such answer. */
static bool take_lines(json_t *reply, const char *key, char *ret_text, size_t size)
{
    const json_t *lines = json_object_get(reply, key);
    bool good = json_is_array(lines);
    size_t used = 0;
    size_t i = 0;
    const json_t *line = NULL;

    ret_text[0] = '\0';
    json_array_foreach(lines, i, line)
    {
        if (used < size) {
            used += (size_t)snprintf(ret_text + used, size - used, "%s\n", json_string_value(line));
        }
    }
    json_decref(reply);
    return good;
}

bool view_try_why(view_t *self, const char *job, char *ret_text, size_t size)
{
    return take_lines(ask(self, "why", "job", job), "text", ret_text, size);
}

bool view_try_status(view_t *self, const char *job, char *ret_text, size_t size)
{
    return take_lines(ask(self, "cluster_status", "job", job), "problems", ret_text, size);
}

bool view_why(view_t *self, const char *job, char *ret_text, size_t size)
{
    uint64_t end_ms = now_ms() + ANSWER_MS;

    while (!view_try_why(self, job, ret_text, size)) {
        if (now_ms() >= end_ms) {
            (void)fprintf(stderr, "why %s: %s\n", job, psd_error_text(self->err));
            return false;
        }
    }
    return ret_text[0] != '\0';
}
