/* SPDX-License-Identifier: Apache-2.0 */
#include "mpi/parcel.h"

#include <stddef.h>
#include <string.h>

#include "base/alloc.h"

static size_t padded(uint64_t size)
{
    return (size_t)(size + PS_MPI_PARCEL_ALIGN - 1) / PS_MPI_PARCEL_ALIGN * PS_MPI_PARCEL_ALIGN;
}

/* With room for that many bytes of frames; only the head is zeroed. */
static ps_mpi_parcel_t *make(size_t body_bytes)
{
    ps_mpi_parcel_t *self = ps_alloc_raw(1, sizeof *self + body_bytes);

    if (self != NULL) {
        memset(self, 0, sizeof *self);
        atomic_init(&self->n_held, 0);
        self->size = sizeof self->head + body_bytes;
    }
    return self;
}

ps_mpi_parcel_t *ps_mpi_parcel_new(int rank, ps_mpi_parcel_kind_t kind)
{
    ps_mpi_parcel_t *self = make(0);

    if (self != NULL) {
        self->rank = rank;
        self->head.magic = PS_MPI_PARCEL_MAGIC;
        self->head.kind = (uint32_t)kind;
    }
    return self;
}

ps_mpi_parcel_t *ps_mpi_parcel_of(const ps_carrier_frame_t *frames, size_t n)
{
    ps_mpi_parcel_t *self = NULL;
    size_t bytes = 0;

    for (size_t i = 0; i < n; i++) {
        if (frames[i].size > PS_MPI_PARCEL_BYTES_MAX - bytes) {
            return NULL;
        }
        bytes += padded(frames[i].size);
    }
    self = make(bytes);
    if (self == NULL) {
        return NULL;
    }
    self->head.magic = PS_MPI_PARCEL_MAGIC;
    self->head.kind = PS_MPI_PARCEL_DATA;
    self->head.n_frames = (uint32_t)n;
    for (size_t i = 0, at = 0; i < n; i++) {
        size_t size = frames[i].size;

        self->head.sizes[i] = size;
        if (size > 0) {
            memcpy(self->body + at, frames[i].data, size);
        }
        memset(self->body + at + size, 0, padded(size) - size);
        at += padded(size);
    }
    return self;
}

ps_mpi_parcel_t *ps_mpi_parcel_say(int rank, const char *key, const char *value)
{
    size_t key_size = strlen(key) + 1;
    size_t value_size = strlen(value) + 1;
    ps_mpi_parcel_t *self = make(key_size + value_size);

    if (self == NULL) {
        return NULL;
    }
    self->rank = rank;
    self->head.magic = PS_MPI_PARCEL_MAGIC;
    self->head.kind = PS_MPI_PARCEL_SAY;
    memcpy(self->body, key, key_size);
    memcpy(self->body + key_size, value, value_size);
    return self;
}

void ps_mpi_parcel_said(const ps_mpi_parcel_t *self, const char **ret_key, const char **ret_value)
{
    *ret_key = (const char *)self->body;
    *ret_value = *ret_key + strlen(*ret_key) + 1;
}

ps_mpi_parcel_t *ps_mpi_parcel_for(int rank, size_t size)
{
    size_t head_bytes = sizeof(ps_mpi_parcel_head_t);
    ps_mpi_parcel_t *self = make(size > head_bytes ? size - head_bytes : 0);

    if (self != NULL) {
        self->rank = rank;
        self->size = size;
    }
    return self;
}

void ps_mpi_parcel_free(ps_mpi_parcel_t *self)
{
    ps_free(self);
}

void ps_mpi_parcels_done(ps_mpi_parcels_t *self)
{
    ps_mpi_parcel_t *parcel = NULL;

    while ((parcel = STAILQ_FIRST(self)) != NULL) {
        STAILQ_REMOVE_HEAD(self, in_line);
        ps_mpi_parcel_free(parcel);
    }
}

void *ps_mpi_parcel_bytes(ps_mpi_parcel_t *self)
{
    return (uint8_t *)self + offsetof(ps_mpi_parcel_t, head);
}

/* Two texts and nothing else. */
static bool is_said(const ps_mpi_parcel_t *self, size_t size)
{
    const uint8_t *end = size == 0 ? NULL : memchr(self->body, 0, size);
    size_t left = end == NULL ? 0 : size - (size_t)(end + 1 - self->body);

    return left > 0 && left <= PS_CARRIER_TEXT && memchr(end + 1, 0, left) == end + left;
}

bool ps_mpi_parcel_is_good(const ps_mpi_parcel_t *self)
{
    size_t left = self->size - sizeof self->head;

    if (self->size < sizeof self->head || self->head.magic != PS_MPI_PARCEL_MAGIC ||
        self->head.kind < PS_MPI_PARCEL_OPEN || self->head.kind > PS_MPI_PARCEL_END) {
        return false;
    }
    if (self->head.kind == PS_MPI_PARCEL_SAY) {
        return is_said(self, left);
    }
    if (self->head.kind != PS_MPI_PARCEL_DATA) {
        return left == 0;
    }
    if (self->head.n_frames < 1 || self->head.n_frames > PS_CARRIER_FRAMES) {
        return false;
    }
    for (uint32_t i = 0; i < self->head.n_frames; i++) {
        if (self->head.sizes[i] > left || padded(self->head.sizes[i]) > left) {
            return false;
        }
        left -= padded(self->head.sizes[i]);
    }
    return left == 0;
}

static void free_frame(void *owner)
{
    ps_mpi_parcel_t *self = owner;

    if (atomic_fetch_sub(&self->n_held, 1) == 1) {
        ps_mpi_parcel_free(self);
    }
}

void ps_mpi_parcel_open(ps_mpi_parcel_t *self, ps_carrier_frame_t frames[PS_CARRIER_FRAMES],
                        size_t *ret_n)
{
    size_t at = 0;

    *ret_n = self->head.n_frames;
    atomic_store(&self->n_held, self->head.n_frames);
    for (size_t i = 0; i < *ret_n; i++) {
        frames[i] = (ps_carrier_frame_t){.data = self->body + at,
                                         .size = (size_t)self->head.sizes[i],
                                         .free_frame = free_frame,
                                         .owner = self};
        at += padded(self->head.sizes[i]);
    }
}
