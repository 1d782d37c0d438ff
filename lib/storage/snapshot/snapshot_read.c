/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a snapshot: no byte of the file is trusted before it is checked. */
#include <inttypes.h>
#include <string.h>
#include <zstd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "storage/snapshot/snapshot_block.h"
#include "storage/snapshot/snapshot_file.h"

#define AHEAD ((uint64_t)8 << 20) /* bytes that are fetched beforehand */

struct ps_snapshot_reader {
    ps_snapshot_dir_t dir;
    ps_buffer_t path; /* for texts */
    ps_disk_file_t *file;
    uint64_t size;   /* of the file */
    uint64_t offset; /* of the next block */
    uint64_t n_blocks;
    uint64_t plain_size;
    uint64_t sum;    /* of the heads of pieces' blocks */
    ZSTD_DCtx *zstd; /* owned; NULL until it is needed */
    uint8_t *stored; /* owned */
    size_t stored_capacity;
    uint8_t *plain; /* owned */
    size_t plain_capacity;
    ps_buffer_t joined; /* a piece of several blocks */
};

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for a snapshot");
}

static const char *path_of(const ps_snapshot_reader_t *self)
{
    return (const char *)self->path.data;
}

static psd_status_t damaged(const ps_snapshot_reader_t *self, uint64_t at, const char *what,
                            psd_error_t *err)
{
    return psd_error_set(err, PSD_DAMAGED, "%s: byte %" PRIu64 ": %s", path_of(self), at, what);
}

/* The next size bytes of the file; the block at offset needs them. */
static psd_status_t read_bytes(ps_snapshot_reader_t *self, uint64_t from, uint8_t *to, size_t size,
                               psd_error_t *err)
{
    size_t got = 0;
    psd_status_t rc = PSD_OK;

    if (size > self->size - from) {
        return damaged(self, self->size, "the file ends within a block", err);
    }
    rc = self->dir.disk->read(self->dir.disk, self->file, from, to, size, &got, err);
    if (rc == PSD_OK && got < size) {
        return damaged(self, from + got, "the file ends within a block", err);
    }
    return rc;
}

static psd_status_t check_head(const ps_snapshot_reader_t *self, const ps_snapshot_id_t *id,
                               const uint8_t *bytes, psd_error_t *err)
{
    char theirs[PS_ID_TEXT_SIZE];
    char ours[PS_ID_TEXT_SIZE];
    ps_snapshot_head_t head;
    bool sound = ps_snapshot_head_read(bytes, &head);

    if (head.magic != PS_SNAPSHOT_MAGIC) {
        return damaged(self, 0, "this is not a snapshot", err);
    }
    if (!sound) {
        return damaged(self, 0, "the head's checksum does not match", err);
    }
    if (head.version != PS_SNAPSHOT_VERSION) {
        return psd_error_set(err, PSD_FOREIGN,
                             "%s is of version %" PRIu32 "; this psd understands %d", path_of(self),
                             head.version, PS_SNAPSHOT_VERSION);
    }
    if (!ps_id_equal(&head.cluster, &self->dir.cluster)) {
        ps_id_format(&head.cluster, theirs);
        ps_id_format(&self->dir.cluster, ours);
        return psd_error_set(err, PSD_FOREIGN, "%s is of cluster %s; this one is %s", path_of(self),
                             theirs, ours);
    }
    if (head.table != id->table || head.partition != id->partition || head.lsn != id->lsn ||
        head.life != id->life) {
        return psd_error_set(err, PSD_DAMAGED,
                             "%s: byte 8: the head says table %" PRIu32 ", partition %" PRIu32
                             ", life %" PRIu64 ", lsn %" PRIu64 "; the name says something else",
                             path_of(self), head.table, head.partition, head.life, head.lsn);
    }
    return PSD_OK;
}

psd_status_t ps_snapshot_open(const ps_snapshot_dir_t *dir, const ps_snapshot_id_t *id,
                              ps_snapshot_reader_t **ret_reader, psd_error_t *err)
{
    PSD_AUTO(ps_snapshot_close)
    ps_snapshot_reader_t *self = ps_alloc(1, sizeof *self);
    uint8_t head[PS_SNAPSHOT_HEAD] = {0};
    psd_status_t rc = PSD_OK;

    if (self == NULL) {
        return no_memory(err);
    }
    self->dir = *dir;
    rc = ps_snapshot_path(dir, id, "", &self->path, err);
    if (rc == PSD_OK) {
        rc = dir->disk->open(dir->disk, path_of(self), PS_DISK_READ, &self->file, err);
    }
    if (rc == PSD_OK) {
        rc = dir->disk->size(dir->disk, self->file, &self->size, err);
    }
    if (rc == PSD_OK) {
        rc = read_bytes(self, 0, head, sizeof head, err);
    }
    if (rc == PSD_OK) {
        rc = check_head(self, id, head, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    self->offset = PS_SNAPSHOT_HEAD;
    *ret_reader = self;
    self = NULL;
    return PSD_OK;
}

void ps_snapshot_close(ps_snapshot_reader_t **self_p)
{
    ps_snapshot_reader_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    self->dir.disk->close(self->dir.disk, &self->file);
    (void)ZSTD_freeDCtx(self->zstd);
    ps_buffer_done(&self->path);
    ps_free(self->stored);
    ps_free(self->plain);
    ps_buffer_done(&self->joined);
    ps_free(self);
    *self_p = NULL;
}

static uint32_t method_of(const ps_snapshot_block_t *block)
{
    return block->method & ~(uint32_t)PS_PIECE_GOES_ON;
}

static bool goes_on(const ps_snapshot_block_t *block)
{
    return (block->method & PS_PIECE_GOES_ON) != 0;
}

/* What a block says before its bytes have been seen: enough to know how many to
 * read. */
static psd_status_t check_block(const ps_snapshot_reader_t *self, const ps_snapshot_block_t *block,
                                psd_error_t *err)
{
    bool is_end = block->magic == PS_END_MAGIC;
    uint64_t behind = self->size - self->offset - PS_BLOCK_HEAD;

    if (!is_end && block->magic != PS_PIECE_MAGIC) {
        return damaged(self, self->offset, "there is neither piece nor end", err);
    }
    if (block->stored_size > behind) {
        return damaged(self, self->size, "the file ends within a block", err);
    }
    if (is_end
            ? block->stored_size != 0 || block->method != PS_PIECE_RAW
            : block->plain_size > PS_BLOCK_MAX || block->stored_size > block->plain_size ||
                  method_of(block) > PS_PIECE_ZSTD ||
                  (method_of(block) == PS_PIECE_RAW && block->stored_size != block->plain_size)) {
        return damaged(self, self->offset, "the sizes of a block contradict each other", err);
    }
    return PSD_OK;
}

static psd_status_t check_order(const ps_snapshot_reader_t *self, const ps_snapshot_block_t *block,
                                psd_error_t *err)
{
    uint64_t end = self->offset + PS_BLOCK_HEAD;

    if (block->number != self->n_blocks) {
        return damaged(self, self->offset, "a piece is missing", err);
    }
    if (block->magic != PS_END_MAGIC) {
        return PSD_OK;
    }
    if (block->plain_size != self->plain_size) {
        return damaged(self, self->offset, "the sizes of the pieces do not add up", err);
    }
    return end == self->size ? PSD_OK : damaged(self, end, "there are bytes after the end", err);
}

static psd_status_t unpack(ps_snapshot_reader_t *self, const ps_snapshot_block_t *block,
                           ps_bytes_t *ret, psd_error_t *err)
{
    size_t size = (size_t)block->plain_size;
    size_t got = 0;

    if (method_of(block) == PS_PIECE_RAW) {
        *ret = (ps_bytes_t){self->stored, size};
        return PSD_OK;
    }
    if (ZSTD_getFrameContentSize(self->stored, (size_t)block->stored_size) != block->plain_size) {
        return damaged(self, self->offset, "its zstd frame has another size", err);
    }
    if (self->zstd == NULL) {
        self->zstd = ZSTD_createDCtx();
    }
    if (self->zstd == NULL || !ps_grow(&self->plain, &self->plain_capacity, size + 1, 1)) {
        return no_memory(err);
    }
    got = ZSTD_decompressDCtx(self->zstd, self->plain, size, self->stored,
                              (size_t)block->stored_size);
    if (ZSTD_isError(got) != 0 || got != size) {
        return damaged(self, self->offset, "zstd cannot decompress it", err);
    }
    *ret = (ps_bytes_t){self->plain, size};
    return PSD_OK;
}

static psd_status_t read_block(ps_snapshot_reader_t *self, uint8_t head[PS_BLOCK_HEAD],
                               ps_snapshot_block_t *ret, psd_error_t *err)
{
    size_t size = 0;
    psd_status_t rc = read_bytes(self, self->offset, head, PS_BLOCK_HEAD, err);

    if (rc != PSD_OK) {
        return rc;
    }
    ps_block_read(head, ret);
    rc = check_block(self, ret, err);
    if (rc != PSD_OK) {
        return rc;
    }
    size = (size_t)ret->stored_size;
    if (!ps_grow(&self->stored, &self->stored_capacity, size + 1, 1)) {
        return no_memory(err);
    }
    self->dir.disk->ahead(self->dir.disk, self->file, self->offset + PS_BLOCK_HEAD + size, AHEAD);
    rc = read_bytes(self, self->offset + PS_BLOCK_HEAD, self->stored, size, err);
    if (rc == PSD_OK && !ps_block_is_sound(head, (ps_bytes_t){self->stored, size})) {
        return damaged(self, self->offset, "the checksum of a block does not match", err);
    }
    return rc == PSD_OK ? check_order(self, ret, err) : rc;
}

static psd_status_t next_block(ps_snapshot_reader_t *self, ps_snapshot_block_t *ret_block,
                               ps_bytes_t *ret_bytes, psd_error_t *err)
{
    uint8_t head[PS_BLOCK_HEAD] = {0};
    psd_status_t rc = read_block(self, head, ret_block, err);

    *ret_bytes = (ps_bytes_t){NULL, 0};
    if (rc == PSD_OK && ret_block->magic == PS_PIECE_MAGIC) {
        self->sum = ps_hash_bytes(head, sizeof head, self->sum);
        rc = unpack(self, ret_block, ret_bytes, err);
    }
    if (rc == PSD_OK) {
        self->offset += PS_BLOCK_HEAD + ret_block->stored_size;
        self->n_blocks++;
        self->plain_size += ret_block->plain_size;
    }
    return rc;
}

psd_status_t ps_snapshot_next(ps_snapshot_reader_t *self, ps_snapshot_piece_t *ret_piece,
                              psd_error_t *err)
{
    ps_snapshot_block_t block = {0};
    ps_bytes_t bytes = {NULL, 0};
    bool is_first = true;
    uint64_t at = self->offset;
    psd_status_t rc = next_block(self, &block, &bytes, err);

    self->joined.size = 0;
    while (rc == PSD_OK && (goes_on(&block) || !is_first)) {
        if (!ps_buffer_append(&self->joined, bytes.data, bytes.size)) {
            return no_memory(err);
        }
        bytes = (ps_bytes_t){self->joined.data, self->joined.size};
        if (!goes_on(&block)) {
            break;
        }
        is_first = false;
        at = self->offset;
        rc = next_block(self, &block, &bytes, err);
        if (rc == PSD_OK && block.magic == PS_END_MAGIC) {
            return damaged(self, at, "a piece does not continue", err);
        }
    }
    if (rc == PSD_OK) {
        *ret_piece = (ps_snapshot_piece_t){.lsn = block.lsn,
                                           .bytes = bytes,
                                           .is_end = block.magic == PS_END_MAGIC,
                                           .sum = self->sum};
    }
    return rc;
}
