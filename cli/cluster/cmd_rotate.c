/* SPDX-License-Identifier: Apache-2.0 */
/* pscli auth rotate: another key for a principal, while the one that it has still counts. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cluster/cluster.h"
#include "transport/environment/environment.h"
#include "transport/keys/key_file.h"

#define SUFFIX_MAX 5 /* of ".new", ".old" and ".kept" */

static const ps_column_t ROTATED[] = {{"NAME", "name", PS_UNIT_NONE, false},
                                      {"KEY", "key", PS_UNIT_NONE, false},
                                      {"OLD KEY", "old_key", PS_UNIT_NONE, false},
                                      {"UNTIL", "old_until_unix_ms", PS_UNIT_UNIX_MS, false},
                                      {"FILE", "file", PS_UNIT_NONE, false},
                                      {NULL, NULL, PS_UNIT_NONE, false}};

/* A key of this user, and its files. */
typedef struct own_key {
    char path[PATH_MAX];
    char next_path[PATH_MAX + SUFFIX_MAX]; /* the new key, until it is known to work */
    char kept_path[PATH_MAX + SUFFIX_MAX]; /* the old key, until psd has agreed … */
    char old_path[PATH_MAX + SUFFIX_MAX];  /* … and afterwards */
    ps_key_pair_t pair;
    ps_key_pair_t next;
    bool next_works; /* psd takes it */
} own_key_t;

static void own_key_done(own_key_t *self)
{
    ps_key_pair_done(&self->pair);
    ps_key_pair_done(&self->next);
}

/* {"op":"auth_rotate","key":…,"grace_ms":…} and, when it is another's, "name". */
static psd_status_t ask_rotate(ps_cli_t *cli, const char *name, const char *key, json_t **ret_reply,
                               psd_error_t *err)
{
    PSD_AUTO(ps_json_unref)
    json_t *request = json_pack("{s:s,s:I}", "op", "auth_rotate", "grace_ms",
                                (json_int_t)ps_args_ms(&cli->args, "grace"));

    if (json_object_set_new(request, "key", json_string(key)) != 0) {
        return psd_error_set(err, PSD_USAGE, "the text for \"key\" is not UTF-8");
    }
    if (name != NULL) {
        (void)json_object_set_new(request, "name", json_string(name));
    }
    return ps_cli_ask(cli, request, ret_reply, err);
}

/* What became of the old key. */
static const char *end_of(const json_t *reply)
{
    return json_is_string(ps_json_at(reply, "old_key")) ? "counts beside it until the grace is over"
                                                        : "does not count any more";
}

/* ---- by an admin ---- */

static psd_status_t rotate_other(ps_cli_t *cli, const char *name, const char *key, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc = ask_rotate(cli, name, key, &reply, err);

    if (rc == PSD_OK) {
        ps_out_answer(&cli->out, reply, ROTATED, "%s has the new key; the old key %s", name,
                      end_of(reply));
    }
    return rc;
}

/* ---- by its owner ---- */

static psd_status_t find_files(own_key_t *self, psd_error_t *err)
{
    ps_environment_t said = {.text = NULL};
    psd_status_t rc = ps_environment_read("PSD_KEY_FILE", &said, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (said.text == NULL || said.text[0] == '\0') {
        return psd_error_set(err, PSD_USAGE,
                             "PSD_KEY_FILE is not set: it names the file of your key. An admin "
                             "gives somebody else another key by NAME and --key KEY");
    }
    if (realpath(said.text, self->path) == NULL) { /* what a link leads to is replaced, not it */
        return psd_error_set(err, PSD_IO, "key file %.300s: %s", said.text, strerror(errno));
    }
    (void)snprintf(self->next_path, sizeof self->next_path, "%s.new", self->path);
    (void)snprintf(self->kept_path, sizeof self->kept_path, "%s.kept", self->path);
    (void)snprintf(self->old_path, sizeof self->old_path, "%s.old", self->path);
    return ps_key_file_read(self->path, &self->pair, err);
}

/* The connection that asks is that of the key, and of nobody else. */
static psd_status_t check_caller(ps_cli_t *cli, const char *name, const ps_key_pair_t *pair,
                                 const char *path, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc = ps_cli_request(cli, "auth_whoami", NULL, NULL, &reply, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (strcmp(ps_json_text(reply, "key"), pair->public_key) != 0) {
        return psd_error_set(err, PSD_USAGE,
                             "psd knows this connection as %s, not by the key in %s: use its "
                             "endpoint over tcp that names its key, tcp://HOST:PORT#KEY",
                             ps_json_text(reply, "who"), path);
    }
    if (name != NULL && strcmp(ps_json_text(reply, "principal"), name) != 0) {
        return psd_error_set(err, PSD_USAGE,
                             "the key in %s is not that of %s; an admin gives somebody else "
                             "another key by NAME and --key KEY",
                             path, name);
    }
    return PSD_OK;
}

/* From now on pscli is known by the key in that file. */
static psd_status_t use_file(ps_cli_t *cli, const char *path, psd_error_t *err)
{
    psd_close(&cli->client);
    return setenv("PSD_KEY_FILE", path, 1) == 0
               ? PSD_OK
               : psd_error_set(err, PSD_NOMEM, "no memory for PSD_KEY_FILE");
}

/* Connects with the new key: it is allowed. *ret_reply: as whom psd knows it. */
static psd_status_t try_next(ps_cli_t *cli, const own_key_t *key, json_t **ret_reply,
                             psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc = use_file(cli, key->next_path, err);

    if (rc == PSD_OK) {
        rc = ps_cli_request(cli, "auth_whoami", NULL, NULL, &reply, err);
    }
    if (rc == PSD_OK && (strcmp(ps_json_text(reply, "key"), key->next.public_key) != 0 ||
                         strcmp(ps_json_text(reply, "state"), "allowed") != 0)) {
        rc = psd_error_set(err, PSD_DENIED, "psd knows it as %s", ps_json_text(reply, "who"));
    }
    if (rc == PSD_OK) {
        *ret_reply = json_incref(reply);
    }
    return rc;
}

/* The principal of the old key; "": psd does not know that any more. */
static psd_status_t find_owner(ps_cli_t *cli, const own_key_t *key,
                               char ret_name[PS_KEY_NAME_MAX + 1], psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc = ps_cli_request(cli, "auth_whoami", NULL, NULL, &reply, err);
    bool is_known = rc == PSD_OK && strcmp(ps_json_text(reply, "key"), key->pair.public_key) == 0 &&
                    ps_json_text(reply, "principal")[0] != '\0';

    (void)snprintf(ret_name, PS_KEY_NAME_MAX + 1, "%s",
                   is_known ? ps_json_text(reply, "principal") : "");
    if (rc == PSD_DENIED) {
        psd_error_clear(err);
        rc = PSD_OK;
    }
    return rc;
}

/* Connects with both keys, that of next_path last. */
static psd_status_t try_both(ps_cli_t *cli, own_key_t *key, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    char owner[PS_KEY_NAME_MAX + 1] = "";
    const char *other = key->next.name;
    psd_status_t rc = find_owner(cli, key, owner, err);

    if (rc != PSD_OK) {
        return rc;
    }
    rc = try_next(cli, key, &reply, err);
    if (rc == PSD_DENIED) { /* it is not known yet */
        psd_error_clear(err);
        return use_file(cli, key->path, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (owner[0] != '\0') {
        other = ps_json_text(reply, "principal");
    } else { /* only the files say it */
        (void)snprintf(owner, sizeof owner, "%s", key->pair.name);
    }
    if (strcmp(other, owner) != 0) {
        return psd_error_set(err, PSD_USAGE,
                             "%s has a key of %s, but that in %s is of %s: give it another name",
                             key->next_path, other, key->path, owner);
    }
    key->next_works = true;
    return PSD_OK;
}

/* There is a new key already, of a rotation that did not come to its end: this one goes on with
 * it. */
static psd_status_t look_for_next(ps_cli_t *cli, own_key_t *key, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (access(key->next_path, F_OK) != 0) {
        return PSD_OK;
    }
    rc = ps_key_file_read(key->next_path, &key->next, err);
    if (rc == PSD_OK && strcmp(key->next.public_key, key->pair.public_key) == 0) {
        rc = psd_error_set(err, PSD_USAGE, "%s has the same key as %s: remove %s", key->next_path,
                           key->path, key->next_path);
    }
    return rc == PSD_OK ? try_both(cli, key, err) : rc;
}

static psd_status_t make_next(own_key_t *key, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (key->next.public_key[0] != '\0') {
        return PSD_OK;
    }
    rc = ps_key_pair_make(key->pair.name, &key->next, err);
    return rc == PSD_OK ? ps_key_file_write(key->next_path, &key->next, err) : rc;
}

/* Whether the old key can be kept. What a disk may refuse comes before psd is asked. */
static psd_status_t keep_old(const own_key_t *key, psd_error_t *err)
{
    struct stat is;

    return lstat(key->old_path, &is) == 0 && S_ISDIR(is.st_mode)
               ? psd_error_set(err, PSD_IO, "cannot keep %s as %s: %s", key->path, key->old_path,
                               strerror(EISDIR))
               : ps_key_file_keep(key->path, key->kept_path, err);
}

/* psd has agreed: FILE.old, which has been an older key until now, is this one. */
static psd_status_t put_old_in_place(const own_key_t *key, psd_error_t *err)
{
    psd_status_t rc = ps_key_file_swap(key->old_path, key->kept_path, err);

    (void)unlink(key->kept_path); /* two names of one file: the rename does nothing */
    return rc;
}

/* psd takes the new key. */
static psd_status_t let_in(ps_cli_t *cli, const own_key_t *key, json_t **ret_reply,
                           psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *seen = NULL;
    psd_status_t rc = keep_old(key, err);

    if (rc == PSD_OK) { /* a second time it changes nothing */
        rc = ask_rotate(cli, NULL, key->next.public_key, ret_reply, err);
    }
    if (rc == PSD_OK && !key->next_works) {
        rc = try_next(cli, key, &seen, err);
    }
    if (rc == PSD_OK) {
        rc = put_old_in_place(key, err);
    } else {
        (void)unlink(key->kept_path);
    }
    return rc == PSD_OK ? PSD_OK
                        : psd_error_wrap(err, rc,
                                         "the new key is in %s, and %s is as it was; the same "
                                         "command goes on from there",
                                         key->next_path, key->path);
}

static psd_status_t put_in_place(const own_key_t *key, psd_error_t *err)
{
    psd_status_t rc = ps_key_file_swap(key->path, key->next_path, err);

    if (rc != PSD_OK && access(key->next_path, F_OK) == 0) {
        rc = psd_error_wrap(err, rc,
                            "psd takes the new key, which is in %s: keep that file, and run the "
                            "same command again",
                            key->next_path);
    }
    return rc;
}

static psd_status_t rotate_own(ps_cli_t *cli, const char *name, psd_error_t *err)
{
    PSD_AUTO(own_key_done) own_key_t key = {.path = ""};
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc = find_files(&key, err);

    if (rc == PSD_OK) {
        rc = look_for_next(cli, &key, err);
    }
    if (rc == PSD_OK) {
        rc = check_caller(cli, name, key.next_works ? &key.next : &key.pair, key.path, err);
    }
    if (rc == PSD_OK) {
        rc = make_next(&key, err);
    }
    if (rc == PSD_OK) {
        rc = let_in(cli, &key, &reply, err);
    }
    if (rc == PSD_OK) {
        rc = put_in_place(&key, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    (void)json_object_set_new(reply, "file", json_string(key.path));
    ps_out_answer(&cli->out, reply, ROTATED, "%s has a new key in %s; the old key, in %s, %s",
                  ps_json_text(reply, "name"), key.path, key.old_path, end_of(reply));
    return PSD_OK;
}

psd_status_t ps_cmd_auth_rotate(ps_cli_t *cli, psd_error_t *err)
{
    const char *key = ps_args_text(&cli->args, "key");
    const char *name = NULL;

    if (cli->args.n_words > 0) {
        psd_status_t rc = ps_cli_name(cli, 0, "principal", &name, err);

        if (rc != PSD_OK) {
            return rc;
        }
    }
    if (key != NULL && name == NULL) {
        return psd_error_set(err, PSD_USAGE,
                             "NAME is missing: --key is the public key of the one who gets it");
    }
    return key != NULL ? rotate_other(cli, name, key, err) : rotate_own(cli, name, err);
}
