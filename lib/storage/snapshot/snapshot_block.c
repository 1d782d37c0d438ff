/* SPDX-License-Identifier: Apache-2.0 */
/* The heads of a snapshot's blocks, generated from their lists. */
#include "storage/snapshot/snapshot_block.h"

#include <assert.h>
#include <inttypes.h>

#include "base/cursor.h"
#include "base/hash.h"

#define SUM_SIZE 8

#define SIZE_u32 4
#define SIZE_u64 8
#define SIZE_id PS_ID_SIZE
#define FIELD_SIZE(type, name) +SIZE_##type
static_assert(0 PS_SNAPSHOT_HEAD_FIELDS(FIELD_SIZE) + SUM_SIZE == PS_SNAPSHOT_HEAD,
              "PS_SNAPSHOT_HEAD is wrong");
static_assert(0 PS_BLOCK_FIELDS(FIELD_SIZE) + SUM_SIZE == PS_BLOCK_HEAD, "PS_BLOCK_HEAD is wrong");

static uint8_t *write_u32(uint8_t *to, const uint32_t *from)
{
    ps_store_u32(to, *from);
    return to + sizeof *from;
}

static uint8_t *write_u64(uint8_t *to, const uint64_t *from)
{
    ps_store_u64(to, *from);
    return to + sizeof *from;
}

static uint8_t *write_id(uint8_t *to, const ps_id_t *from)
{
    memcpy(to, from->bytes, PS_ID_SIZE);
    return to + PS_ID_SIZE;
}

static const uint8_t *read_u32(const uint8_t *at, uint32_t *ret)
{
    *ret = ps_load_u32(at);
    return at + sizeof *ret;
}

static const uint8_t *read_u64(const uint8_t *at, uint64_t *ret)
{
    *ret = ps_load_u64(at);
    return at + sizeof *ret;
}

static const uint8_t *read_id(const uint8_t *at, ps_id_t *ret)
{
    memcpy(ret->bytes, at, PS_ID_SIZE);
    return at + PS_ID_SIZE;
}

#define WRITE(type, name) at = write_##type(at, &self->name);
#define READ(type, name) at = read_##type(at, &ret->name);

/* Of size bytes with their head's checksum left out, and what follows. */
static uint64_t sum_of(const uint8_t *head, size_t size, ps_bytes_t stored)
{
    return ps_hash_spans((const ps_bytes_t[]){{head, size - SUM_SIZE}, stored}, 2);
}

void ps_snapshot_head_write(const ps_snapshot_head_t *self, uint8_t ret[PS_SNAPSHOT_HEAD])
{
    uint8_t *at = ret;

    PS_SNAPSHOT_HEAD_FIELDS(WRITE)
    ps_store_u64(at, sum_of(ret, PS_SNAPSHOT_HEAD, (ps_bytes_t){NULL, 0}));
}

void ps_block_write(const ps_snapshot_block_t *self, ps_bytes_t stored, uint8_t ret[PS_BLOCK_HEAD])
{
    uint8_t *at = ret;

    PS_BLOCK_FIELDS(WRITE)
    ps_store_u64(at, sum_of(ret, PS_BLOCK_HEAD, stored));
}

bool ps_snapshot_head_read(const uint8_t *bytes, ps_snapshot_head_t *ret)
{
    const uint8_t *at = bytes;

    PS_SNAPSHOT_HEAD_FIELDS(READ)
    return ps_load_u64(at) == sum_of(bytes, PS_SNAPSHOT_HEAD, (ps_bytes_t){NULL, 0});
}

void ps_block_read(const uint8_t *bytes, ps_snapshot_block_t *ret)
{
    const uint8_t *at = bytes;

    PS_BLOCK_FIELDS(READ)
    (void)at;
}

bool ps_block_is_sound(const uint8_t *bytes, ps_bytes_t stored)
{
    return ps_load_u64(bytes + PS_BLOCK_HEAD - SUM_SIZE) == sum_of(bytes, PS_BLOCK_HEAD, stored);
}

psd_status_t ps_snapshot_path(const ps_snapshot_dir_t *dir, const ps_snapshot_id_t *id,
                              const char *ending, ps_buffer_t *ret, psd_error_t *err)
{
    return ps_disk_path(ret, err, dir->dir,
                        "snap-%" PRIu32 "-%" PRIu32 "-%" PRIu64 "-%" PRIu64 ".rows%s", id->table,
                        id->partition, id->life, id->lsn, ending);
}
