/* SPDX-License-Identifier: Apache-2.0 */
/* Settings as text: one value, and the whole as a file that gives the same. */
#include "server/config/config.h"

#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "transport/lane/door.h"

#define COMMENT_COLUMN 46 /* where the origins stand */

static bool print_size(uint64_t bytes, ps_buffer_t *buffer)
{
    static const char *const UNITS[] = {"", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;

    while (unit < 4 && bytes > 0 && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    return ps_buffer_print(buffer, "%" PRIu64 "%s", bytes, UNITS[unit]);
}

static const char *level_name(int level)
{
    switch (level) {
    case PS_LOG_ERROR:
        return "error";
    case PS_LOG_WARN:
        return "warn";
    case PS_LOG_INFO:
        return "info";
    default:
        return "debug";
    }
}

static const char *peers_name(int peers)
{
    switch (peers) {
    case PS_PEERS_ANY:
        return "any";
    case PS_PEERS_GROUP:
        return "group";
    default:
        return "owner";
    }
}

static bool print_list(const ps_text_list_t *list, ps_buffer_t *buffer)
{
    for (size_t i = 0; i < list->n_items; i++) {
        if (!ps_buffer_print(buffer, "%s%s", i == 0 ? "" : ",", list->items[i])) {
            return false;
        }
    }
    return true;
}

static bool print_ports(const ps_ports_t *ports, ps_buffer_t *buffer)
{
    return ports->first == 0 ||
           ps_buffer_print(buffer, "%u-%u", (unsigned)ports->first, (unsigned)ports->last);
}

bool ps_config_value_print(const ps_config_t *self, ps_key_id_t id, ps_buffer_t *buffer)
{
    const ps_key_t *key = ps_config_key(id);
    const void *value = (const char *)self + key->offset;
    const char *text = NULL;

    switch (key->kind) {
    case PS_KEY_KIND_PATH:
    case PS_KEY_KIND_DIR:
    case PS_KEY_KIND_NAME:
    case PS_KEY_KIND_HOST:
        text = *(char *const *)value;
        return ps_buffer_print(buffer, "%s", text == NULL ? "" : text);
    case PS_KEY_KIND_URLS:
        return print_list(value, buffer);
    case PS_KEY_KIND_PORTS:
        return print_ports(value, buffer);
    case PS_KEY_KIND_UINT:
        return ps_buffer_print(buffer, "%" PRIu64, *(const uint64_t *)value);
    case PS_KEY_KIND_SIZE:
        return print_size(*(const uint64_t *)value, buffer);
    case PS_KEY_KIND_LEVEL:
        return ps_buffer_print(buffer, "%s", level_name(*(const int *)value));
    case PS_KEY_KIND_PEERS:
        return ps_buffer_print(buffer, "%s", peers_name(*(const int *)value));
    case PS_KEY_KIND_GUARD:
        return ps_buffer_print(buffer, "%s",
                               *(const int *)value == PS_SECURITY_ENCRYPT ? "encrypt" : "plain");
    case PS_KEY_KIND_BOOL:
        return ps_buffer_print(buffer, "%s", *(const bool *)value ? "true" : "false");
    default:
        return true;
    }
}

/* YAML's double quotes take the same escapes as the log's. */
static bool print_quoted(const char *text, ps_buffer_t *buffer)
{
    char quoted[8192];

    return ps_buffer_print(buffer, "%s",
                           ps_log_quote(text == NULL ? "" : text, quoted, sizeof quoted));
}

/* The value as YAML has it. */
static bool print_yaml(const ps_config_t *self, const ps_key_t *key, ps_buffer_t *buffer)
{
    const void *value = (const char *)self + key->offset;

    if (key->kind == PS_KEY_KIND_PATH || key->kind == PS_KEY_KIND_DIR ||
        key->kind == PS_KEY_KIND_NAME || key->kind == PS_KEY_KIND_HOST) {
        return print_quoted(*(char *const *)value, buffer);
    }
    if (key->kind == PS_KEY_KIND_PORTS && ((const ps_ports_t *)value)->first == 0) {
        return ps_buffer_print(buffer, "\"\"");
    }
    if (key->kind == PS_KEY_KIND_URLS) {
        const ps_text_list_t *list = value;
        bool done = ps_buffer_print(buffer, "[");

        for (size_t i = 0; i < list->n_items && done; i++) {
            done = ps_buffer_print(buffer, "%s", i == 0 ? "" : ", ") &&
                   print_quoted(list->items[i], buffer);
        }
        return done && ps_buffer_print(buffer, "]");
    }
    return ps_config_value_print(self, key->id, buffer);
}

static bool print_key(const ps_config_t *self, const ps_key_t *key, ps_buffer_t *buffer)
{
    const ps_origin_t *origin = &self->origins[key->id];
    char place[512];
    size_t start = buffer->size;
    int gap = 0;

    if (!ps_buffer_print(buffer, "%s%s: ", key->section[0] == '\0' ? "" : "  ", key->member) ||
        !print_yaml(self, key, buffer)) {
        return false;
    }
    if (buffer->size - start < COMMENT_COLUMN) {
        gap = COMMENT_COLUMN - (int)(buffer->size - start);
    }
    return ps_buffer_print(buffer, "%*s # %s\n", gap, "",
                           ps_origin_print(origin, key, place, sizeof place));
}

bool ps_config_print(const ps_config_t *self, ps_buffer_t *buffer)
{
    const char *section = "";

    for (int id = 0; id < PS_KEY_COUNT; id++) {
        const ps_key_t *key = ps_config_key((ps_key_id_t)id);

        if (strcmp(key->section, section) != 0) {
            section = key->section;
            if (!ps_buffer_print(buffer, "%s:\n", section)) {
                return false;
            }
        }
        if (!print_key(self, key, buffer)) {
            return false;
        }
    }
    return true;
}
