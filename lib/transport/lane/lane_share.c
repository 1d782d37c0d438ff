/* SPDX-License-Identifier: Apache-2.0 */
/* Making, sealing and mapping the memory of a lane. */
#include "transport/lane/lane_share.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

/* The mapped memory cannot be truncated, and that cannot be undone. */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define NEEDED_SEALS F_SEAL_SHRINK

static psd_status_t failed(psd_error_t *err, const char *doing)
{
    char reason[128] = "";
    int code = errno;

    return psd_error_set(err, code == ENOMEM ? PSD_NOMEM : PSD_IO, "%s a lane's memory: %s", doing,
                         strerror_r(code, reason, sizeof reason));
}

static uint64_t page_bytes(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t file_bytes(const ps_lane_sizes_t *sizes)
{
    return page_bytes() + sizes->request_bytes + sizes->reply_bytes + sizes->arena_bytes;
}

static bool is_ring(uint64_t bytes)
{
    return bytes >= PS_LANE_RING_MIN && bytes <= PS_LANE_BYTES_MAX && (bytes & (bytes - 1)) == 0 &&
           bytes % page_bytes() == 0;
}

static psd_status_t check_sizes(const ps_lane_sizes_t *sizes, psd_error_t *err)
{
    if (is_ring(sizes->request_bytes) && is_ring(sizes->reply_bytes) && sizes->arena_bytes > 0 &&
        sizes->arena_bytes <= PS_LANE_BYTES_MAX && sizes->arena_bytes % page_bytes() == 0) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_PROTO,
                         "a lane's rings are %" PRIu64 " and %" PRIu64
                         " bytes; allowed: powers of two from %" PRIu64 " on; its arena is %" PRIu64
                         " bytes; allowed: whole pages of %" PRIu64 " bytes",
                         sizes->request_bytes, sizes->reply_bytes, PS_LANE_RING_MIN,
                         sizes->arena_bytes, page_bytes());
}

/* Puts size bytes of the file from `at` on to `to`, which is reserved. */
static bool map_at(uint8_t *to, int fd, uint64_t at, uint64_t size)
{
    return mmap(to, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)at) !=
           MAP_FAILED;
}

/* Page of counters, requests, requests, replies, replies, arena. */
static bool map_all(ps_lane_share_t *self, int fd)
{
    const ps_lane_sizes_t *sizes = &self->sizes;
    uint64_t page = page_bytes();
    uint64_t replies_at = page + sizes->request_bytes;

    self->counters = (ps_lane_counters_t *)(void *)self->mapped;
    self->requests = self->mapped + page;
    self->replies = self->requests + 2 * sizes->request_bytes;
    self->arena = self->replies + 2 * sizes->reply_bytes;
    return map_at(self->mapped, fd, 0, page) &&
           map_at(self->requests, fd, page, sizes->request_bytes) &&
           map_at(self->requests + sizes->request_bytes, fd, page, sizes->request_bytes) &&
           map_at(self->replies, fd, replies_at, sizes->reply_bytes) &&
           map_at(self->replies + sizes->reply_bytes, fd, replies_at, sizes->reply_bytes) &&
           map_at(self->arena, fd, replies_at + sizes->reply_bytes, sizes->arena_bytes);
}

static psd_status_t new_share(int fd, const ps_lane_sizes_t *sizes, ps_lane_share_t **ret_share,
                              psd_error_t *err)
{
    PSD_AUTO(ps_lane_share_drop)
    ps_lane_share_t *self = ps_alloc(1, sizeof *self);
    size_t bytes = (size_t)(file_bytes(sizes) + sizes->request_bytes + sizes->reply_bytes);
    void *mapped = NULL;

    static_assert(sizeof(ps_lane_counters_t) <= 4096, "counters in one page");
    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a lane");
    }
    atomic_init(&self->n_holders, 1);
    self->sizes = *sizes;
    if (!ps_arena_init(&self->free, sizes->arena_bytes)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a lane");
    }
    mapped = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) {
        return failed(err, "reserve room for");
    }
    self->mapped = mapped;
    self->mapped_bytes = bytes;
    if (!map_all(self, fd)) {
        return failed(err, "map");
    }
    *ret_share = self;
    self = NULL;
    return PSD_OK;
}

psd_status_t ps_lane_share_new(const ps_lane_sizes_t *sizes, ps_lane_share_t **ret_share,
                               int *ret_fd, psd_error_t *err)
{
    psd_status_t rc = check_sizes(sizes, err);
    int fd = -1;

    if (rc != PSD_OK) {
        return rc;
    }
    fd = memfd_create("psd-lane", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        return failed(err, "make");
    }
    if (ftruncate(fd, (off_t)file_bytes(sizes)) != 0 || fcntl(fd, F_ADD_SEALS, SEALS) != 0) {
        rc = failed(err, "size and seal");
    } else {
        rc = new_share(fd, sizes, ret_share, err);
    }
    if (rc != PSD_OK) {
        (void)close(fd);
        return rc;
    }
    *ret_fd = fd;
    return PSD_OK;
}

psd_status_t ps_lane_share_adopt(int fd, const ps_lane_sizes_t *sizes, ps_lane_share_t **ret_share,
                                 psd_error_t *err)
{
    struct stat about = {0};
    int seals = fcntl(fd, F_GET_SEALS);
    psd_status_t rc = check_sizes(sizes, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (fstat(fd, &about) != 0) {
        return failed(err, "ask about");
    }
    if (seals < 0 || (seals & NEEDED_SEALS) != NEEDED_SEALS ||
        (uint64_t)about.st_size != file_bytes(sizes)) {
        return psd_error_set(
            err, PSD_PROTO,
            "a lane's memory is %" PRIu64 " bytes, %s; allowed: %" PRIu64 ", sealed",
            (uint64_t)about.st_size, seals < 0 ? "not sealed" : "sealed", file_bytes(sizes));
    }
    rc = new_share(fd, sizes, ret_share, err);
    if (rc == PSD_OK) {
        (*ret_share)->apart.mapped = (*ret_share)->mapped;
        (*ret_share)->apart.mapped_bytes = (*ret_share)->mapped_bytes;
        ps_fork_add(&(*ret_share)->apart);
    }
    return rc;
}

ps_lane_share_t *ps_lane_share_keep(ps_lane_share_t *self)
{
    (void)atomic_fetch_add_explicit(&self->n_holders, 1, memory_order_relaxed);
    return self;
}

void ps_lane_share_drop(ps_lane_share_t **self_p)
{
    ps_lane_share_t *self = *self_p;
    unsigned before = 0;

    if (self == NULL) {
        return;
    }
    *self_p = NULL;
    before = atomic_fetch_sub_explicit(&self->n_holders, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before > 1) {
        return;
    }
    if (self->apart.mapped != NULL) {
        ps_fork_remove(&self->apart);
    }
    if (self->mapped != NULL) {
        (void)munmap(self->mapped, self->mapped_bytes);
    }
    ps_arena_done(&self->free);
    ps_free(self);
}
