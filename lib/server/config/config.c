/* SPDX-License-Identifier: Apache-2.0 */
/* Values of the settings: defaults, and one set function for every source. */
#include "server/config/config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "server/config/endpoint.h"
#include "transport/environment/environment.h"
#include "transport/lane/door.h"

#define SHARDS_DEFAULT_MAX 4
#define SHOWN_MAX 200 /* bytes of a wrong value that an error repeats */

static void *value_of(ps_config_t *self, const ps_key_t *key)
{
    return (char *)self + key->offset;
}

static void list_done(ps_text_list_t *list)
{
    for (size_t i = 0; i < list->n_items; i++) {
        ps_free(list->items[i]);
    }
    ps_free(list->items);
    *list = (ps_text_list_t){0};
}

/* ---- one reader for each kind; PSD_CONFIG: the text is not allowed ---- */

static psd_status_t set_text(char **value, const char *text)
{
    char *copy = ps_strdup(text);

    if (copy == NULL) {
        return PSD_NOMEM;
    }
    ps_free(*value);
    *value = copy;
    return PSD_OK;
}

static bool is_host(const char *text, const ps_key_t *key)
{
    return strlen(text) <= key->max &&
           text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvw"
                             "xyz0123456789.-:[]_")] == '\0';
}

static bool is_path(const char *text, const ps_key_t *key)
{
    size_t length = strlen(text);

    for (const char *at = text; *at != '\0'; at++) {
        if ((unsigned char)*at < ' ' || *at == 0x7f) {
            return false;
        }
    }
    return length >= key->min && length <= key->max;
}

/* Where an endpoint is wanted there is a token (curve.h), which has a secret. */
static bool is_token(const ps_key_t *key, const char *text)
{
    const char *mark = key == ps_config_key(PS_KEY_cluster_join) ? strchr(text, '#') : NULL;

    while (mark != NULL && mark[strcspn(mark + 1, "#,") + 1] == ',') { /* the next item's */
        mark = strchr(mark + 1, '#');
    }
    return mark != NULL && strchr(mark + 1, '#') != NULL;
}

/* An endpoint; one to join at may name the key of what answers there (curve.h). */
static bool is_endpoint(const ps_key_t *key, const char *item)
{
    char address[PS_ENDPOINT_MAX + 1];
    const char *mark = key == ps_config_key(PS_KEY_cluster_join) ? strchr(item, '#') : NULL;

    if (is_token(key, item)) {
        return false;
    }
    if (mark == NULL || strlen(item) > PS_ENDPOINT_MAX) {
        return ps_endpoint_is_valid(item);
    }
    memcpy(address, item, (size_t)(mark - item));
    address[mark - item] = '\0';
    return ps_endpoint_is_valid(address);
}

/* Adds the item text[0 .. length) to the list. */
static psd_status_t add_item(ps_text_list_t *list, const ps_key_t *key, const char *text,
                             size_t length)
{
    char *item = ps_alloc(length + 1, 1);

    if (item == NULL) {
        return PSD_NOMEM;
    }
    memcpy(item, text, length);
    list->items[list->n_items++] = item;
    return is_endpoint(key, item) ? PSD_OK : PSD_CONFIG;
}

static psd_status_t set_list(ps_text_list_t *value, const ps_key_t *key, const char *text)
{
    ps_text_list_t list = {0};
    psd_status_t rc = PSD_OK;

    list.items = ps_alloc(key->max, sizeof *list.items);
    if (list.items == NULL) {
        return PSD_NOMEM;
    }
    for (const char *at = text; rc == PSD_OK && (key->min > 0 || text[0] != '\0'); at++) {
        size_t length = strcspn(at, ",");

        rc = list.n_items == key->max ? PSD_CONFIG : add_item(&list, key, at, length);
        at += length;
        if (*at == '\0') {
            break;
        }
    }
    if (rc != PSD_OK) {
        list_done(&list);
        return rc;
    }
    list_done(value);
    *value = list;
    return PSD_OK;
}

static psd_status_t set_number(uint64_t *value, const ps_key_t *key, const char *text)
{
    uint64_t number = 0;
    bool read =
        key->kind == PS_KEY_KIND_SIZE ? ps_text_size(text, &number) : ps_text_u64(text, &number);

    if (!read || number < key->min || number > key->max) {
        return PSD_CONFIG;
    }
    *value = number;
    return PSD_OK;
}

static psd_status_t set_ports(ps_ports_t *value, const char *text)
{
    const char *dash = strchr(text, '-');
    char first[8] = "";
    uint64_t from = 0;
    uint64_t to = 0;

    if (text[0] == '\0') {
        *value = (ps_ports_t){0};
        return PSD_OK;
    }
    if (dash == NULL || (size_t)(dash - text) >= sizeof first) {
        return PSD_CONFIG;
    }
    memcpy(first, text, (size_t)(dash - text));
    if (!ps_text_u64(first, &from) || !ps_text_u64(dash + 1, &to) || from < 1 || to < from ||
        to > UINT16_MAX) {
        return PSD_CONFIG;
    }
    *value = (ps_ports_t){.first = (uint16_t)from, .last = (uint16_t)to};
    return PSD_OK;
}

static const struct {
    const char *name;
    ps_log_level_t level;
} LEVELS[] = {
    {"error", PS_LOG_ERROR}, {"warn", PS_LOG_WARN}, {"info", PS_LOG_INFO}, {"debug", PS_LOG_DEBUG}};

static psd_status_t set_level(int *value, const char *text)
{
    for (size_t i = 0; i < sizeof LEVELS / sizeof LEVELS[0]; i++) {
        if (strcmp(text, LEVELS[i].name) == 0) {
            *value = (int)LEVELS[i].level;
            return PSD_OK;
        }
    }
    return PSD_CONFIG;
}

static const struct {
    const char *name;
    ps_door_peers_t peers;
} PEERS[] = {{"owner", PS_PEERS_OWNER}, {"group", PS_PEERS_GROUP}, {"any", PS_PEERS_ANY}};

static psd_status_t set_peers(int *value, const char *text)
{
    for (size_t i = 0; i < sizeof PEERS / sizeof PEERS[0]; i++) {
        if (strcmp(text, PEERS[i].name) == 0) {
            *value = (int)PEERS[i].peers;
            return PSD_OK;
        }
    }
    return PSD_CONFIG;
}

static psd_status_t set_guard(int *value, const char *text)
{
    bool encrypts = strcmp(text, "encrypt") == 0;

    if (!encrypts && strcmp(text, "plain") != 0) {
        return PSD_CONFIG;
    }
    *value = encrypts ? PS_SECURITY_ENCRYPT : PS_SECURITY_PLAIN;
    return PSD_OK;
}

static psd_status_t set_bool(bool *value, const char *text)
{
    bool is_true = strcmp(text, "true") == 0;

    if (!is_true && strcmp(text, "false") != 0) {
        return PSD_CONFIG;
    }
    *value = is_true;
    return PSD_OK;
}

static psd_status_t set_value(void *value, const ps_key_t *key, const char *text)
{
    switch (key->kind) {
    case PS_KEY_KIND_PATH:
    case PS_KEY_KIND_DIR:
        return is_path(text, key) ? set_text(value, text) : PSD_CONFIG;
    case PS_KEY_KIND_NAME:
        return ps_text_is_name(text) ? set_text(value, text) : PSD_CONFIG;
    case PS_KEY_KIND_HOST:
        return is_host(text, key) ? set_text(value, text) : PSD_CONFIG;
    case PS_KEY_KIND_URLS:
        return set_list(value, key, text);
    case PS_KEY_KIND_PORTS:
        return set_ports(value, text);
    case PS_KEY_KIND_UINT:
    case PS_KEY_KIND_SIZE:
        return set_number(value, key, text);
    case PS_KEY_KIND_LEVEL:
        return set_level(value, text);
    case PS_KEY_KIND_PEERS:
        return set_peers(value, text);
    case PS_KEY_KIND_GUARD:
        return set_guard(value, text);
    case PS_KEY_KIND_BOOL:
        return set_bool(value, text);
    default:
        return PSD_CONFIG;
    }
}

/* ---- errors ---- */

const char *ps_origin_print(const ps_origin_t *self, const ps_key_t *key, char *ret, size_t size)
{
    char env[PS_KEY_ENV_SIZE];

    switch (self->source) {
    case PS_SOURCE_FILE:
        if (self->line > 0) {
            (void)snprintf(ret, size, "%s:%u", self->file, self->line);
        } else {
            (void)snprintf(ret, size, "%s", self->file);
        }
        break;
    case PS_SOURCE_ENV:
        (void)snprintf(ret, size, "%s", ps_key_env(key, env));
        break;
    case PS_SOURCE_FLAG:
        (void)snprintf(ret, size, "%s", self->flag);
        break;
    case PS_SOURCE_DEFAULT:
    default:
        (void)snprintf(ret, size, "default");
        break;
    }
    return ret;
}

static psd_status_t refuse(const ps_key_t *key, const char *text, const ps_origin_t *origin,
                           psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t allowed = {0};
    char place[512];
    char shown[SHOWN_MAX];

    if (is_token(key, text)) { /* it is not shown */
        return psd_error_set(err, PSD_CONFIG,
                             "%s: %s is a token; allowed: --token-file FILE with it, and %s "
                             "without what follows the second \"#\". Make another token: all users "
                             "of a host see arguments",
                             ps_origin_print(origin, key, place, sizeof place), key->path,
                             key->path);
    }
    if (!ps_key_allowed(key, &allowed)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for an error");
    }
    return psd_error_set(err, PSD_CONFIG, "%s: %s is %s; allowed: %s",
                         ps_origin_print(origin, key, place, sizeof place), key->path,
                         ps_config_show(text, shown, sizeof shown), (const char *)allowed.data);
}

psd_status_t ps_config_set(ps_config_t *self, ps_key_id_t id, const char *text,
                           const ps_origin_t *origin, psd_error_t *err)
{
    const ps_key_t *key = ps_config_key(id);
    psd_status_t rc = set_value(value_of(self, key), key, text);

    if (rc == PSD_NOMEM) {
        return psd_error_set(err, rc, "no memory for %s", key->path);
    }
    if (rc != PSD_OK) {
        return refuse(key, text, origin, err);
    }
    self->origins[id] = *origin;
    return PSD_OK;
}

/* ---- defaults ---- */

/* systemd lists several, separated by colons; the first is ours. "": there is none. */
static void take_first_dir(const char *list, char *ret, size_t size)
{
    ret[0] = '\0';
    if (list != NULL && list[0] == '/') {
        (void)snprintf(ret, size, "%.*s", (int)strcspn(list, ":"), list);
    }
}

/* The default place of the state; "" when there is none. */
static void default_data_dir(char *ret, size_t size)
{
    const char *state = getenv("STATE_DIRECTORY");

    if (state != NULL && state[0] == '/') {
        take_first_dir(state, ret, size);
    } else if (!ps_environment_state_dir(ret, size)) {
        ret[0] = '\0';
    }
}

static void default_shards(char *ret, size_t size)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    if (n < 1) {
        n = 1;
    }
    if (n > SHARDS_DEFAULT_MAX) {
        n = SHARDS_DEFAULT_MAX;
    }
    (void)snprintf(ret, size, "%ld", n);
}

static void default_node_name(char *ret, size_t size)
{
    if (gethostname(ret, size - 1) != 0) {
        ret[0] = '\0';
    }
    ret[size - 1] = '\0';
    if (!ps_text_is_name(ret)) {
        (void)snprintf(ret, size, "node");
    }
}

static psd_status_t set_default(ps_config_t *self, const ps_key_t *key, psd_error_t *err)
{
    char text[4096];
    const ps_origin_t origin = {.source = PS_SOURCE_DEFAULT};

    if (key->id == PS_KEY_runtime_dir) {
        take_first_dir(getenv("RUNTIME_DIRECTORY"), text, sizeof text);
    } else if (key->id == PS_KEY_data_dir) {
        default_data_dir(text, sizeof text);
        if (text[0] == '\0') {
            return PSD_OK; /* ps_config_check asks for one */
        }
    } else if (key->id == PS_KEY_shards) {
        default_shards(text, sizeof text);
    } else if (key->id == PS_KEY_node_name) {
        default_node_name(text, PS_KEY_ENV_SIZE);
    } else {
        (void)snprintf(text, sizeof text, "%s", key->fallback);
    }
    return ps_config_set(self, key->id, text, &origin, err);
}

psd_status_t ps_config_init(ps_config_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    *self = (ps_config_t){0};
    for (int id = 0; id < PS_KEY_COUNT && rc == PSD_OK; id++) {
        rc = set_default(self, ps_config_key((ps_key_id_t)id), err);
    }
    if (rc != PSD_OK) {
        ps_config_done(self);
    }
    return rc;
}

void ps_config_done(ps_config_t *self)
{
    for (int id = 0; id < PS_KEY_COUNT; id++) {
        const ps_key_t *key = ps_config_key((ps_key_id_t)id);
        void *value = value_of(self, key);

        if (key->kind == PS_KEY_KIND_URLS) {
            list_done(value);
        } else if (key->kind == PS_KEY_KIND_PATH || key->kind == PS_KEY_KIND_DIR ||
                   key->kind == PS_KEY_KIND_NAME || key->kind == PS_KEY_KIND_HOST) {
            ps_free_at(value);
        }
    }
    ps_free(self->file);
    *self = (ps_config_t){0};
}

bool ps_config_reads_env(const char *name)
{
    for (int id = 0; id < PS_KEY_COUNT; id++) {
        char of_key[PS_KEY_ENV_SIZE];

        if (strcmp(ps_key_env(ps_config_key((ps_key_id_t)id), of_key), name) == 0) {
            return true;
        }
    }
    return false;
}

bool ps_config_near_env(const char *name)
{
    const char *list[2] = {NULL, NULL};

    for (int id = 0; id < PS_KEY_COUNT; id++) {
        const ps_key_t *key = ps_config_key((ps_key_id_t)id);
        char of_key[PS_KEY_ENV_SIZE];
        size_t section = strcspn(key->path, ".");

        (void)ps_key_env(key, of_key);
        list[0] = of_key;
        if ((key->path[section] == '.' &&
             strncmp(of_key, name, strlen("PSD_") + section + 1) == 0) ||
            ps_text_suggest(name, list) != NULL) {
            return true;
        }
    }
    return false;
}

/* What other systems' variables say of a key. */
static psd_status_t take_alias(ps_config_t *self, ps_key_id_t id, const char *name,
                               psd_error_t *err)
{
    const ps_origin_t origin = {.source = PS_SOURCE_ENV};
    ps_environment_t said;
    psd_status_t rc = ps_environment_read(name, &said, err);

    if (rc == PSD_OK && said.text != NULL) {
        rc = ps_config_set(self, id, said.text, &origin, err);
        rc = rc == PSD_OK ? rc : psd_error_wrap(err, rc, "from %s", said.origin);
    }
    return rc == PSD_INVALID ? psd_error_wrap(err, PSD_CONFIG, "environment") : rc;
}

psd_status_t ps_config_take_env(ps_config_t *self, psd_error_t *err)
{
    const ps_origin_t origin = {.source = PS_SOURCE_ENV};
    psd_status_t rc = ps_environment_check(err);

    if (rc != PSD_OK) {
        return psd_error_wrap(err, PSD_CONFIG, "environment");
    }
    for (int id = 0; id < PS_KEY_COUNT; id++) {
        char name[PS_KEY_ENV_SIZE];
        const char *text = getenv(ps_key_env(ps_config_key((ps_key_id_t)id), name));

        rc = text != NULL ? ps_config_set(self, (ps_key_id_t)id, text, &origin, err)
                          : take_alias(self, (ps_key_id_t)id, name, err);

        if (rc != PSD_OK) {
            return rc;
        }
    }
    return PSD_OK;
}
