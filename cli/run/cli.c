/* SPDX-License-Identifier: Apache-2.0 */
/* One run: settings, connection, requests. */
#include "cli/run/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/text.h"
#include "cli/output/output_cell.h"
#include "transport/sockets/reach.h"
#include "wire/messages/route.h"

void ps_args_done(ps_args_t *self)
{
    ps_opts_done(&self->opts);
    ps_free(self->words);
    ps_free(self->context);
    *self = (ps_args_t){0};
}

void ps_cli_done(ps_cli_t *self)
{
    psd_close(&self->client);
    json_decref(self->details);
    ps_args_done(&self->args);
    *self = (ps_cli_t){0};
}

/* On a terminal: says what it waits for. */
static void say_wait(void *user, const char *what)
{
    const ps_cli_t *self = user;

    ps_say(&self->out, "%s", what);
}

psd_status_t ps_cli_connect_by(const ps_cli_t *self, const char *transport, uint32_t timeout_ms,
                               psd_client_t **ret_client, psd_error_t *err)
{
    PSD_AUTO(psd_options_destroy) psd_options_t *options = psd_options_new();
    psd_status_t rc = PSD_OK;

    if (strcmp(self->endpoint, "mpi:") == 0) {
        return psd_error_set(
            err, PSD_USAGE,
            "the endpoint is mpi:, servers inside of the ranks of an mpirun, which "
            "only these reach; name a psd with --endpoint");
    }
    if (options == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to connect");
    }
    psd_options_set_timeout_ms(options, timeout_ms);
    psd_options_set_on_wait(options, say_wait, (void *)self);
    psd_options_set_wait(options, ps_args_on(&self->args, "wait"));
    psd_options_set_guest(options, self->only_reads);
    if (transport != NULL) {
        rc = psd_options_set_transport(options, transport, err);
    }
    if (rc == PSD_OK) {
        rc = psd_connect(self->endpoint, options, ret_client, err);
    }
    if (rc != PSD_OK && strstr(psd_error_text(err), self->endpoint) == NULL) {
        return psd_error_wrap(err, rc, "%s", self->endpoint);
    }
    return rc;
}

bool ps_cli_is_listened(const ps_cli_t *self, uint32_t wait_ms)
{
    const char *from = self->endpoint;

    while (from != NULL) {
        const char *end = strchr(from, ',');
        char one[PS_ENDPOINT_MAX + 1];
        char why[PS_REACH_TEXT];

        (void)snprintf(one, sizeof one, "%.*s",
                       (int)(end == NULL ? strlen(from) : (size_t)(end - from)), from);
        if (ps_reach_why(one, wait_ms, why) == PS_REACH_LISTENS) {
            return true;
        }
        from = end == NULL ? NULL : end + 1;
    }
    return false;
}

psd_status_t ps_cli_connect(ps_cli_t *self, psd_error_t *err)
{
    if (self->client != NULL) {
        return PSD_OK;
    }
    return ps_cli_connect_by(self, NULL, self->timeout_ms, &self->client, err);
}

void ps_json_unref(json_t **value_p)
{
    json_decref(*value_p);
    *value_p = NULL;
}

void ps_json_strip(json_t *reply)
{
    static const char *const KEYS[] = {"v", "id", "op", "status", "session", "schema_version"};

    for (size_t i = 0; i < sizeof KEYS / sizeof KEYS[0]; i++) {
        (void)json_object_del(reply, KEYS[i]);
    }
}

static psd_status_t read_reply(ps_cli_t *self, const char *text, psd_status_t status,
                               json_t **ret_reply, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref)
    json_t *reply = text == NULL ? NULL : json_loads(text, 0, NULL);

    if (status != PSD_OK) {
        json_decref(self->details);
        self->details = json_incref(ps_json_at(reply, "error.details"));
        return status;
    }
    if (!json_is_object(reply)) {
        return psd_error_set(err, PSD_PROTO, "the node's answer is not JSON");
    }
    ps_json_strip(reply);
    *ret_reply = reply;
    reply = NULL;
    return PSD_OK;
}

psd_status_t ps_cli_ask(ps_cli_t *self, const json_t *request, json_t **ret_reply, psd_error_t *err)
{
    char *body = NULL;
    char *text = NULL;
    psd_status_t rc = ps_cli_connect(self, err);

    if (rc != PSD_OK) {
        return rc;
    }
    body = request == NULL ? NULL : json_dumps(request, JSON_COMPACT);
    if (body == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a request");
    }
    rc = psd_request(self->client, body, self->timeout_ms, &text, err);
    free(body);
    rc = read_reply(self, text, rc, ret_reply, err);
    psd_free(text);
    return rc;
}

psd_status_t ps_cli_request(ps_cli_t *self, const char *op, const char *key, const char *value,
                            json_t **ret_reply, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref)
    json_t *request =
        key == NULL ? json_pack("{s:s}", "op", op) : json_pack("{s:s,s:s}", "op", op, key, value);

    return ps_cli_ask(self, request, ret_reply, err);
}

json_t *ps_json_at(const json_t *object, const char *path)
{
    return object == NULL ? NULL : ps_cell_find(object, path);
}

const char *ps_json_text(const json_t *object, const char *path)
{
    const char *text = json_string_value(ps_json_at(object, path));

    return text == NULL ? "" : text;
}

uint64_t ps_json_u64(const json_t *object, const char *path)
{
    const json_t *value = ps_json_at(object, path);
    uint64_t number = 0;

    if (json_is_string(value)) {
        return ps_text_u64(json_string_value(value), &number) ? number : 0;
    }
    if (json_is_real(value)) {
        return json_real_value(value) > 0 ? (uint64_t)json_real_value(value) : 0;
    }
    return json_integer_value(value) > 0 ? (uint64_t)json_integer_value(value) : 0;
}

const char *ps_cli_word(const ps_cli_t *self, size_t i)
{
    return self->args.words[i];
}

psd_status_t ps_cli_name(const ps_cli_t *self, size_t i, const char *what, const char **ret_name,
                         psd_error_t *err)
{
    const char *name = self->args.words[i];

    if (!ps_text_is_name(name)) {
        return psd_error_set(err, PSD_USAGE,
                             "%s is \"%s\"; allowed: 1 to 63 letters, digits, \"_\", \".\", \"-\", "
                             "not beginning with \".\" or \"-\"",
                             what, name);
    }
    *ret_name = name;
    return PSD_OK;
}

double ps_cli_now_s(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
