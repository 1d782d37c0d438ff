/* SPDX-License-Identifier: Apache-2.0 */
/* One file of a shard's log. Lists of fields define the byte format of
 * heads. */
#include "storage/log/segment.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/hash.h"

#define SEGMENT_MAGIC UINT32_C(0x67537370) /* "psSg" */
#define FLUSHED_MAGIC UINT32_C(0x6c467370) /* "psFl" */
#define VERSION 1
#define NAME_LENGTH 24 /* log-0123456789abcdef.seg */
#define DIGITS 16

/* ---- ranges -------------------------------------------------------------- */

void ps_segment_done(ps_segment_t *self)
{
    ps_free(self->ranges);
    memset(self, 0, sizeof *self);
}

psd_status_t ps_segment_reserve(ps_segment_t *self, size_t more, psd_error_t *err)
{
    return ps_grow(&self->ranges, &self->capacity, self->n_ranges + more, sizeof *self->ranges)
               ? PSD_OK
               : psd_error_set(err, PSD_NOMEM,
                               "no memory for a segment's "
                               "partitions");
}

/* The first range that is not below the partition. */
static size_t place_of(const ps_segment_t *self, uint32_t table, uint32_t partition)
{
    uint64_t wanted = (uint64_t)table << 32 | partition;
    size_t low = 0;
    size_t high = self->n_ranges;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const ps_segment_range_t *range = &self->ranges[middle];

        if (((uint64_t)range->table << 32 | range->partition) < wanted) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool is_at(const ps_segment_t *self, size_t at, uint32_t table, uint32_t partition)
{
    return at < self->n_ranges && self->ranges[at].table == table &&
           self->ranges[at].partition == partition;
}

void ps_segment_note(ps_segment_t *self, uint32_t table, uint32_t partition, uint64_t lsn)
{
    size_t at = place_of(self, table, partition);
    ps_segment_range_t *range = NULL;

    if (!is_at(self, at, table, partition)) {
        assert(self->n_ranges < self->capacity);
        memmove(self->ranges + at + 1, self->ranges + at,
                (self->n_ranges - at) * sizeof *self->ranges);
        self->n_ranges++;
        self->ranges[at] = (ps_segment_range_t){table, partition, lsn, lsn};
    }
    range = &self->ranges[at];
    range->first = lsn < range->first ? lsn : range->first;
    range->last = lsn > range->last ? lsn : range->last;
}

void ps_segment_forget(ps_segment_t *self, uint32_t table, uint32_t partition)
{
    size_t at = place_of(self, table, partition);

    if (is_at(self, at, table, partition)) {
        self->n_ranges--;
        memmove(self->ranges + at, self->ranges + at + 1,
                (self->n_ranges - at) * sizeof *self->ranges);
    }
}

bool ps_segment_has(const ps_segment_t *self, uint32_t table, uint32_t partition, uint64_t lsn)
{
    size_t at = place_of(self, table, partition);

    return is_at(self, at, table, partition) && self->ranges[at].last >= lsn;
}

/* ---- names --------------------------------------------------------------- */

bool ps_segment_parse(const char *name, uint64_t *ret_number)
{
    uint64_t number = 0;

    if (strlen(name) != NAME_LENGTH || strncmp(name, "log-", 4) != 0 ||
        strcmp(name + 4 + DIGITS, ".seg") != 0) {
        return false;
    }
    for (size_t i = 4; i < 4 + DIGITS; i++) {
        static const char digits[] = "0123456789abcdef";
        const char *digit = strchr(digits, name[i]);

        if (digit == NULL) {
            return false;
        }
        number = number << 4 | (uint64_t)(digit - digits);
    }
    *ret_number = number;
    return true;
}

psd_status_t ps_segment_path(ps_buffer_t *to, const char *dir, uint64_t number, psd_error_t *err)
{
    return ps_disk_path(to, err, dir, "log-%016" PRIx64 ".seg", number);
}

/* ---- heads --------------------------------------------------------------- */

/* X(name, type); what lies between and the checksum, which is last, is zero. */
#define SEGMENT_FIELDS(X) \
    X(magic, u32, 0)      \
    X(version, u32, 4)    \
    X(number, u64, 8)     \
    X(previous, u64, 16)  \
    X(shard, u32, 24)
#define AT_CLUSTER 28
#define AT_NODE 44
#define AT_SUM (PS_SEGMENT_HEAD - 8)
static_assert(AT_NODE + PS_SHARD_LOG_NODE_MAX + 1 <= AT_SUM,
              "the node's name does not fit into a segment's head");

#define PLACE(name, type, at) enum { AT_##name = at };
SEGMENT_FIELDS(PLACE)

void ps_segment_write_head(const ps_segment_t *self, const ps_segment_owner_t *owner,
                           uint8_t ret[PS_SEGMENT_HEAD])
{
    const uint32_t magic = SEGMENT_MAGIC;
    const uint32_t version = VERSION;
    const uint64_t number = self->number;
    const uint64_t previous = self->previous_bytes;
    const uint32_t shard = owner->shard;

    memset(ret, 0, PS_SEGMENT_HEAD);
#define STORE(name, type, at) ps_store_##type(ret + (at), name);
    SEGMENT_FIELDS(STORE)
#undef STORE
    memcpy(ret + AT_CLUSTER, owner->cluster.bytes, PS_ID_SIZE);
    memcpy(ret + AT_NODE, owner->node, strlen(owner->node));
    ps_store_u64(ret + AT_SUM, ps_hash_bytes(ret, AT_SUM, 0));
}

static psd_status_t check_sum(ps_bytes_t bytes, size_t size, uint32_t magic, const char *path,
                              psd_error_t *err)
{
    if (bytes.size < size) {
        return psd_error_set(err, PSD_DAMAGED,
                             "%s: byte %zu: the file ends; %zu bytes are "
                             "needed",
                             path, bytes.size, size);
    }
    if (ps_load_u32(bytes.data) != magic) {
        return psd_error_set(err, PSD_DAMAGED,
                             "%s: byte 0: magic is 0x%08" PRIx32 "; allowed: 0x%08" PRIx32, path,
                             ps_load_u32(bytes.data), magic);
    }
    if (ps_load_u64(bytes.data + size - 8) != ps_hash_bytes(bytes.data, size - 8, 0)) {
        return psd_error_set(err, PSD_DAMAGED,
                             "%s: byte %zu: the checksum of the %zu bytes before it does not match",
                             path, size - 8, size - 8);
    }
    if (ps_load_u32(bytes.data + 4) != VERSION) {
        return psd_error_set(err, PSD_FOREIGN,
                             "%s is of version %" PRIu32 "; this psd understands %d", path,
                             ps_load_u32(bytes.data + 4), VERSION);
    }
    return PSD_OK;
}

static psd_status_t check_owner(const ps_segment_owner_t *owner, const uint8_t *head,
                                const char *path, psd_error_t *err)
{
    char node[PS_SHARD_LOG_NODE_MAX + 1];
    char theirs[PS_ID_TEXT_SIZE];
    char ours[PS_ID_TEXT_SIZE];
    ps_id_t cluster;

    memcpy(cluster.bytes, head + AT_CLUSTER, PS_ID_SIZE);
    if (!ps_id_equal(&cluster, &owner->cluster)) {
        ps_id_format(&cluster, theirs);
        ps_id_format(&owner->cluster, ours);
        return psd_error_set(err, PSD_FOREIGN, "%s is of cluster %s; this one is %s", path, theirs,
                             ours);
    }
    memcpy(node, head + AT_NODE, sizeof node);
    node[PS_SHARD_LOG_NODE_MAX] = '\0';
    if (strcmp(node, owner->node) != 0 || ps_load_u32(head + AT_shard) != owner->shard) {
        return psd_error_set(err, PSD_FOREIGN,
                             "%s is of shard %" PRIu32 " of node %s; this is shard %" PRIu32
                             " of node %s",
                             path, ps_load_u32(head + AT_shard), node, owner->shard, owner->node);
    }
    return PSD_OK;
}

psd_status_t ps_segment_read_head(ps_segment_t *self, const ps_segment_owner_t *owner,
                                  ps_bytes_t head, const char *path, psd_error_t *err)
{
    psd_status_t rc = check_sum(head, PS_SEGMENT_HEAD, SEGMENT_MAGIC, path, err);

    if (rc == PSD_OK) {
        rc = check_owner(owner, head.data, path, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (ps_load_u64(head.data + AT_number) != self->number) {
        return psd_error_set(err, PSD_DAMAGED,
                             "%s: byte %d: number is %" PRIu64 "; the name says %" PRIu64, path,
                             AT_number, ps_load_u64(head.data + AT_number), self->number);
    }
    self->previous_bytes = ps_load_u64(head.data + AT_previous);
    return PSD_OK;
}

void ps_flushed_write(uint64_t number, uint64_t bytes, uint8_t ret[PS_FLUSHED_SLOT])
{
    ps_store_u32(ret, FLUSHED_MAGIC);
    ps_store_u32(ret + 4, VERSION);
    ps_store_u64(ret + 8, number);
    ps_store_u64(ret + 16, bytes);
    ps_store_u64(ret + 24, ps_hash_bytes(ret, 24, 0));
}

/* What a slot says that is whole. */
static ps_flushed_t read_slot(ps_bytes_t bytes, size_t slot)
{
    const uint8_t *at = bytes.data + slot * PS_FLUSHED_SLOT;

    return (ps_flushed_t){
        .number = ps_load_u64(at + 8), .bytes = ps_load_u64(at + 16), .slot = slot};
}

psd_status_t ps_flushed_read(ps_bytes_t bytes, const char *path, ps_flushed_t *ret,
                             psd_error_t *err)
{
    psd_status_t rc[2] = {PSD_OK, PSD_OK};
    ps_flushed_t said[2];

    if (bytes.size < PS_FLUSHED_SIZE) {
        return check_sum(bytes, PS_FLUSHED_SIZE, FLUSHED_MAGIC, path, err);
    }
    for (size_t i = 0; i < 2; i++) {
        rc[i] = check_sum((ps_bytes_t){bytes.data + i * PS_FLUSHED_SLOT, PS_FLUSHED_SLOT},
                          PS_FLUSHED_SLOT, FLUSHED_MAGIC, path, NULL);
        said[i] = read_slot(bytes, i);
    }
    if (rc[0] != PSD_OK && rc[1] != PSD_OK) {
        return check_sum(bytes, PS_FLUSHED_SLOT, FLUSHED_MAGIC, path, err);
    }
    if (rc[0] != PSD_OK || rc[1] != PSD_OK) {
        *ret = said[rc[0] != PSD_OK ? 1 : 0];
        ret->is_torn = true;
        return PSD_OK;
    }
    /* It only ever says more. */
    *ret = said[said[1].number > said[0].number ||
                        (said[1].number == said[0].number && said[1].bytes > said[0].bytes)
                    ? 1
                    : 0];
    return PSD_OK;
}
