/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a snapshot, and which ones there are; snapshot_read.c reads one. */
#include "storage/snapshot/snapshot_file.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <zstd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/text.h"
#include "storage/snapshot/snapshot_block.h"

#define SAMPLED_FROM ((size_t)64 << 10) /* pieces that are tried before … */
#define SAMPLE_BYTES ((size_t)8 << 10)  /* … with two of this size … */
#define LEAST_PART 10                   /* … of which a 10th is to be saved */
#define MOST_UNTRIED 15                 /* pieces after one that was tried in vain */

struct ps_snapshot_writer {
    ps_snapshot_dir_t dir;
    ps_snapshot_id_t id;
    int level;
    ps_disk_file_t *file;
    uint64_t bytes; /* written */
    uint64_t n_blocks;
    uint64_t plain_size; /* of all pieces */
    uint64_t sum;        /* of the heads of their blocks */
    ZSTD_CCtx *zstd;     /* owned; NULL until it is needed */
    uint8_t *packed;     /* owned */
    size_t capacity;
    unsigned untried; /* pieces after the last one tried in vain … */
    unsigned left;    /* … and the number of them still to come */
};

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for a snapshot");
}

/* ---- the directory ------------------------------------------------------- */

typedef struct listing {
    const char *dir;
    ps_snapshot_id_t *whole; /* owned */
    size_t n_whole;
    size_t whole_capacity;
    ps_snapshot_id_t *stale; /* owned */
    size_t n_stale;
    size_t stale_capacity;
} listing_t;

/* The number before the text `behind`; moves *at_p past that text. */
static bool take_number(const char **at_p, const char *behind, uint64_t max, uint64_t *ret)
{
    char digits[24];
    size_t length = strspn(*at_p, "0123456789");

    if (length >= sizeof digits || strncmp(*at_p + length, behind, strlen(behind)) != 0) {
        return false;
    }
    memcpy(digits, *at_p, length);
    digits[length] = '\0';
    *at_p += length + strlen(behind);
    return ps_text_u64(digits, ret) && *ret <= max;
}

/* The id in a name, and whether it is that of a whole file. Only names that we
 * would write are ours. */
static bool parse_name(const char *name, ps_snapshot_id_t *ret_id, bool *ret_is_whole)
{
    const char *at = name + strlen("snap-");
    uint64_t table = 0;
    uint64_t partition = 0;
    char again[96];

    if (strncmp(name, "snap-", strlen("snap-")) != 0 ||
        !take_number(&at, "-", UINT32_MAX, &table) ||
        !take_number(&at, "-", UINT32_MAX, &partition) ||
        !take_number(&at, "-", UINT64_MAX, &ret_id->life) ||
        !take_number(&at, ".rows", UINT64_MAX, &ret_id->lsn)) {
        return false;
    }
    ret_id->table = (uint32_t)table;
    ret_id->partition = (uint32_t)partition;
    *ret_is_whole = *at == '\0';
    (void)snprintf(again, sizeof again,
                   "snap-%" PRIu32 "-%" PRIu32 "-%" PRIu64 "-%" PRIu64 ".rows%s", ret_id->table,
                   ret_id->partition, ret_id->life, ret_id->lsn, *ret_is_whole ? "" : ".tmp");
    return strcmp(name, again) == 0;
}

bool ps_snapshot_parse(const char *name, ps_snapshot_id_t *ret_id)
{
    bool is_whole = false;

    return parse_name(name, ret_id, &is_whole) && is_whole;
}

/* A name of ours, but for what we do not know: rows may be in there. */
static bool is_strange(const char *name)
{
    size_t length = strlen(name);
    size_t ending = strlen(".rows");

    return strncmp(name, "snap-", strlen("snap-")) == 0 && length > ending &&
           strcmp(name + length - ending, ".rows") == 0;
}

static psd_status_t take_name(void *context, const char *name, psd_error_t *err)
{
    listing_t *self = context;
    ps_snapshot_id_t id = {0};
    bool is_whole = false;

    if (!parse_name(name, &id, &is_whole)) {
        return is_strange(name) ? psd_error_set(err, PSD_FOREIGN,
                                                "%s/%s: not a snapshot name of this psd; allowed: "
                                                "snap-<table>-<partition>-<life>-<lsn>.rows; start "
                                                "the psd that wrote it, or move the file away",
                                                self->dir, name)
                                : PSD_OK;
    }
    if (is_whole) {
        if (!ps_grow(&self->whole, &self->whole_capacity, self->n_whole + 1, sizeof id)) {
            return no_memory(err);
        }
        self->whole[self->n_whole++] = id;
    } else {
        if (!ps_grow(&self->stale, &self->stale_capacity, self->n_stale + 1, sizeof id)) {
            return no_memory(err);
        }
        self->stale[self->n_stale++] = id;
    }
    return PSD_OK;
}

static psd_status_t remove_file(const ps_snapshot_dir_t *dir, const ps_snapshot_id_t *id,
                                const char *ending, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    psd_status_t rc = ps_snapshot_path(dir, id, ending, &path, err);

    return rc == PSD_OK ? dir->disk->remove(dir->disk, (const char *)path.data, err) : rc;
}

psd_status_t ps_snapshot_list(const ps_snapshot_dir_t *dir, ps_snapshot_each_t *each, void *context,
                              psd_error_t *err)
{
    listing_t listing = {.dir = dir->dir};
    psd_status_t rc = dir->disk->list(dir->disk, dir->dir, take_name, &listing, err);

    for (size_t i = 0; i < listing.n_stale && rc == PSD_OK; i++) {
        rc = remove_file(dir, &listing.stale[i], ".tmp", err);
    }
    for (size_t i = 0; i < listing.n_whole && rc == PSD_OK; i++) {
        rc = each(context, &listing.whole[i], err);
    }
    ps_free(listing.whole);
    ps_free(listing.stale);
    return rc;
}

psd_status_t ps_snapshot_size(const ps_snapshot_dir_t *dir, const ps_snapshot_id_t *id,
                              uint64_t *ret_bytes, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    ps_disk_file_t *file = NULL;
    psd_status_t rc = ps_snapshot_path(dir, id, "", &path, err);

    if (rc == PSD_OK) {
        rc = dir->disk->open(dir->disk, (const char *)path.data, PS_DISK_READ, &file, err);
    }
    if (rc == PSD_OK) {
        rc = dir->disk->size(dir->disk, file, ret_bytes, err);
    }
    dir->disk->close(dir->disk, &file);
    return rc;
}

psd_status_t ps_snapshot_remove(const ps_snapshot_dir_t *dir, const ps_snapshot_id_t *id,
                                psd_error_t *err)
{
    return remove_file(dir, id, "", err);
}

/* ---- writing ------------------------------------------------------------- */

static void destroy(ps_snapshot_writer_t **self_p)
{
    ps_snapshot_writer_t *self = *self_p;

    self->dir.disk->close(self->dir.disk, &self->file);
    (void)ZSTD_freeCCtx(self->zstd);
    ps_free(self->packed);
    ps_free(self);
    *self_p = NULL;
}

void ps_snapshot_abort(ps_snapshot_writer_t **self_p)
{
    ps_snapshot_writer_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    /* What stays is removed at the next start. */
    if (self->file != NULL) {
        psd_status_t rc = remove_file(&self->dir, &self->id, ".tmp", NULL);

        (void)rc;
    }
    destroy(self_p);
}

static psd_status_t append(ps_snapshot_writer_t *self, const ps_bytes_t *spans, size_t n,
                           psd_error_t *err)
{
    psd_status_t rc = self->dir.disk->write(self->dir.disk, self->file, self->bytes, spans, n, err);

    for (size_t i = 0; i < n && rc == PSD_OK; i++) {
        self->bytes += spans[i].size;
    }
    return rc;
}

static psd_status_t write_head(ps_snapshot_writer_t *self, psd_error_t *err)
{
    ps_snapshot_head_t head = {.magic = PS_SNAPSHOT_MAGIC,
                               .version = PS_SNAPSHOT_VERSION,
                               .table = self->id.table,
                               .partition = self->id.partition,
                               .lsn = self->id.lsn,
                               .life = self->id.life,
                               .cluster = self->dir.cluster};
    uint8_t bytes[PS_SNAPSHOT_HEAD];

    ps_snapshot_head_write(&head, bytes);
    return append(self, &(ps_bytes_t){bytes, sizeof bytes}, 1, err);
}

psd_status_t ps_snapshot_begin(const ps_snapshot_dir_t *dir, const ps_snapshot_id_t *id, int level,
                               ps_snapshot_writer_t **ret_writer, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    PSD_AUTO(ps_snapshot_abort)
    ps_snapshot_writer_t *self = ps_alloc(1, sizeof *self);
    psd_status_t rc = PSD_OK;

    assert(level >= 0 && level <= 19);
    if (self == NULL) {
        return no_memory(err);
    }
    self->dir = *dir;
    self->id = *id;
    self->level = level;
    rc = ps_snapshot_path(dir, id, ".tmp", &path, err);
    if (rc == PSD_OK) {
        rc = dir->disk->open(dir->disk, (const char *)path.data,
                             dir->streams ? PS_DISK_STREAM : PS_DISK_NEW, &self->file, err);
    }
    if (rc == PSD_OK) {
        rc = write_head(self, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_writer = self;
    self = NULL;
    return PSD_OK;
}

/* zstd makes something of two samples. */
static bool samples_shrink(ps_snapshot_writer_t *self, ps_bytes_t bytes)
{
    for (size_t i = 1; i <= 3; i += 2) {
        size_t size = ZSTD_compressCCtx(self->zstd, self->packed, self->capacity,
                                        bytes.data + bytes.size / 4 * i - SAMPLE_BYTES / 2,
                                        SAMPLE_BYTES, self->level);

        if (ZSTD_isError(size) == 0 && size < SAMPLE_BYTES - SAMPLE_BYTES / LEAST_PART) {
            return true;
        }
    }
    return false;
}

/* Whether zstd shrinks the bytes. To try it on all pieces that do not shrink
 * would take longer than to write them. Pieces after such a piece are mostly of
 * the same kind, so fewer and fewer are tried. */
static bool shrinks(ps_snapshot_writer_t *self, ps_bytes_t bytes)
{
    if (bytes.size < SAMPLED_FROM) {
        return true;
    }
    if (self->left > 0) {
        self->left--;
        return false;
    }
    if (samples_shrink(self, bytes)) {
        self->untried = 0;
        return true;
    }
    self->untried = 2 * self->untried + 1;
    if (self->untried > MOST_UNTRIED) {
        self->untried = MOST_UNTRIED;
    }
    self->left = self->untried;
    return false;
}

/* *stored becomes what zstd makes of it, if that is smaller. */
static psd_status_t pack(ps_snapshot_writer_t *self, ps_bytes_t *stored, uint32_t *ret_method,
                         psd_error_t *err)
{
    size_t size = 0;

    *ret_method = PS_PIECE_RAW;
    if (self->level == 0 || stored->size < 2) {
        return PSD_OK;
    }
    if (self->zstd == NULL) {
        self->zstd = ZSTD_createCCtx();
    }
    if (self->zstd == NULL || !ps_grow(&self->packed, &self->capacity, stored->size, 1)) {
        return no_memory(err);
    }
    if (!shrinks(self, *stored)) {
        return PSD_OK;
    }
    size = ZSTD_compressCCtx(self->zstd, self->packed, stored->size - 1, stored->data, stored->size,
                             self->level);
    if (ZSTD_isError(size) == 0) {
        *stored = (ps_bytes_t){self->packed, size};
        *ret_method = PS_PIECE_ZSTD;
    }
    return PSD_OK;
}

static psd_status_t add_block(ps_snapshot_writer_t *self, uint64_t lsn, ps_bytes_t plain,
                              bool goes_on, psd_error_t *err)
{
    ps_snapshot_block_t block = {
        .magic = PS_PIECE_MAGIC, .number = self->n_blocks, .lsn = lsn, .plain_size = plain.size};
    ps_bytes_t spans[2] = {{NULL, PS_BLOCK_HEAD}, plain};
    uint8_t head[PS_BLOCK_HEAD];
    psd_status_t rc = pack(self, &spans[1], &block.method, err);

    if (rc != PSD_OK) {
        return rc;
    }
    block.method |= goes_on ? (uint32_t)PS_PIECE_GOES_ON : 0;
    block.stored_size = spans[1].size;
    ps_block_write(&block, spans[1], head);
    spans[0].data = head;
    rc = append(self, spans, 2, err);
    if (rc == PSD_OK) {
        self->n_blocks++;
        self->sum = ps_hash_bytes(head, sizeof head, self->sum);
        self->plain_size += plain.size;
    }
    return rc;
}

psd_status_t ps_snapshot_add(ps_snapshot_writer_t *self, uint64_t lsn, ps_bytes_t piece,
                             psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && piece.size > PS_BLOCK_MAX) {
        rc = add_block(self, lsn, (ps_bytes_t){piece.data, PS_BLOCK_MAX}, true, err);
        piece.data += PS_BLOCK_MAX;
        piece.size -= PS_BLOCK_MAX;
    }
    return rc == PSD_OK ? add_block(self, lsn, piece, false, err) : rc;
}

uint64_t ps_snapshot_bytes(const ps_snapshot_writer_t *self)
{
    return self->bytes;
}

uint64_t ps_snapshot_sum(const ps_snapshot_writer_t *self)
{
    return self->sum;
}

static psd_status_t write_end(ps_snapshot_writer_t *self, uint64_t last_lsn, psd_error_t *err)
{
    ps_snapshot_block_t block = {.magic = PS_END_MAGIC,
                                 .number = self->n_blocks,
                                 .lsn = last_lsn,
                                 .plain_size = self->plain_size};
    uint8_t head[PS_BLOCK_HEAD];

    ps_block_write(&block, (ps_bytes_t){NULL, 0}, head);
    return append(self, &(ps_bytes_t){head, sizeof head}, 1, err);
}

static psd_status_t rename_whole(ps_snapshot_writer_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t from = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t to = {0};
    psd_status_t rc = ps_snapshot_path(&self->dir, &self->id, ".tmp", &from, err);

    if (rc == PSD_OK) {
        rc = ps_snapshot_path(&self->dir, &self->id, "", &to, err);
    }
    return rc == PSD_OK ? self->dir.disk->rename(self->dir.disk, (const char *)from.data,
                                                 (const char *)to.data, err)
                        : rc;
}

psd_status_t ps_snapshot_commit(ps_snapshot_writer_t **self_p, uint64_t last_lsn, psd_error_t *err)
{
    ps_snapshot_writer_t *self = *self_p;
    ps_disk_t *disk = self->dir.disk;
    psd_status_t rc = write_end(self, last_lsn, err);

    if (rc == PSD_OK) {
        rc = disk->flush(disk, self->file, err);
    }
    if (rc == PSD_OK) {
        rc = rename_whole(self, err);
    }
    if (rc != PSD_OK) {
        ps_snapshot_abort(self_p);
        return rc;
    }
    rc = disk->flush_dir(disk, self->dir.dir, err);
    destroy(self_p);
    return rc;
}
