/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of records, each with the holder of its bytes. */
#include "protocol/replica/tail.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

#define CAPACITY_MIN 16

static ps_tail_record_t *at(const ps_tail_t *self, uint64_t lsn)
{
    return &self->ring[lsn & (self->capacity - 1)];
}

void ps_tail_init(ps_tail_t *self, uint64_t lsn, uint64_t epoch)
{
    *self = (ps_tail_t){.first = lsn + 1, .before = epoch};
}

void ps_tail_done(ps_tail_t *self)
{
    if (self->n > 0) {
        ps_tail_cut(self, ps_tail_last(self));
    }
    ps_free(self->ring);
    *self = (ps_tail_t){.first = 1};
}

void ps_tail_restart(ps_tail_t *self, uint64_t lsn, uint64_t epoch)
{
    uint64_t *sum = self->sum;

    ps_tail_done(self);
    ps_tail_init(self, lsn, epoch);
    self->sum = sum;
}

/* Adds to the bytes of this tail and of all; unsigned, so minus works too. */
static void count(ps_tail_t *self, uint64_t bytes)
{
    self->bytes += bytes;
    if (self->sum != NULL) {
        *self->sum += bytes;
    }
}

bool ps_tail_reserve(ps_tail_t *self)
{
    size_t capacity = self->capacity == 0 ? CAPACITY_MIN : 2 * self->capacity;
    ps_tail_record_t *ring = NULL;

    if (self->n < self->capacity) {
        return true;
    }
    ring = ps_alloc(capacity, sizeof *ring);
    if (ring == NULL) {
        return false;
    }
    for (uint64_t lsn = self->first; lsn < self->first + self->n; lsn++) {
        ring[lsn & (capacity - 1)] = *at(self, lsn);
    }
    ps_free(self->ring);
    self->ring = ring;
    self->capacity = capacity;
    return true;
}

void ps_tail_add(ps_tail_t *self, uint64_t epoch, ps_bytes_t bytes, ps_payload_t *holder)
{
    assert(self->n < self->capacity);
    self->end += bytes.size;
    *at(self, self->first + self->n) = (ps_tail_record_t){
        .epoch = epoch, .bytes = bytes, .holder = ps_payload_keep(holder), .end = self->end};
    self->n++;
    count(self, bytes.size);
}

void ps_tail_pass(ps_tail_t *self, uint64_t lsn, uint64_t epoch)
{
    ps_tail_cut(self, UINT64_MAX);
    self->first = lsn + 1;
    self->before = epoch;
}

const ps_tail_record_t *ps_tail_get(const ps_tail_t *self, uint64_t lsn)
{
    return lsn >= self->first && lsn - self->first < self->n ? at(self, lsn) : NULL;
}

bool ps_tail_epoch(const ps_tail_t *self, uint64_t lsn, uint64_t *ret_epoch)
{
    const ps_tail_record_t *record = ps_tail_get(self, lsn);

    if (record == NULL && lsn != self->first - 1 && lsn != 0) {
        return false;
    }
    *ret_epoch = record != NULL ? record->epoch : lsn == self->first - 1 ? self->before : 0;
    return true;
}

void ps_tail_cut(ps_tail_t *self, uint64_t lsn)
{
    while (self->n > 0 && self->first <= lsn) {
        ps_tail_record_t *record = at(self, self->first);

        self->before = record->epoch;
        count(self, 0 - (uint64_t)record->bytes.size);
        ps_payload_destroy(&record->holder);
        self->first++;
        self->n--;
    }
}

static void release(void *owner)
{
    ps_payload_t *holder = owner;

    ps_payload_destroy(&holder);
}

/* The single record, without copying. */
static ps_payload_t *borrow(const ps_tail_record_t *record)
{
    ps_payload_t *holder = ps_payload_keep(record->holder);
    ps_payload_t *payload =
        ps_payload_new((ps_bytes_t){0}, (ps_bytes_t){0}, record->bytes, holder, release);

    if (payload == NULL) {
        ps_payload_destroy(&holder);
    }
    return payload;
}

ps_payload_t *ps_tail_pack(const ps_tail_t *self, uint64_t lsn, size_t most, uint32_t *ret_n)
{
    const ps_tail_record_t *record = ps_tail_get(self, lsn);
    ps_payload_t *payload = NULL;
    uint8_t *to = NULL;
    size_t size = 0;
    uint32_t n = 0;

    while (record != NULL && n < UINT32_MAX &&
           (n == 0 || (size < most && record->bytes.size <= most - size))) {
        size += record->bytes.size;
        n++;
        record = ps_tail_get(self, lsn + n);
    }
    *ret_n = 0;
    if (n == 0) {
        return NULL;
    }
    payload = n == 1 ? borrow(at(self, lsn)) : ps_payload_room(0, 0, size, &to);
    if (payload == NULL) {
        return NULL;
    }
    for (uint32_t i = 0; n > 1 && i < n; i++) {
        record = at(self, lsn + i);
        memcpy(to, record->bytes.data, record->bytes.size);
        to += record->bytes.size;
    }
    *ret_n = n;
    return payload;
}
