/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of config_keys.def as data, and what each allows in words. */
#include "server/config/config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

#define ROOT(path, kind, member, unit, min, max, fallback, reload, help) \
    {PS_KEY_##member,                                                    \
     PS_KEY_KIND_##kind,                                                 \
     path,                                                               \
     "",                                                                 \
     #member,                                                            \
     unit,                                                               \
     min,                                                                \
     max,                                                                \
     fallback,                                                           \
     reload,                                                             \
     help,                                                               \
     offsetof(ps_config_t, member)},
#define KEY(path, kind, section, member, unit, min, max, fallback, reload, help) \
    {PS_KEY_##section##_##member,                                                \
     PS_KEY_KIND_##kind,                                                         \
     path,                                                                       \
     #section,                                                                   \
     #member,                                                                    \
     unit,                                                                       \
     min,                                                                        \
     max,                                                                        \
     fallback,                                                                   \
     reload,                                                                     \
     help,                                                                       \
     offsetof(ps_config_t, section.member)},
static const ps_key_t KEYS[] = {
#include "server/config/config_keys.def"
};

const ps_key_t *ps_config_key(ps_key_id_t id)
{
    return &KEYS[id];
}

const char *ps_key_env(const ps_key_t *self, char ret[PS_KEY_ENV_SIZE])
{
    (void)snprintf(ret, PS_KEY_ENV_SIZE, "PSD_%s", self->path);
    for (char *at = ret; *at != '\0'; at++) {
        if (*at == '.') {
            *at = '_';
        } else if (*at >= 'a' && *at <= 'z') {
            *at = (char)(*at - 'a' + 'A');
        }
    }
    return ret;
}

const char *ps_config_show(const char *text, char *ret, size_t size)
{
    (void)ps_log_quote(text, ret, size);
    for (char *at = ret; *at != '\0'; at++) {
        if ((unsigned char)*at < ' ' || *at == 0x7f) {
            *at = '?';
        }
    }
    return ret;
}

bool ps_key_allowed(const ps_key_t *key, ps_buffer_t *buffer)
{
    switch (key->kind) {
    case PS_KEY_KIND_PATH:
        return ps_buffer_print(buffer, "a path of at most %" PRIu64 " bytes", key->max);
    case PS_KEY_KIND_DIR:
        return ps_buffer_print(buffer, "a path of at most %" PRIu64 " bytes, or \"\"", key->max);
    case PS_KEY_KIND_NAME:
        return ps_buffer_print(buffer, "1 .. 63 of A-Z a-z 0-9 _ . - with no . "
                                       "or - in front");
    case PS_KEY_KIND_HOST:
        return ps_buffer_print(buffer, "a host name or address, without a scheme");
    case PS_KEY_KIND_URLS:
        return ps_buffer_print(buffer,
                               "%" PRIu64 " .. %" PRIu64 " of tcp://HOST:PORT and ipc://PATH",
                               key->min, key->max);
    case PS_KEY_KIND_PORTS:
        return ps_buffer_print(buffer, "FIRST-LAST of 1 .. 65535, or \"\"");
    case PS_KEY_KIND_UINT:
        return ps_buffer_print(buffer, "%" PRIu64 " .. %" PRIu64 " %s", key->min, key->max,
                               key->unit);
    case PS_KEY_KIND_SIZE:
        return ps_buffer_print(buffer, "%" PRIu64 " .. %" PRIu64 " bytes, or as 64k, 16MiB, 1G",
                               key->min, key->max);
    case PS_KEY_KIND_LEVEL:
        return ps_buffer_print(buffer, "error | warn | info | debug");
    case PS_KEY_KIND_PEERS:
        return ps_buffer_print(buffer, "owner | group | any");
    case PS_KEY_KIND_GUARD:
        return ps_buffer_print(buffer, "plain | encrypt");
    case PS_KEY_KIND_BOOL:
        return ps_buffer_print(buffer, "true | false");
    default:
        return true;
    }
}
