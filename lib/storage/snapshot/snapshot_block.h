/* SPDX-License-Identifier: Apache-2.0 */
/* Private to snapshots: the byte format of head, pieces and end. */
#ifndef PS_STORAGE_SNAPSHOT_BLOCK_H
#define PS_STORAGE_SNAPSHOT_BLOCK_H

#include "storage/snapshot/snapshot_file.h"

#define PS_SNAPSHOT_VERSION 2
#define PS_SNAPSHOT_MAGIC UINT32_C(0x6e537370) /* "psSn": the head */
#define PS_PIECE_MAGIC UINT32_C(0x63507370)    /* "psPc" */
#define PS_END_MAGIC UINT32_C(0x6e457370)      /* "psEn" */
#define PS_SNAPSHOT_HEAD 56
#define PS_BLOCK_HEAD 48
#define PS_BLOCK_MAX                                        \
    ((size_t)64 << 20) /* plain bytes; longer pieces lie in \
                          several blocks */

typedef enum ps_piece_method {
    PS_PIECE_RAW = 0,
    PS_PIECE_ZSTD = 1,
    PS_PIECE_GOES_ON = 0x100 /* beside one of them: in the next block, too */
} ps_piece_method_t;

/* X(type, name), little-endian without padding; the checksum, u64, follows. */
#define PS_SNAPSHOT_HEAD_FIELDS(X) \
    X(u32, magic)                  \
    X(u32, version)                \
    X(u32, table)                  \
    X(u32, partition)              \
    X(u64, lsn)                    \
    X(u64, life)                   \
    X(id, cluster)
/* Of a piece, and of the end: there number is that of all pieces, lsn the last
 * one, plain_size that of all pieces, and nothing is stored. */
#define PS_BLOCK_FIELDS(X) \
    X(u32, magic)          \
    X(u32, method)         \
    X(u64, number)         \
    X(u64, lsn)            \
    X(u64, plain_size)     \
    X(u64, stored_size)

#define PS_SNAPSHOT_TYPE_u32 uint32_t
#define PS_SNAPSHOT_TYPE_u64 uint64_t
#define PS_SNAPSHOT_TYPE_id ps_id_t
#define PS_SNAPSHOT_MEMBER(type, name) PS_SNAPSHOT_TYPE_##type name;
typedef struct ps_snapshot_head {
    PS_SNAPSHOT_HEAD_FIELDS(PS_SNAPSHOT_MEMBER)
} ps_snapshot_head_t;
typedef struct ps_snapshot_block {
    PS_BLOCK_FIELDS(PS_SNAPSHOT_MEMBER)
} ps_snapshot_block_t;

/* Heads with the checksum of their fields, and of `stored`, which follows. */
void ps_snapshot_head_write(const ps_snapshot_head_t *self, uint8_t ret[PS_SNAPSHOT_HEAD]);
void ps_block_write(const ps_snapshot_block_t *self, ps_bytes_t stored, uint8_t ret[PS_BLOCK_HEAD]);
/* False: the checksum is not theirs; ret is filled in nevertheless. */
PSD_MUST_CHECK bool ps_snapshot_head_read(const uint8_t *bytes, ps_snapshot_head_t *ret);
void ps_block_read(const uint8_t *bytes, ps_snapshot_block_t *ret);
PSD_MUST_CHECK bool ps_block_is_sound(const uint8_t *bytes, ps_bytes_t stored);

PSD_MUST_CHECK psd_status_t ps_snapshot_path(const ps_snapshot_dir_t *dir,
                                             const ps_snapshot_id_t *id, const char *ending,
                                             ps_buffer_t *ret, psd_error_t *err);
#endif
