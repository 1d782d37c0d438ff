/* SPDX-License-Identifier: Apache-2.0 */
/* Rules between settings, and which settings a reload may change. */
#include "server/config/config.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "server/config/endpoint.h"

/* ---- rules between values ---- */

/* The rule as the other side breaks it; NULL when that is no simple one. */
static const char *turned(const char *rule)
{
    if (strcmp(rule, "at least") == 0) {
        return "at most";
    }
    return strcmp(rule, "at most") == 0 ? "at least" : NULL;
}

/* Refuses the pair: `id` breaks `rule`, whose other side is `other`. Blames the
 * value that somebody gave, not a default. */
static psd_status_t refuse_pair(const ps_config_t *self, ps_key_id_t id, const char *rule,
                                ps_key_id_t other, psd_error_t *err)
{
    if (self->origins[id].source == PS_SOURCE_DEFAULT && turned(rule) != NULL &&
        self->origins[other].source != PS_SOURCE_DEFAULT) {
        return refuse_pair(self, other, turned(rule), id, err);
    }
    PSD_AUTO(ps_buffer_done) ps_buffer_t value = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t bound = {0};
    char place[512];

    if (!ps_config_value_print(self, id, &value) || !ps_config_value_print(self, other, &bound)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for an error");
    }
    return psd_error_set(
        err, PSD_CONFIG, "%s: %s is %s; allowed: %s %s, which is %s",
        ps_origin_print(&self->origins[id], ps_config_key(id), place, sizeof place),
        ps_config_key(id)->path, (const char *)value.data, rule, ps_config_key(other)->path,
        (const char *)bound.data);
}

/* An even number of voters survives no more than the odd one below it. */
static psd_status_t check_registry(const ps_config_t *self, psd_error_t *err)
{
    char place[512];

    if (self->cluster.repair_after < self->cluster.suspect_after) {
        return refuse_pair(self, PS_KEY_cluster_repair_after, "at least",
                           PS_KEY_cluster_suspect_after, err);
    }
    return self->registry.voters % 2 == 1
               ? PSD_OK
               : psd_error_set(
                     err, PSD_CONFIG, "%s: registry.voters is %" PRIu64 "; allowed: 1, 3, 5",
                     ps_origin_print(&self->origins[PS_KEY_registry_voters],
                                     ps_config_key(PS_KEY_registry_voters), place, sizeof place),
                     self->registry.voters);
}

/* A primary that is cut off stops before another copy is promoted. A node is
 * reported only for a longer silence than one lease that was not renewed in
 * time. */
static psd_status_t check_copies(const ps_config_t *self, psd_error_t *err)
{
    if (self->copies.lease_ms > self->cluster.suspect_after) {
        return refuse_pair(self, PS_KEY_copies_lease_ms, "at most", PS_KEY_cluster_suspect_after,
                           err);
    }
    if (self->copies.slow_after_ms < self->copies.lease_ms) {
        return refuse_pair(self, PS_KEY_copies_slow_after_ms, "at least", PS_KEY_copies_lease_ms,
                           err);
    }
    if (self->copies.flight_bytes > self->copies.tail_bytes) {
        return refuse_pair(self, PS_KEY_copies_flight_bytes, "at most", PS_KEY_copies_tail_bytes,
                           err);
    }
    return PSD_OK;
}

static psd_status_t check_sizes(const ps_config_t *self, psd_error_t *err)
{
    if (self->limits.credit_bytes < self->limits.slice_bytes) {
        return refuse_pair(self, PS_KEY_limits_credit_bytes, "at least", PS_KEY_limits_slice_bytes,
                           err);
    }
    if (self->limits.held_bytes < self->limits.slice_bytes) {
        return refuse_pair(self, PS_KEY_limits_held_bytes, "at least", PS_KEY_limits_slice_bytes,
                           err);
    }
    if (self->limits.chunk_bytes > self->limits.frame_bytes) {
        return refuse_pair(self, PS_KEY_limits_chunk_bytes, "at most", PS_KEY_limits_frame_bytes,
                           err);
    }
    /* The pieces of the largest answer must fit into the queue. */
    if (self->limits.slice_bytes / self->limits.chunk_bytes >= self->limits.high_water) {
        return refuse_pair(self, PS_KEY_limits_slice_bytes, "less than limits.high_water times",
                           PS_KEY_limits_chunk_bytes, err);
    }
    if (self->workers.lost_after_ms < 2 * self->workers.heartbeat_ms) {
        return refuse_pair(self, PS_KEY_workers_lost_after_ms, "at least twice",
                           PS_KEY_workers_heartbeat_ms, err);
    }
    if (self->cluster.suspect_after < 2 * self->cluster.heartbeat) {
        return refuse_pair(self, PS_KEY_cluster_suspect_after, "at least twice",
                           PS_KEY_cluster_heartbeat, err);
    }
    return check_copies(self, err);
}

psd_status_t ps_config_check_numbers(const ps_config_t *self, psd_error_t *err)
{
    psd_status_t rc = check_sizes(self, err);

    return rc == PSD_OK ? check_registry(self, err) : rc;
}

static psd_status_t check_endpoints(const ps_config_t *self, psd_error_t *err)
{
    const ps_text_list_t *list = &self->listen.endpoints;
    char place[512];

    for (size_t i = 0; i < list->n_items; i++) {
        if (ps_endpoint_is_abstract(list->items[i])) {
            return psd_error_set(
                err, PSD_CONFIG,
                "%s: listen.endpoints has %s, which is not a file whose rights could keep others "
                "out; allowed: ipc://PATH with a PATH that begins with neither @ nor *",
                ps_origin_print(&self->origins[PS_KEY_listen_endpoints],
                                ps_config_key(PS_KEY_listen_endpoints), place, sizeof place),
                list->items[i]);
        }
        if (ps_endpoint_is_local(list->items[i]) || self->security.allow_plaintext ||
            self->security.level == PS_SECURITY_ENCRYPT) {
            continue;
        }
        return psd_error_set(err, PSD_CONFIG,
                             "%s: listen.endpoints has %s, which other machines can reach, and "
                             "security.level is plain; allowed: loopback and ipc, or set "
                             "security.level: encrypt, or security.allow_plaintext: true",
                             ps_origin_print(&self->origins[PS_KEY_listen_endpoints],
                                             ps_config_key(PS_KEY_listen_endpoints), place,
                                             sizeof place),
                             list->items[i]);
    }
    return PSD_OK;
}

/* The address of HOST:PORT is not one that a shard uses. */
static psd_status_t check_port(const ps_config_t *self, const char *endpoint, psd_error_t *err)
{
    const ps_ports_t *ports = &self->listen.shard_ports;
    uint64_t port = ps_endpoint_port(endpoint);
    char place[512];

    if (port < ports->first || port >= ports->first + self->shards) {
        return PSD_OK;
    }
    return psd_error_set(
        err, PSD_CONFIG,
        "%s: listen.shard_ports is %u-%u, of which shard %" PRIu64 " has %" PRIu64
        ", as listen.endpoints has (%s); allowed: other ports",
        ps_origin_print(&self->origins[PS_KEY_listen_shard_ports],
                        ps_config_key(PS_KEY_listen_shard_ports), place, sizeof place),
        (unsigned)ports->first, (unsigned)ports->last, port - ports->first, port, endpoint);
}

static psd_status_t check_ports(const ps_config_t *self, psd_error_t *err)
{
    const ps_ports_t *ports = &self->listen.shard_ports;
    uint64_t n = (uint64_t)ports->last - ports->first + 1;
    psd_status_t rc = PSD_OK;
    char place[512];

    if (ports->first == 0) {
        return PSD_OK;
    }
    if (n < self->shards) {
        return psd_error_set(err, PSD_CONFIG,
                             "%s: listen.shard_ports is %u-%u, which is %" PRIu64
                             " ports; allowed: one for each of shards, which is %" PRIu64,
                             ps_origin_print(&self->origins[PS_KEY_listen_shard_ports],
                                             ps_config_key(PS_KEY_listen_shard_ports), place,
                                             sizeof place),
                             (unsigned)ports->first, (unsigned)ports->last, n, self->shards);
    }
    for (size_t i = 0; rc == PSD_OK && i < self->listen.endpoints.n_items; i++) {
        rc = check_port(self, self->listen.endpoints.items[i], err);
    }
    return rc;
}

/* HOST:PORT of a host that only this machine can reach. */
static psd_status_t check_http(const ps_config_t *self, psd_error_t *err)
{
    const char *listen = self->http.listen;
    const char *colon = strrchr(listen, ':');
    char endpoint[PS_ENDPOINT_MAX + 1];
    char place[512];

    if (strcmp(listen, "auto") == 0 || strcmp(listen, "off") == 0) {
        return PSD_OK;
    }
    (void)ps_origin_print(&self->origins[PS_KEY_http_listen], ps_config_key(PS_KEY_http_listen),
                          place, sizeof place);
    (void)snprintf(endpoint, sizeof endpoint, "tcp://%.200s", listen);
    if (colon == NULL || colon == listen || !ps_endpoint_is_valid(endpoint)) {
        return psd_error_set(err, PSD_CONFIG,
                             "%s: http.listen is \"%s\"; allowed: HOST:PORT, auto, off", place,
                             listen);
    }
    if (ps_endpoint_is_local(endpoint) || self->security.allow_plaintext) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_CONFIG,
                         "%s: http.listen is %s, which other machines can reach, and HTTP is not "
                         "encrypted; allowed: loopback, or set security.allow_plaintext: true",
                         place, listen);
}

/* A token is for a node that speaks by keys. */
static psd_status_t check_security(const ps_config_t *self, psd_error_t *err)
{
    char place[512];

    return self->security.level == PS_SECURITY_ENCRYPT || self->security.token_file[0] == '\0'
               ? PSD_OK
               : psd_error_set(err, PSD_CONFIG,
                               "%s: a token lets a node join at security.level encrypt, and the "
                               "level is plain; allowed at plain: no token",
                               ps_origin_print(&self->origins[PS_KEY_security_token_file],
                                               ps_config_key(PS_KEY_security_token_file), place,
                                               sizeof place));
}

psd_status_t ps_config_check(const ps_config_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (self->data_dir == NULL) {
        return psd_error_set(err, PSD_CONFIG,
                             "data_dir has no default here: none of "
                             "STATE_DIRECTORY, XDG_STATE_HOME and HOME is an "
                             "absolute path; set --data-dir");
    }
    rc = ps_config_check_numbers(self, err);
    if (rc == PSD_OK) {
        rc = check_endpoints(self, err);
    }
    if (rc == PSD_OK) {
        rc = check_http(self, err);
    }
    if (rc == PSD_OK) {
        rc = check_security(self, err);
    }
    return rc == PSD_OK ? check_ports(self, err) : rc;
}

/* ---- new values while psd runs ---- */

/* Values compare as they print; without memory they count as the same. */
static bool is_same(const ps_config_t *a, const ps_config_t *b, ps_key_id_t id)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t of_a = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t of_b = {0};

    return !ps_config_value_print(a, id, &of_a) || !ps_config_value_print(b, id, &of_b) ||
           (of_a.size == of_b.size &&
            (of_a.size == 0 || memcmp(of_a.data, of_b.data, of_a.size) == 0));
}

/* Of a key that owns nothing, so that its value is copied as it is. */
static void copy_value(ps_config_t *self, const ps_config_t *from, const ps_key_t *key)
{
    const char *source = (const char *)from + key->offset;
    char *target = (char *)self + key->offset;

    switch (key->kind) {
    case PS_KEY_KIND_UINT:
    case PS_KEY_KIND_SIZE:
        memcpy(target, source, sizeof(uint64_t));
        break;
    case PS_KEY_KIND_LEVEL:
    case PS_KEY_KIND_PEERS:
    case PS_KEY_KIND_GUARD:
        memcpy(target, source, sizeof(int));
        break;
    case PS_KEY_KIND_BOOL:
        memcpy(target, source, sizeof(bool));
        break;
    case PS_KEY_KIND_PATH:
    case PS_KEY_KIND_DIR:
    case PS_KEY_KIND_NAME:
    case PS_KEY_KIND_HOST:
    case PS_KEY_KIND_PORTS:
    case PS_KEY_KIND_URLS:
    default:
        assert(false); /* a reloadable key that owns memory */
    }
}

static bool is_number(const ps_key_t *key)
{
    return key->kind == PS_KEY_KIND_UINT || key->kind == PS_KEY_KIND_SIZE ||
           key->kind == PS_KEY_KIND_BOOL;
}

void ps_config_take_numbers(ps_config_t *self, const ps_config_t *from)
{
    for (int i = 0; i < PS_KEY_COUNT; i++) {
        const ps_key_t *key = ps_config_key((ps_key_id_t)i);

        if (is_number(key)) {
            copy_value(self, from, key);
        }
    }
}

uint64_t ps_config_number(const ps_config_t *self, ps_key_id_t id)
{
    const ps_key_t *key = ps_config_key(id);
    const char *at = (const char *)self + key->offset;

    assert(is_number(key));
    return key->kind == PS_KEY_KIND_BOOL ? (*(const bool *)at ? 1 : 0)
                                         : *(const uint64_t *)(const void *)at;
}

void ps_config_set_number(ps_config_t *self, ps_key_id_t id, uint64_t value)
{
    const ps_key_t *key = ps_config_key(id);
    char *at = (char *)self + key->offset;

    assert(is_number(key));
    if (key->kind == PS_KEY_KIND_BOOL) {
        *(bool *)at = value != 0;
    } else {
        memcpy(at, &value, sizeof value);
    }
}

size_t ps_config_take_reloadable(ps_config_t *self, const ps_config_t *from,
                                 ps_key_id_t ret_stuck[PS_KEY_COUNT])
{
    size_t n = 0;

    for (int i = 0; i < PS_KEY_COUNT; i++) {
        ps_key_id_t id = (ps_key_id_t)i;
        const ps_key_t *key = ps_config_key(id);

        if (is_same(self, from, id)) {
            continue;
        }
        if (key->reloadable) {
            copy_value(self, from, key);
        } else {
            ret_stuck[n++] = id;
        }
    }
    return n;
}
