/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a registry's log. Lists of fields define their format. */
#include "storage/registry/registry_log_format.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/cursor.h"
#include "base/hash.h"

#define SEGMENT_MAGIC UINT32_C(0x67527370) /* "psRg" */
#define RECORD_MAGIC UINT32_C(0x65527370)  /* "psRe" */
#define STATE_MAGIC UINT32_C(0x74527370)   /* "psRt" */
#define FLUSHED_MAGIC UINT32_C(0x66527370) /* "psRf" */
#define VERSION 1
#define NAME "entries-"
#define DIGITS 20

/* X(name, type, at); checksums are last, apart from a record's. */
#define SEGMENT_FIELDS(X) \
    X(first, u64, 8)      \
    X(member, u64, 16)
#define AT_SEGMENT_CLUSTER 24
#define STATE_FIELDS(X)    \
    X(sequence, u64, 8)    \
    X(term, u64, 56)       \
    X(vote, u64, 64)       \
    X(generation, u64, 72) \
    X(first, u64, 80)      \
    X(flushed, u64, 88)    \
    X(cut_from, u64, 96)   \
    X(is_begun, u8, 104)
#define AT_STATE_CLUSTER 16
#define AT_STATE_MEMBER 32
#define AT_STATE_LINEAGE 40
#define FLUSHED_FIELDS(X) \
    X(generation, u64, 8) \
    X(index, u64, 16)
/* The checksum is of the bytes before it and after it. */
#define AT_RECORD_SUM 8
#define RECORD_FIELDS(X)    \
    X(entry.index, u64, 16) \
    X(entry.term, u64, 24)  \
    X(flushed, u64, 32)
#define AT_RECORD_SIZE 40
#define AT_RECORD_KIND 44

#define STORE(name, type, at) ps_store_##type(ret + (at), self->name);
#define LOAD(name, type, at) self->name = ps_load_##type(at_bytes + (at));

/* ---- heads and slots ---- */

static void write_front(uint8_t *ret, size_t size, uint32_t magic)
{
    memset(ret, 0, size);
    ps_store_u32(ret, magic);
    ps_store_u32(ret + 4, VERSION);
}

static uint64_t write_sum(uint8_t *ret, size_t size)
{
    uint64_t sum = ps_hash_bytes(ret, size - 8, 0);

    ps_store_u64(ret + size - 8, sum);
    return sum;
}

/* Magic, checksum and version of `size` bytes at `at`. */
static psd_status_t check(ps_bytes_t bytes, size_t at, size_t size, uint32_t magic,
                          const char *path, psd_error_t *err)
{
    const uint8_t *from = bytes.data + at;

    if (bytes.size < at + size) {
        return psd_error_set(err, PSD_DAMAGED, "%s: byte %zu: the file ends; %zu bytes are needed",
                             path, bytes.size, at + size);
    }
    if (ps_load_u32(from) != magic) {
        return psd_error_set(err, PSD_DAMAGED,
                             "%s: byte %zu: magic is 0x%08" PRIx32 "; allowed: 0x%08" PRIx32, path,
                             at, ps_load_u32(from), magic);
    }
    if (ps_load_u64(from + size - 8) != ps_hash_bytes(from, size - 8, 0)) {
        return psd_error_set(err, PSD_DAMAGED,
                             "%s: byte %zu: the checksum of the %zu bytes before it does not match",
                             path, at + size - 8, size - 8);
    }
    if (ps_load_u32(from + 4) != VERSION) {
        return psd_error_set(err, PSD_FOREIGN,
                             "%s is of version %" PRIu32 "; this psd understands %d", path,
                             ps_load_u32(from + 4), VERSION);
    }
    return PSD_OK;
}

static psd_status_t check_owner(const ps_registry_owner_t *owner, const uint8_t *cluster,
                                uint64_t member, const char *path, psd_error_t *err)
{
    char theirs[PS_ID_TEXT_SIZE];
    char ours[PS_ID_TEXT_SIZE];
    ps_id_t id;

    memcpy(id.bytes, cluster, PS_ID_SIZE);
    if (!ps_id_equal(&id, &owner->cluster)) {
        ps_id_format(&id, theirs);
        ps_id_format(&owner->cluster, ours);
        return psd_error_set(err, PSD_FOREIGN, "%s is of cluster %s; this one is %s", path, theirs,
                             ours);
    }
    if (member != owner->member) {
        return psd_error_set(err, PSD_FOREIGN,
                             "%s is of member %016" PRIx64 " of the registry; this one is "
                             "%016" PRIx64,
                             path, member, owner->member);
    }
    return PSD_OK;
}

/* The slot that counts of those that are whole: ret_slot. Neither is: what is
 * wrong with the first one. */
static psd_status_t choose(ps_bytes_t bytes, size_t size, uint32_t magic, const char *path,
                           bool (*is_newer)(const uint8_t *a, const uint8_t *b), size_t *ret_slot,
                           psd_error_t *err)
{
    const psd_status_t rc[2] = {check(bytes, 0, size, magic, path, NULL),
                                check(bytes, PS_REGISTRY_SLOT_AT, size, magic, path, NULL)};

    if (rc[0] == PSD_DAMAGED && rc[1] == PSD_DAMAGED) {
        return check(bytes, 0, size, magic, path, err);
    }
    if (rc[0] == PSD_OK && rc[1] == PSD_OK) {
        *ret_slot = is_newer(bytes.data + PS_REGISTRY_SLOT_AT, bytes.data) ? 1 : 0;
    } else {
        *ret_slot = rc[0] == PSD_OK || rc[1] == PSD_DAMAGED ? 0 : 1;
    }
    return check(bytes, *ret_slot * PS_REGISTRY_SLOT_AT, size, magic, path, err);
}

/* ---- segments ---- */

bool ps_registry_segment_parse(const char *name, uint64_t *ret_first)
{
    uint64_t first = 0;

    if (strlen(name) != strlen(NAME) + DIGITS || strncmp(name, NAME, strlen(NAME)) != 0) {
        return false;
    }
    for (const char *at = name + strlen(NAME); *at != '\0'; at++) {
        if (*at < '0' || *at > '9' || first > PS_REGISTRY_INDEX_MAX / 10) {
            return false;
        }
        first = first * 10 + (uint64_t)(*at - '0');
    }
    *ret_first = first;
    return first > 0;
}

psd_status_t ps_registry_segment_path(ps_buffer_t *to, const char *dir, uint64_t first,
                                      psd_error_t *err)
{
    return ps_disk_path(to, err, dir, NAME "%020" PRIu64, first);
}

typedef struct head {
    uint64_t first;
    uint64_t member;
} head_t;

uint64_t ps_registry_segment_write(const ps_registry_owner_t *owner, uint64_t first,
                                   uint8_t ret[PS_REGISTRY_SEGMENT_HEAD])
{
    const head_t *self = &(head_t){first, owner->member};

    write_front(ret, PS_REGISTRY_SEGMENT_HEAD, SEGMENT_MAGIC);
    SEGMENT_FIELDS(STORE)
    memcpy(ret + AT_SEGMENT_CLUSTER, owner->cluster.bytes, PS_ID_SIZE);
    return write_sum(ret, PS_REGISTRY_SEGMENT_HEAD);
}

psd_status_t ps_registry_segment_read(const ps_registry_owner_t *owner, uint64_t first,
                                      ps_bytes_t bytes, const char *path, uint64_t *ret_seed,
                                      psd_error_t *err)
{
    const uint8_t *at_bytes = bytes.data;
    head_t head = {0};
    head_t *self = &head;
    psd_status_t rc = check(bytes, 0, PS_REGISTRY_SEGMENT_HEAD, SEGMENT_MAGIC, path, err);

    if (rc != PSD_OK) {
        return rc;
    }
    SEGMENT_FIELDS(LOAD)
    rc = check_owner(owner, at_bytes + AT_SEGMENT_CLUSTER, head.member, path, err);
    if (rc == PSD_OK && head.first != first) {
        rc = psd_error_set(err, PSD_DAMAGED,
                           "%s: byte 8: the first index is %" PRIu64 "; the name says %" PRIu64,
                           path, head.first, first);
    }
    if (rc == PSD_OK) {
        *ret_seed = ps_load_u64(at_bytes + PS_REGISTRY_SEGMENT_HEAD - 8);
    }
    return rc;
}

/* ---- records ---- */

size_t ps_registry_record_size(size_t n)
{
    return PS_REGISTRY_RECORD_HEAD +
           (n + PS_REGISTRY_RECORD_ALIGN - 1) / PS_REGISTRY_RECORD_ALIGN * PS_REGISTRY_RECORD_ALIGN;
}

static uint64_t sum_of(const uint8_t *record, size_t size, uint64_t seed)
{
    const size_t after = AT_RECORD_SUM + 8;

    return ps_hash_bytes(record + after, size - after, ps_hash_bytes(record, AT_RECORD_SUM, seed));
}

void ps_registry_record_write(const ps_registry_record_t *record, uint64_t seed, uint8_t *ret)
{
    const ps_registry_record_t *self = record;
    size_t n = record->entry.bytes.size;
    size_t size = ps_registry_record_size(n);

    memset(ret, 0, PS_REGISTRY_RECORD_HEAD);
    memset(ret + size - PS_REGISTRY_RECORD_ALIGN, 0, PS_REGISTRY_RECORD_ALIGN);
    ps_store_u32(ret, (uint32_t)size);
    ps_store_u32(ret + 4, RECORD_MAGIC);
    RECORD_FIELDS(STORE)
    ps_store_u32(ret + AT_RECORD_SIZE, (uint32_t)n);
    ps_store_u32(ret + AT_RECORD_KIND, (uint32_t)record->entry.kind);
    if (n > 0) {
        memcpy(ret + PS_REGISTRY_RECORD_HEAD, record->entry.bytes.data, n);
    }
    ps_store_u64(ret + AT_RECORD_SUM, sum_of(ret, size, seed));
}

/* Its size, when it is whole. */
static psd_status_t check_record(ps_bytes_t bytes, uint64_t seed, size_t *ret_size,
                                 psd_error_t *err)
{
    size_t size = 0;

    if (bytes.size < PS_REGISTRY_RECORD_HEAD) {
        return psd_error_set(err, PSD_DAMAGED, "the file ends after %zu bytes of it", bytes.size);
    }
    size = ps_load_u32(bytes.data);
    if (size < PS_REGISTRY_RECORD_HEAD || size > bytes.size) {
        return psd_error_set(err, PSD_DAMAGED, "size is %zu; allowed: %zu to %zu, which are left",
                             size, PS_REGISTRY_RECORD_HEAD, bytes.size);
    }
    if (ps_load_u32(bytes.data + 4) != RECORD_MAGIC) {
        return psd_error_set(err, PSD_DAMAGED, "magic is 0x%08" PRIx32 "; allowed: 0x%08" PRIx32,
                             ps_load_u32(bytes.data + 4), RECORD_MAGIC);
    }
    if (ps_load_u64(bytes.data + AT_RECORD_SUM) != sum_of(bytes.data, size, seed)) {
        return psd_error_set(err, PSD_DAMAGED, "the checksum of %zu bytes does not match", size);
    }
    if (ps_registry_record_size(ps_load_u32(bytes.data + AT_RECORD_SIZE)) != size) {
        return psd_error_set(err, PSD_DAMAGED,
                             "the entry has %" PRIu32 " bytes, which no record of %zu has",
                             ps_load_u32(bytes.data + AT_RECORD_SIZE), size);
    }
    for (size_t i = PS_REGISTRY_RECORD_HEAD + ps_load_u32(bytes.data + AT_RECORD_SIZE); i < size;
         i++) {
        if (bytes.data[i] != 0) {
            return psd_error_set(err, PSD_DAMAGED, "byte %zu of it is not zero", i);
        }
    }
    *ret_size = size;
    return PSD_OK;
}

psd_status_t ps_registry_record_read(ps_bytes_t bytes, uint64_t seed,
                                     ps_registry_record_t *ret_record, size_t *ret_size,
                                     psd_error_t *err)
{
    const uint8_t *at_bytes = bytes.data;
    ps_registry_record_t record = {0};
    ps_registry_record_t *self = &record;
    uint32_t kind = 0;
    size_t size = 0;
    psd_status_t rc = check_record(bytes, seed, &size, err);

    if (rc != PSD_OK) {
        return rc;
    }
    RECORD_FIELDS(LOAD)
    kind = ps_load_u32(at_bytes + AT_RECORD_KIND);
    if (kind < PS_REGISTRY_COMMAND || kind > PS_REGISTRY_MEMBERS) {
        return psd_error_set(err, PSD_FOREIGN, "kind is %" PRIu32 "; this psd understands %d to %d",
                             kind, PS_REGISTRY_COMMAND, PS_REGISTRY_MEMBERS);
    }
    record.entry.kind = (ps_registry_entry_kind_t)kind;
    record.entry.bytes =
        (ps_bytes_t){at_bytes + PS_REGISTRY_RECORD_HEAD, ps_load_u32(at_bytes + AT_RECORD_SIZE)};
    *ret_record = record;
    *ret_size = size;
    return PSD_OK;
}

/* ---- the state ---- */

void ps_registry_state_write(const ps_registry_state_t *state, const ps_registry_owner_t *owner,
                             uint8_t ret[PS_REGISTRY_STATE_SLOT])
{
    const ps_registry_state_t *self = state;

    write_front(ret, PS_REGISTRY_STATE_SLOT, STATE_MAGIC);
    STATE_FIELDS(STORE)
    ps_store_u64(ret + AT_STATE_MEMBER, owner->member);
    memcpy(ret + AT_STATE_CLUSTER, owner->cluster.bytes, PS_ID_SIZE);
    memcpy(ret + AT_STATE_LINEAGE, state->lineage.bytes, PS_ID_SIZE);
    (void)write_sum(ret, PS_REGISTRY_STATE_SLOT);
}

static bool is_newer_state(const uint8_t *a, const uint8_t *b)
{
    return ps_load_u64(a + 8) > ps_load_u64(b + 8);
}

/* Also a damaged one is refused that has the right checksum by chance. */
static bool is_possible(const ps_registry_state_t *self)
{
    return self->first > 0 && self->first <= PS_REGISTRY_INDEX_MAX &&
           self->flushed <= PS_REGISTRY_INDEX_MAX && self->flushed + 1 >= self->first &&
           (self->is_begun ? self->cut_from == 0 || self->cut_from > self->flushed
                           : self->cut_from == 0 && self->flushed + 1 == self->first);
}

/* A count that went back to 0 would be older than the one in the other slot. */
static bool can_count(const ps_registry_state_t *self)
{
    return self->sequence <= PS_REGISTRY_COUNT_MAX && self->term <= PS_REGISTRY_COUNT_MAX &&
           self->generation <= PS_REGISTRY_COUNT_MAX;
}

psd_status_t ps_registry_state_read(ps_bytes_t bytes, ps_registry_owner_t *owner, const char *path,
                                    ps_registry_state_t *ret_state, size_t *ret_slot,
                                    psd_error_t *err)
{
    ps_registry_state_t state = {0};
    ps_registry_state_t *self = &state;
    const uint8_t *at_bytes = NULL;
    size_t slot = 0;
    psd_status_t rc =
        choose(bytes, PS_REGISTRY_STATE_SLOT, STATE_MAGIC, path, is_newer_state, &slot, err);

    if (rc != PSD_OK) {
        return rc;
    }
    at_bytes = bytes.data + slot * PS_REGISTRY_SLOT_AT;
    STATE_FIELDS(LOAD)
    memcpy(state.lineage.bytes, at_bytes + AT_STATE_LINEAGE, PS_ID_SIZE);
    if (owner->member == 0) {
        owner->member = ps_load_u64(at_bytes + AT_STATE_MEMBER);
    }
    rc = check_owner(owner, at_bytes + AT_STATE_CLUSTER, ps_load_u64(at_bytes + AT_STATE_MEMBER),
                     path, err);
    if (rc == PSD_OK && !is_possible(self)) {
        rc = psd_error_set(err, PSD_DAMAGED,
                           "%s: byte %zu: entries from %" PRIu64 " on, flushed up to %" PRIu64
                           ", cut from %" PRIu64,
                           path, slot * PS_REGISTRY_SLOT_AT + 80, state.first, state.flushed,
                           state.cut_from);
    }
    if (rc == PSD_OK && !can_count(self)) {
        rc = psd_error_set(err, PSD_DAMAGED,
                           "%s: byte %zu: change %" PRIu64 ", term %" PRIu64 ", %" PRIu64
                           " cuts; allowed: at most %" PRIu64 " each",
                           path, slot * PS_REGISTRY_SLOT_AT + 8, state.sequence, state.term,
                           state.generation, PS_REGISTRY_COUNT_MAX);
    }
    if (rc == PSD_OK) {
        *ret_state = state;
        *ret_slot = slot;
    }
    return rc;
}

/* ---- what is flushed ---- */

void ps_registry_flushed_write(const ps_registry_flushed_t *note,
                               uint8_t ret[PS_REGISTRY_FLUSHED_SLOT])
{
    const ps_registry_flushed_t *self = note;

    write_front(ret, PS_REGISTRY_FLUSHED_SLOT, FLUSHED_MAGIC);
    FLUSHED_FIELDS(STORE)
    (void)write_sum(ret, PS_REGISTRY_FLUSHED_SLOT);
}

static bool is_newer_note(const uint8_t *a, const uint8_t *b)
{
    uint64_t generation = ps_load_u64(a + 8);

    return generation > ps_load_u64(b + 8) ||
           (generation == ps_load_u64(b + 8) && ps_load_u64(a + 16) > ps_load_u64(b + 16));
}

bool ps_registry_flushed_is_torn(ps_bytes_t bytes)
{
    size_t size = PS_REGISTRY_FLUSHED_SLOT;

    return check(bytes, 0, size, FLUSHED_MAGIC, "", NULL) == PSD_DAMAGED ||
           check(bytes, PS_REGISTRY_SLOT_AT, size, FLUSHED_MAGIC, "", NULL) == PSD_DAMAGED;
}

psd_status_t ps_registry_flushed_read(ps_bytes_t bytes, const char *path,
                                      ps_registry_flushed_t *ret_note, size_t *ret_slot,
                                      psd_error_t *err)
{
    ps_registry_flushed_t *self = ret_note;
    const uint8_t *at_bytes = NULL;
    psd_status_t rc =
        choose(bytes, PS_REGISTRY_FLUSHED_SLOT, FLUSHED_MAGIC, path, is_newer_note, ret_slot, err);

    if (rc == PSD_OK) {
        at_bytes = bytes.data + *ret_slot * PS_REGISTRY_SLOT_AT;
        FLUSHED_FIELDS(LOAD)
    }
    return rc;
}
