/* SPDX-License-Identifier: Apache-2.0 */
/* One function for each way of aliases.def. */
#include "transport/environment/alias_value.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define SECONDS_MAX 86400
#define LINE_SIZE 256

typedef psd_status_t convert_t(const ps_alias_t *alias, const char *text,
                               char ret[PS_ENVIRONMENT_TEXT], psd_error_t *err);

static psd_status_t put(const ps_alias_t *alias, const char *prefix, const char *text,
                        char ret[PS_ENVIRONMENT_TEXT], psd_error_t *err)
{
    int n = snprintf(ret, PS_ENVIRONMENT_TEXT, "%s%s", prefix, text);

    return n < PS_ENVIRONMENT_TEXT ? PSD_OK
                                   : psd_error_set(err, PSD_INVALID, "%s is longer than %d bytes",
                                                   alias->name, PS_ENVIRONMENT_TEXT - 1);
}

static psd_status_t as_it_is(const ps_alias_t *alias, const char *text,
                             char ret[PS_ENVIRONMENT_TEXT], psd_error_t *err)
{
    return put(alias, alias->how == PS_ALIAS_NAMED ? alias->detail : "", text, ret, err);
}

static psd_status_t number(const ps_alias_t *alias, const char *text, uint64_t most,
                           uint64_t *ret_value, psd_error_t *err)
{
    return ps_text_u64(text, ret_value) && *ret_value <= most
               ? PSD_OK
               : psd_error_set(err, PSD_INVALID, "%s is \"%.40s\"; allowed: 0..%" PRIu64,
                               alias->name, text, most);
}

static psd_status_t port(const ps_alias_t *alias, const char *text, char ret[PS_ENVIRONMENT_TEXT],
                         psd_error_t *err)
{
    uint64_t value = 0;
    psd_status_t rc = number(alias, text, 65535, &value, err);

    return rc == PSD_OK ? put(alias, "", text, ret, err) : rc;
}

static psd_status_t seconds(const ps_alias_t *alias, const char *text,
                            char ret[PS_ENVIRONMENT_TEXT], psd_error_t *err)
{
    uint64_t value = 0;
    psd_status_t rc = number(alias, text, SECONDS_MAX, &value, err);

    if (rc == PSD_OK && value > 0) {
        (void)snprintf(ret, PS_ENVIRONMENT_TEXT, "%" PRIu64 "000", value);
    }
    return rc;
}

static psd_status_t more(const ps_alias_t *alias, const char *text, char ret[PS_ENVIRONMENT_TEXT],
                         psd_error_t *err)
{
    uint64_t value = 0;
    psd_status_t rc = number(alias, text, UINT32_MAX, &value, err);

    if (rc == PSD_OK) {
        (void)snprintf(ret, PS_ENVIRONMENT_TEXT, "%" PRIu64, value + 1);
    }
    return rc;
}

/* WHEN, UNLESS, ZERO: the detail, or nothing. */
static psd_status_t choose(const ps_alias_t *alias, const char *text, char ret[PS_ENVIRONMENT_TEXT],
                           psd_error_t *err)
{
    int64_t value = 0;
    bool is_number = ps_text_i64(text, &value);
    bool is_off = (is_number && value == 0) || strcmp(text, "false") == 0;

    if (!is_number && strcmp(text, "true") != 0 && strcmp(text, "false") != 0) {
        return psd_error_set(err, PSD_INVALID,
                             "%s is \"%.40s\"; allowed: a whole number, true, false", alias->name,
                             text);
    }
    return is_off == (alias->how != PS_ALIAS_WHEN) ? put(alias, "", alias->detail, ret, err)
                                                   : PSD_OK;
}

static psd_status_t word(const ps_alias_t *alias, const char *text, char ret[PS_ENVIRONMENT_TEXT],
                         psd_error_t *err)
{
    char allowed[200] = "";
    size_t used = 0;

    for (const char *at = alias->detail; *at != '\0';) {
        size_t name = strcspn(at, "=");
        size_t value = strcspn(at + name + 1, " ");
        bool is_refused = at[name + 1] == '!';

        if (strlen(text) == name && strncmp(at, text, name) == 0 && !is_refused) {
            (void)snprintf(ret, PS_ENVIRONMENT_TEXT, "%.*s", (int)value, at + name + 1);
            return PSD_OK;
        }
        if (!is_refused && used + name + 3 < sizeof allowed) {
            used += (size_t)snprintf(allowed + used, sizeof allowed - used, "%s%.*s",
                                     used == 0 ? "" : ", ", (int)name, at);
        }
        at += name + 1 + value;
        at += strspn(at, " ");
    }
    return psd_error_set(err, PSD_INVALID, "%s is \"%.40s\"; allowed: %s%s%s", alias->name, text,
                         allowed, alias->help[0] == '\0' ? "" : " - ", alias->help);
}

/* The value of key in "role:SERVER,hostname:'127.0.0.1',port:8000", in small letters. */
static bool field_of(const char *text, const char *key, char *ret, size_t size)
{
    size_t length = strlen(key);
    size_t n = 0;

    for (const char *at = strstr(text, key); at != NULL; at = strstr(at + 1, key)) {
        const char *value = at + length + strspn(at + length, " ");

        if ((at > text && strchr(", ", at[-1]) == NULL) || *value != ':') {
            continue;
        }
        value += 1 + strspn(value + 1, " '\"");
        n = strcspn(value, " ,'\"");
        for (size_t i = 0; i < n && i + 1 < size; i++) {
            ret[i] = (char)tolower((unsigned char)value[i]);
        }
        ret[n < size ? n : size - 1] = '\0';
        return n > 0 && n < size;
    }
    return false;
}

static psd_status_t node(const ps_alias_t *alias, const char *text, char ret[PS_ENVIRONMENT_TEXT],
                         psd_error_t *err)
{
    char role[16] = "";
    char host[200] = "";
    char its_port[8] = "";

    if (!field_of(text, "role", role, sizeof role) ||
        !field_of(text, "hostname", host, sizeof host) ||
        !field_of(text, "port", its_port, sizeof its_port)) {
        return psd_error_set(err, PSD_INVALID,
                             "%s is \"%.80s\"; allowed: role:SERVER,hostname:'127.0.0.1',port:8000",
                             alias->name, text);
    }
    if (strcmp(alias->detail, "role") == 0) {
        return put(alias, "", role, ret, err);
    }
    if (strcmp(role, "worker") != 0) {
        (void)snprintf(ret, PS_ENVIRONMENT_TEXT, "tcp://%s:%s", host, its_port);
    }
    return PSD_OK;
}

static bool begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static psd_status_t interface(const ps_alias_t *alias, const char *text,
                              char ret[PS_ENVIRONMENT_TEXT], psd_error_t *err)
{
    bool is_prefix = strcmp(alias->detail, "prefix") == 0;
    struct ifaddrs *all = NULL;
    bool found = false;

    if (getifaddrs(&all) != 0) {
        return psd_error_set(err, PSD_IO, "%s: this host's addresses: %s", alias->name,
                             strerror(errno));
    }
    for (const struct ifaddrs *at = all; at != NULL && !found; at = at->ifa_next) {
        char address[INET_ADDRSTRLEN] = "";
        struct sockaddr_in in;

        if (at->ifa_addr == NULL || at->ifa_addr->sa_family != AF_INET) {
            continue;
        }
        memcpy(&in, at->ifa_addr, sizeof in);
        (void)inet_ntop(AF_INET, &in.sin_addr, address, sizeof address);
        found = is_prefix ? begins(at->ifa_name, text) || begins(address, text)
                          : strcmp(at->ifa_name, text) == 0;
        if (found) {
            (void)snprintf(ret, PS_ENVIRONMENT_TEXT, "%s", address);
        }
    }
    freeifaddrs(all);
    return found ? PSD_OK
                 : psd_error_set(err, PSD_INVALID,
                                 "%s is \"%.40s\"; this host has no such interface with an "
                                 "address of IPv4",
                                 alias->name, text);
}

static psd_status_t endpoint_file(const ps_alias_t *alias, const char *text,
                                  char ret[PS_ENVIRONMENT_TEXT], psd_error_t *err)
{
    FILE *file = fopen(text, "re");
    char line[LINE_SIZE];
    psd_status_t rc = PSD_OK;
    size_t used = 0;

    if (file == NULL) {
        return psd_error_set(err, PSD_INVALID, "%s: %.200s: %s", alias->name, text,
                             strerror(errno));
    }
    for (unsigned n = 1; rc == PSD_OK && fgets(line, sizeof line, file) != NULL; n++) {
        const char *at = line + strspn(line, " \t\r\n");
        size_t id = strcspn(at, " \t\r\n");
        const char *address = at + id + strspn(at + id, " \t");
        size_t length = strcspn(address, " \t\r\n");

        if (at[0] == '\0') {
            continue;
        }
        if (length == 0 || memchr(address, ':', length) == NULL ||
            used + length + 8 > PS_ENVIRONMENT_TEXT) {
            rc = psd_error_set(err, PSD_INVALID, "%s: %.200s, line %u: a line is \"id ip:port\"",
                               alias->name, text, n);
            break;
        }
        used += (size_t)snprintf(ret + used, PS_ENVIRONMENT_TEXT - used, "%stcp://%.*s",
                                 used == 0 ? "" : ",", (int)length, address);
    }
    (void)fclose(file);
    return rc;
}

static psd_status_t nothing(const ps_alias_t *alias, const char *text,
                            char ret[PS_ENVIRONMENT_TEXT], psd_error_t *err)
{
    (void)alias;
    (void)text;
    (void)err;
    ret[0] = '\0';
    return PSD_OK;
}

ps_alias_part_t ps_alias_part(const ps_alias_t *self)
{
    return self->how == PS_ALIAS_PORT                                      ? PS_ALIAS_ITS_PORT
           : self->how == PS_ALIAS_HOST || self->how == PS_ALIAS_INTERFACE ? PS_ALIAS_ITS_HOST
                                                                           : PS_ALIAS_ALL;
}

psd_status_t ps_alias_value(const ps_alias_t *self, const char *text, char ret[PS_ENVIRONMENT_TEXT],
                            psd_error_t *err)
{
    static convert_t *const BY_HOW[] = {
        [PS_ALIAS_TEXT] = as_it_is,       [PS_ALIAS_LAST] = as_it_is,
        [PS_ALIAS_HOST] = as_it_is,       [PS_ALIAS_PORT] = port,
        [PS_ALIAS_INTERFACE] = interface, [PS_ALIAS_SECONDS] = seconds,
        [PS_ALIAS_WHEN] = choose,         [PS_ALIAS_UNLESS] = choose,
        [PS_ALIAS_ZERO] = choose,         [PS_ALIAS_WORDS] = word,
        [PS_ALIAS_MORE] = more,           [PS_ALIAS_NAMED] = as_it_is,
        [PS_ALIAS_NODE] = node,           [PS_ALIAS_FILE] = endpoint_file,
        [PS_ALIAS_NOTHING] = nothing,     [PS_ALIAS_REFUSED] = nothing,
    };

    ret[0] = '\0';
    return BY_HOW[self->how](self, text, ret, err);
}
