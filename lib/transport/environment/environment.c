/* SPDX-License-Identifier: Apache-2.0 */
/* Puts together what the variables of a setting say. */
#include "transport/environment/environment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/env.h"
#include "base/text.h"
#include "transport/environment/alias_value.h"

#define DEFAULT_FAMILIES "dmlc,overlay"

static const ps_alias_t aliases[] = {
#define ALIAS(family, name, setting, how, detail, help) \
    {family, name, setting, PS_ALIAS_##how, detail, help},
#include "transport/environment/aliases.def"
};

/* What has been said of a setting, and by which row. */
typedef struct said {
    char text[PS_ALIAS_PARTS][PS_ENVIRONMENT_TEXT];
    const ps_alias_t *by[PS_ALIAS_PARTS];
} said_t;

static const char *text_of(const char *name)
{
    const char *text = getenv(name);

    return text == NULL || text[0] == '\0' ? NULL : text;
}

const ps_alias_t *ps_alias_at(size_t i)
{
    return i < sizeof aliases / sizeof *aliases ? &aliases[i] : NULL;
}

bool ps_alias_is_read(const ps_alias_t *self)
{
    const char *families = text_of("PSD_ALIASES");
    size_t length = strlen(self->family);

    families = families == NULL ? DEFAULT_FAMILIES : families;
    for (const char *at = families; *at != '\0'; at += strspn(at, ", ")) {
        size_t word = strcspn(at, ", ");

        if (word == length && strncmp(at, self->family, length) == 0) {
            return true;
        }
        at += word;
    }
    return false;
}

const char *ps_alias_text(const ps_alias_t *self)
{
    if (!ps_alias_is_read(self) ||
        (self->how == PS_ALIAS_PORT && self->detail[0] != '\0' && text_of(self->detail) == NULL)) {
        return NULL;
    }
    return text_of(self->name);
}

static psd_status_t differ(const ps_alias_t *one, const char *text, const ps_alias_t *other,
                           const char *other_text, psd_error_t *err)
{
    return psd_error_set(err, PSD_INVALID,
                         "%s and %s differ: one makes %s \"%.80s\", the other \"%.80s\"; unset one",
                         one->name, other->name, one->setting, text, other_text);
}

static psd_status_t take(said_t *self, const ps_alias_t *alias, const char *text, psd_error_t *err)
{
    ps_alias_part_t part = ps_alias_part(alias);
    const ps_env_setting_t *setting = ps_env_setting(alias->setting);
    char value[PS_ENVIRONMENT_TEXT];
    psd_status_t rc = ps_alias_value(alias, text, value, err);

    if (rc != PSD_OK || value[0] == '\0') {
        return rc;
    }
    if (part == PS_ALIAS_ALL && setting != NULL && strcmp(value, text) == 0) {
        rc = ps_env_check(setting, value, alias->name, err);
    }
    if (rc != PSD_OK || (alias->how == PS_ALIAS_LAST && self->by[part] != NULL)) {
        return rc;
    }
    if (self->by[part] == NULL) {
        self->by[part] = alias;
        (void)snprintf(self->text[part], sizeof self->text[part], "%s", value);
        return PSD_OK;
    }
    return strcmp(self->text[part], value) == 0
               ? PSD_OK
               : differ(self->by[part], self->text[part], alias, value, err);
}

/* tcp://HOST:PORT of its parts. A port alone listens at loopback, and a host alone at any
 * port; an address to connect to needs both. */
static psd_status_t join_parts(const said_t *self, const char *setting, ps_environment_t *ret,
                               psd_error_t *err)
{
    const ps_alias_t *host = self->by[PS_ALIAS_ITS_HOST];
    const ps_alias_t *port = self->by[PS_ALIAS_ITS_PORT];
    int n = 0;

    if (strcmp(setting, "PSD_ENDPOINT") == 0 && (host == NULL || port == NULL)) {
        return psd_error_set(err, PSD_INVALID, "%s is set, and %s is not; set both",
                             host == NULL ? port->name : host->name,
                             host == NULL ? "DMLC_PS_ROOT_URI" : "DMLC_PS_ROOT_PORT");
    }
    n = snprintf(ret->made, sizeof ret->made, "tcp://%s:%s",
                 host == NULL ? "127.0.0.1" : self->text[PS_ALIAS_ITS_HOST],
                 port == NULL ? "0" : self->text[PS_ALIAS_ITS_PORT]);
    if (n >= (int)sizeof ret->made) {
        return psd_error_set(err, PSD_INVALID, "%s is too long",
                             host == NULL ? port->name : host->name);
    }
    (void)snprintf(ret->origin, sizeof ret->origin, "%s%s%s", host == NULL ? "" : host->name,
                   host == NULL || port == NULL ? "" : ", ", port == NULL ? "" : port->name);
    ret->text = ret->made;
    return PSD_OK;
}

static psd_status_t put_together(const said_t *self, const char *setting, ps_environment_t *ret,
                                 psd_error_t *err)
{
    const ps_alias_t *all = self->by[PS_ALIAS_ALL];
    const ps_alias_t *part = self->by[PS_ALIAS_ITS_HOST] != NULL ? self->by[PS_ALIAS_ITS_HOST]
                                                                 : self->by[PS_ALIAS_ITS_PORT];
    psd_status_t rc = PSD_OK;

    if (part != NULL) {
        rc = join_parts(self, setting, ret, err);
    }
    if (rc != PSD_OK || all == NULL) {
        return rc;
    }
    if (part != NULL && strcmp(ret->made, self->text[PS_ALIAS_ALL]) != 0) {
        return differ(all, self->text[PS_ALIAS_ALL], part, ret->made, err);
    }
    (void)snprintf(ret->made, sizeof ret->made, "%s", self->text[PS_ALIAS_ALL]);
    (void)snprintf(ret->origin, sizeof ret->origin, "%s", all->name);
    ret->text = ret->made;
    return PSD_OK;
}

/* A server in every process has no other process's deltas. */
static psd_status_t check_alone(const ps_alias_t *alias, psd_error_t *err)
{
    int64_t workers = 1;
    psd_status_t rc = ps_environment_number("PSD_WORKERS", &workers, err);

    if (rc == PSD_OK && workers > 1) {
        rc = psd_error_set(err, PSD_INVALID,
                           "%s is 0, a server in every process: that is for one worker, and there "
                           "are %" PRId64 "; start servers (pscli run --servers M) and name one "
                           "with PSD_ENDPOINT",
                           alias->name, workers);
    }
    return rc;
}

psd_status_t ps_environment_read(const char *setting, ps_environment_t *ret, psd_error_t *err)
{
    said_t said = {.by = {NULL}};
    psd_status_t rc = PSD_OK;

    ret->text = text_of(setting);
    ret->origin[0] = '\0';
    if (ret->text != NULL) {
        (void)snprintf(ret->origin, sizeof ret->origin, "%s", setting);
        return PSD_OK;
    }
    for (size_t i = 0; rc == PSD_OK && i < sizeof aliases / sizeof *aliases; i++) {
        const char *text =
            strcmp(aliases[i].setting, setting) == 0 ? ps_alias_text(&aliases[i]) : NULL;

        if (text != NULL) {
            rc = take(&said, &aliases[i], text, err);
        }
    }
    if (rc == PSD_OK) {
        rc = put_together(&said, setting, ret, err);
    }
    if (rc == PSD_OK && said.by[PS_ALIAS_ALL] != NULL &&
        said.by[PS_ALIAS_ALL]->how == PS_ALIAS_ZERO) {
        rc = check_alone(said.by[PS_ALIAS_ALL], err);
    }
    return rc;
}

psd_status_t ps_environment_number(const char *setting, int64_t *number, psd_error_t *err)
{
    ps_environment_t said;
    psd_status_t rc = ps_environment_read(setting, &said, err);

    if (rc == PSD_OK && said.text != NULL) {
        rc = ps_env_check(ps_env_setting(setting), said.text, said.origin, err);
        if (rc == PSD_OK && !ps_text_i64(said.text, number)) {
            rc = psd_error_set(err, PSD_INVALID, "%s is no number", said.origin);
        }
    }
    return rc;
}

psd_status_t ps_environment_check(psd_error_t *err)
{
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
        const char *text = aliases[i].how == PS_ALIAS_REFUSED ? ps_alias_text(&aliases[i]) : NULL;

        if (text != NULL && strcmp(text, "0") != 0 && strcmp(text, "false") != 0) {
            return psd_error_set(err, PSD_INVALID, "%s is set, and psd refuses it: %s; unset it",
                                 aliases[i].name, aliases[i].help);
        }
    }
    return PSD_OK;
}

/* Up to the end or `size` bytes. Returns 0, or errno. */
static int read_all(int fd, char *ret_text, size_t size, size_t *ret_n)
{
    ssize_t n = 1;

    while (n != 0 && *ret_n < size) {
        n = read(fd, ret_text + *ret_n, size - *ret_n);
        if (n < 0 && errno != EINTR) {
            return errno;
        }
        *ret_n += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

psd_status_t ps_environment_file(const char *path, char *ret_text, size_t size, size_t *ret_length,
                                 psd_error_t *err)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY); /* a FIFO has no end */
    struct stat facts;
    int failure = fd < 0 || fstat(fd, &facts) != 0 ? errno : 0;
    size_t n = 0;

    if (failure == 0 && !S_ISREG(facts.st_mode)) {
        (void)close(fd);
        return psd_error_set(err, PSD_INVALID, "%s is no regular file", path);
    }
    failure = failure == 0 ? read_all(fd, ret_text, size, &n) : failure;
    if (fd >= 0) {
        (void)close(fd);
    }
    if (failure != 0) {
        return psd_error_set(err, PSD_IO, "%s cannot be read: %s", path, strerror(failure));
    }
    if (n == size) {
        return psd_error_set(err, PSD_INVALID, "%s is too large; less than %zu bytes are allowed",
                             path, size);
    }
    *ret_length = n;
    return PSD_OK;
}

bool ps_environment_state_dir(char *ret_dir, size_t size)
{
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    int n = 0;

    if (state != NULL && state[0] == '/') {
        n = snprintf(ret_dir, size, "%s/psd", state);
    } else if (home != NULL && home[0] == '/') {
        n = snprintf(ret_dir, size, "%s/.local/state/psd", home);
    }
    return n > 0 && (size_t)n < size;
}
