/* SPDX-License-Identifier: Apache-2.0 */
/* Reads lists of hosts and places ranks on them. */
#include "cli/launch/hosts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

#define LINE_SIZE 512

void ps_hosts_done(ps_hosts_t *self)
{
    ps_free(self->items);
    *self = (ps_hosts_t){0};
}

const char *ps_host_address(const ps_host_t *self)
{
    const char *at = strrchr(self->name, '@');

    return at == NULL ? self->name : at + 1;
}

static bool take_slots(const char *text, ps_host_t *host)
{
    uint64_t slots = 0;

    if (!ps_text_u64(text, &slots) || slots == 0 || slots > 4096) {
        return false;
    }
    host->slots = (uint32_t)slots;
    host->has_slots = true;
    return true;
}

/* "HOST", "HOST:SLOTS"; an address of IPv6 stands in brackets where slots follow it. A
 * name that begins with a dash would be an option of the launcher. */
static bool take_host(const char *text, ps_host_t *host)
{
    const char *colon = strchr(text, ':');
    const char *end = strchr(text, ']');
    const char *at = NULL;

    if (text[0] == '[' && end != NULL) {
        (void)snprintf(host->name, sizeof host->name, "%.*s", (int)(end - text - 1), text + 1);
        if (end[1] != '\0' && (end[1] != ':' || !take_slots(end + 2, host))) {
            return false;
        }
    } else if (colon != NULL && strchr(colon + 1, ':') == NULL) {
        (void)snprintf(host->name, sizeof host->name, "%.*s", (int)(colon - text), text);
        if (!take_slots(colon + 1, host)) {
            return false;
        }
    } else {
        (void)snprintf(host->name, sizeof host->name, "%s", text);
    }
    at = ps_host_address(host);
    return host->name[0] != '-' && at[0] != '\0' && at[0] != '-' &&
           host->name[strcspn(host->name, " \t\"'$`;&|<>\\[]")] == '\0';
}

/* where: the list, or FILE:LINE. */
static psd_status_t add(ps_hosts_t *self, const char *where, const char *text, const char *slots,
                        psd_error_t *err)
{
    ps_host_t *host = &self->items[self->n];

    if (self->n == PS_HOSTS_MAX) {
        return psd_error_set(err, PSD_USAGE, "%s: more than %d hosts", where, PS_HOSTS_MAX);
    }
    *host = (ps_host_t){0};
    if (strlen(text) >= PS_HOST_SIZE || !take_host(text, host) ||
        (slots != NULL && !take_slots(slots, host))) {
        return psd_error_set(err, PSD_USAGE,
                             "%s: \"%s%s%s\" is no host; allowed: HOST, USER@HOST or HOST:SLOTS "
                             "with 1 to 4096 slots",
                             where, text,
                             slots == NULL ? "" : " slots=", slots == NULL ? "" : slots);
    }
    for (size_t i = 0; i < self->n; i++) {
        if (strcmp(ps_host_address(&self->items[i]), ps_host_address(host)) == 0) {
            return psd_error_set(err, PSD_USAGE, "%s: host %s is there twice; give it slots: %s:2",
                                 where, ps_host_address(host), ps_host_address(host));
        }
    }
    self->n++;
    return PSD_OK;
}

static psd_status_t begin(ps_hosts_t *self, psd_error_t *err)
{
    *self = (ps_hosts_t){.items = ps_alloc(PS_HOSTS_MAX + 1, sizeof *self->items)};
    return self->items == NULL ? psd_error_set(err, PSD_NOMEM, "no memory for hosts") : PSD_OK;
}

psd_status_t ps_hosts_parse(ps_hosts_t *ret_hosts, const char *list, psd_error_t *err)
{
    PSD_AUTO(ps_hosts_done) ps_hosts_t self = {0};
    psd_status_t rc = begin(&self, err);

    while (rc == PSD_OK && *list != '\0') {
        char word[LINE_SIZE];
        size_t size = strcspn(list, ",");

        (void)snprintf(word, sizeof word, "%.*s", (int)size, list);
        rc = add(&self, "--hosts", word, NULL, err);
        list += size + (list[size] == ',' ? 1 : 0);
    }
    if (rc == PSD_OK) {
        *ret_hosts = self; /* ownership moves */
        self = (ps_hosts_t){0};
    }
    return rc;
}

/* One line of a file. */
static psd_status_t read_line(ps_hosts_t *self, const char *where, char *line, psd_error_t *err)
{
    static const char SLOTS[] = "slots=";
    PSD_AUTO(ps_words_done) ps_words_t words = {0};
    const char *slots = NULL;

    line[strcspn(line, "#\r\n")] = '\0';
    if (!ps_words_split(&words, line)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for hosts");
    }
    if (words.n == 0) {
        return PSD_OK;
    }
    if (words.n > 1 && strncmp(words.items[1], SLOTS, sizeof SLOTS - 1) == 0) {
        slots = words.items[1] + sizeof SLOTS - 1;
    }
    if (words.n > (slots == NULL ? 1U : 2U)) {
        return psd_error_set(err, PSD_USAGE, "%s: \"%s\" after a host; allowed: slots=N", where,
                             words.items[slots == NULL ? 1 : 2]);
    }
    return add(self, where, words.items[0], slots, err);
}

psd_status_t ps_hosts_read(ps_hosts_t *ret_hosts, const char *path, psd_error_t *err)
{
    PSD_AUTO(ps_hosts_done) ps_hosts_t self = {0};
    FILE *file = fopen(path, "re");
    char line[LINE_SIZE];
    psd_status_t rc = begin(&self, err);

    if (file == NULL) {
        return psd_error_set(err, PSD_IO, "--hostfile %s: %s", path, strerror(errno));
    }
    for (unsigned n = 1; rc == PSD_OK && fgets(line, sizeof line, file) != NULL; n++) {
        char where[LINE_SIZE];

        (void)snprintf(where, sizeof where, "%.400s:%u", path, n);
        rc = strlen(line) == LINE_SIZE - 1 && line[LINE_SIZE - 2] != '\n'
                 ? psd_error_set(err, PSD_USAGE, "%s: the line has more than %d bytes", where,
                                 LINE_SIZE - 2)
                 : read_line(&self, where, line, err);
    }
    (void)fclose(file);
    if (rc == PSD_OK && self.n == 0) {
        rc = psd_error_set(err, PSD_USAGE, "--hostfile %s names no host", path);
    }
    if (rc == PSD_OK) {
        *ret_hosts = self; /* ownership moves */
        self = (ps_hosts_t){0};
    }
    return rc;
}

psd_status_t ps_hosts_place(ps_hosts_t *self, uint32_t n, psd_error_t *err)
{
    uint32_t left = n;
    uint32_t slots = 0;
    bool named = false;

    for (size_t i = 0; i < self->n; i++) {
        named = named || self->items[i].has_slots;
    }
    for (size_t i = 0; i < self->n; i++) {
        ps_host_t *host = &self->items[i];
        uint32_t even = n / (uint32_t)self->n + (i < n % self->n ? 1 : 0);
        uint32_t has = !named ? even : host->has_slots ? host->slots : 1;

        slots += has;
        host->slots = has < left ? has : left;
        left -= host->slots;
    }
    if (left > 0) {
        return psd_error_set(err, PSD_USAGE,
                             "the hosts have %" PRIu32 " slots for %" PRIu32
                             " workers; allowed: as many slots as workers, or none named",
                             slots, n);
    }
    return PSD_OK;
}

const ps_host_t *ps_hosts_of(const ps_hosts_t *self, uint32_t rank)
{
    for (size_t i = 0; i < self->n; i++) {
        if (rank < self->items[i].slots) {
            return &self->items[i];
        }
        rank -= self->items[i].slots;
    }
    return NULL;
}
