/* SPDX-License-Identifier: Apache-2.0 */
/* pscli auth accept: this machine's key is let in by a token. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/text.h"
#include "cli/cluster/auth_rule.h"
#include "cli/cluster/cluster.h"
#include "cli/launch/quote.h"
#include "cli/run/ask_by.h"
#include "transport/sockets/token_file.h"

#define NO_FILE "-" /* standard input */

static const ps_column_t ACCEPTED[] = {
    {"NAME", "name", PS_UNIT_NONE, false},         {"ROLES", "roles", PS_UNIT_NONE, false},
    {"KEY", "key", PS_UNIT_NONE, false},           {"FILE", "file", PS_UNIT_NONE, false},
    {"ENDPOINT", "endpoint", PS_UNIT_NONE, false}, {NULL, NULL, PS_UNIT_NONE, false}};

/* A token, and what comes of it. */
typedef struct coming {
    char endpoint[PS_ENDPOINT_MAX + 1]; /* of the psd that takes the token, with its key */
    ps_key_pair_t token;
    char name[PS_KEY_NAME_MAX + 1]; /* who is let in */
    char taken[PS_KEY_SIZE + 1];    /* the key that has come already; "": none */
    char path[PATH_MAX];            /* of the key's file */
    ps_key_pair_t pair;             /* … and what it has */
} coming_t;

static void coming_done(coming_t *self)
{
    ps_key_pair_done(&self->token);
    ps_key_pair_done(&self->pair);
}

static psd_status_t read_token(const ps_cli_t *cli, coming_t *self, psd_error_t *err)
{
    const char *path = cli->args.n_words > 0 ? ps_cli_word(cli, 0) : NO_FILE;

    if (ps_text_is_token(path)) {
        return psd_error_set(err, PSD_USAGE,
                             "FILE is a token; allowed: the path of a file with one, or nothing: "
                             "then the token comes on standard input. Make another token: all "
                             "users of a host see arguments");
    }
    if (strcmp(path, NO_FILE) == 0 && isatty(STDIN_FILENO) == 1) {
        ps_say(&cli->out, "paste the line that \"pscli auth invite\" printed:");
    }
    return ps_token_file_read(path, self->endpoint, &self->token, err);
}

/* Whom the token lets in. The name comes from the network, and becomes one of a file. */
static psd_status_t ask_name(const ps_cli_t *cli, coming_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *request = json_pack("{s:s}", "op", "auth_accept");
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc = ps_cli_ask_by(cli, self->endpoint, &self->token, request, &reply, err);
    const char *name = ps_json_text(reply, "name");

    if (rc != PSD_OK) {
        return rc;
    }
    if (!ps_text_is_name(name)) {
        return psd_error_set(err, PSD_PROTO, "%s: the answer has no name", self->endpoint);
    }
    (void)snprintf(self->name, sizeof self->name, "%s", name);
    (void)snprintf(self->taken, sizeof self->taken, "%s", ps_json_text(reply, "taken"));
    return PSD_OK;
}

/* The file that is there: a command that did not come to its end has made it, or "keygen". */
static psd_status_t read_key(coming_t *self, psd_error_t *err)
{
    psd_status_t rc = ps_key_file_read(self->path, &self->pair, err);

    return rc == PSD_OK && strcmp(self->pair.name, self->name) != 0
               ? psd_error_set(err, PSD_USAGE,
                               "%s has a key of %s, and the token lets in %s; --file says where "
                               "another key goes",
                               self->path, self->pair.name, self->name)
               : rc;
}

static psd_status_t make_key(coming_t *self, psd_error_t *err)
{
    psd_status_t rc = ps_key_pair_make(self->name, &self->pair, err);

    return rc == PSD_OK ? ps_key_file_write(self->path, &self->pair, err) : rc;
}

/* The token was used by this key before, and the answer did not arrive; or by somebody else. */
static psd_status_t check_taken(const coming_t *self, psd_error_t *err)
{
    return self->taken[0] == '\0' || strcmp(self->taken, self->pair.public_key) == 0
               ? PSD_OK
               : psd_error_set(err, PSD_DENIED,
                               "the token for principal \"%s\" was used, with the key %s; an admin "
                               "makes another one: pscli auth invite %s. If you do not know that "
                               "key, let the admin run \"pscli auth deny %s\" first",
                               self->name, self->taken, self->name, self->name);
}

static psd_status_t settle_key(const ps_cli_t *cli, coming_t *self, psd_error_t *err)
{
    const char *file = ps_args_text(&cli->args, "file");
    psd_status_t rc = PSD_OK;

    if (file == NULL) {
        rc = ps_auth_key_path(self->name, self->path, err);
    } else if (strlen(file) >= sizeof self->path) {
        rc = psd_error_set(err, PSD_USAGE, "the path of the key is too long");
    } else {
        (void)snprintf(self->path, sizeof self->path, "%s", file);
    }
    if (rc == PSD_OK && access(self->path, F_OK) == 0) {
        rc = read_key(self, err);
    } else if (rc == PSD_OK && self->taken[0] == '\0') {
        rc = make_key(self, err);
    }
    return rc == PSD_OK ? check_taken(self, err) : rc;
}

static psd_status_t show_key(const ps_cli_t *cli, const coming_t *self, json_t **ret_reply,
                             psd_error_t *err)
{
    PSD_AUTO(ps_json_unref)
    json_t *request = json_pack("{s:s,s:s,s:s}", "op", "auth_accept", "name", self->name, "key",
                                self->pair.public_key);
    psd_status_t rc = ps_cli_ask_by(cli, self->endpoint, &self->token, request, ret_reply, err);

    if (rc == PSD_OK) {
        return PSD_OK;
    }
    return rc == PSD_DENIED || rc == PSD_INVALID || rc == PSD_LIMIT
               ? psd_error_wrap(err, rc, "the key is in %s, and is not let in", self->path)
               : psd_error_wrap(err, rc,
                                "the key is in %s, and may be let in: run this again, or \"pscli "
                                "auth whoami\" with it",
                                self->path);
}

/* The line for a shell; what else there is to say goes to stderr. */
static psd_status_t print(ps_cli_t *cli, const coming_t *self, json_t *reply, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t line = {0};
    char path[PATH_MAX];
    char reach[PS_REACH_SIZE];

    if (realpath(self->path, path) == NULL) {
        return psd_error_set(err, PSD_IO, "key file %s: %s", self->path, strerror(errno));
    }
    if (!ps_buffer_print(&line, "export PSD_ENDPOINT=") || !ps_quote(&line, self->endpoint) ||
        !ps_buffer_print(&line, " PSD_KEY_FILE=") || !ps_quote(&line, path) ||
        !ps_buffer_append(&line, "", 1)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the answer");
    }
    ps_auth_print_reach(reply, reach);
    (void)json_object_set_new(reply, "file", json_string(path));
    (void)json_object_set_new(reply, "endpoint", json_string(self->endpoint));
    ps_say(&cli->out, "%s is let in: %s%s", self->name, ps_json_text(reply, "roles"), reach);
    ps_out_answer(&cli->out, reply, ACCEPTED, "%s", (const char *)line.data);
    return PSD_OK;
}

psd_status_t ps_cmd_auth_accept(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(coming_done) coming_t self = {.endpoint = ""};
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc = read_token(cli, &self, err);

    if (rc == PSD_OK) {
        rc = ask_name(cli, &self, err);
    }
    if (rc == PSD_OK) {
        rc = settle_key(cli, &self, err);
    }
    if (rc == PSD_OK) {
        rc = show_key(cli, &self, &reply, err);
    }
    return rc == PSD_OK ? print(cli, &self, reply, err) : rc;
}
