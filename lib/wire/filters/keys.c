/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of keys as differences, eight at a time where they are small. */
#include "wire/filters/keys.h"

#include <inttypes.h>

#include "base/cursor.h"

#define NUMBER_MAX 10 /* bytes of the longest number */
#define PORTION 512   /* keys for which room is made at once */
#define GROUP 8       /* keys of one byte each that are read at once */
/* The top bits of eight bytes: where a number goes on. */
#define GOES_ON UINT64_C(0x8080808080808080)

static uint8_t *write_number(uint8_t *to, uint64_t number)
{
    while (number >= 0x80) {
        *to++ = (uint8_t)(number | 0x80);
        number >>= 7;
    }
    *to++ = (uint8_t)number;
    return to;
}

psd_status_t ps_keys_delta_encode(const uint8_t *keys, uint64_t n, ps_buffer_t *to,
                                  bool *ret_ascending)
{
    size_t size_before = to->size;
    uint64_t last = 0;

    for (uint64_t i = 0; i < n;) {
        uint64_t end = n - i > PORTION ? i + PORTION : n;
        uint8_t *at = NULL;

        if (!ps_buffer_reserve(to, PORTION * NUMBER_MAX)) {
            to->size = size_before;
            return PSD_NOMEM;
        }
        at = to->data + to->size;
        for (; i < end; i++) {
            uint64_t key = ps_load_u64(keys + PS_KEY_SIZE * i);

            if (key < last) {
                to->size = size_before;
                *ret_ascending = false;
                return PSD_OK;
            }
            at = write_number(at, key - last);
            last = key;
        }
        to->size = (size_t)(at - to->data);
    }
    *ret_ascending = true;
    return PSD_OK;
}

bool ps_keys_delta_can_hold(size_t coded_size, uint64_t n)
{
    size_t least = coded_size / NUMBER_MAX + (coded_size % NUMBER_MAX != 0);

    return n <= coded_size && n >= least;
}

typedef struct reader {
    const uint8_t *at;
    const uint8_t *end;
    uint64_t key; /* the last one read */
    const char *wrong;
} reader_t;

/* Reads one number and adds it to the key. */
static bool read_key(reader_t *self)
{
    uint64_t number = 0;
    unsigned shift = 0;
    uint8_t byte = 0x80;

    while ((byte & 0x80) != 0) {
        if (self->at == self->end) {
            self->wrong = "is cut off";
            return false;
        }
        byte = *self->at++;
        if (shift == 63 && byte > 1) {
            self->wrong = "is a distance beyond 64 bits";
            return false;
        }
        number |= (uint64_t)(byte & 0x7F) << shift;
        shift += 7;
    }
    if (byte == 0 && shift > 7) {
        self->wrong = "is longer than it needs to be";
        return false;
    }
    if (__builtin_add_overflow(self->key, number, &self->key)) {
        self->wrong = "lies beyond 2^64 - 1";
        return false;
    }
    return true;
}

/* The next eight keys when each is one byte and none can lie beyond the end of
 * the numbers. */
static bool read_group(reader_t *self, uint8_t *ret_keys)
{
    uint64_t key = self->key;
    uint64_t word = 0;

    if (self->end - self->at < GROUP || key > UINT64_MAX - GROUP * 0x7F) {
        return false;
    }
    word = ps_load_u64(self->at);
    if ((word & GOES_ON) != 0) {
        return false;
    }
    for (int i = 0; i < GROUP; i++) {
        key += word & 0x7F;
        word >>= 8;
        ps_store_u64(ret_keys + PS_KEY_SIZE * i, key);
    }
    self->key = key;
    self->at += GROUP;
    return true;
}

psd_status_t ps_keys_delta_decode(ps_bytes_t coded, uint64_t n, uint8_t *ret_keys, psd_error_t *err)
{
    reader_t reader = {.at = coded.data};

    if (coded.size > 0) {
        reader.end = coded.data + coded.size;
    } else {
        reader.end = reader.at; /* both may be NULL */
    }
    for (uint64_t i = 0; i < n;) {
        if (n - i >= GROUP && read_group(&reader, ret_keys + PS_KEY_SIZE * i)) {
            i += GROUP;
        } else if (read_key(&reader)) {
            ps_store_u64(ret_keys + PS_KEY_SIZE * i, reader.key);
            i++;
        } else {
            return psd_error_set(err, PSD_PROTO, "key %" PRIu64 " of %" PRIu64 " %s", i, n,
                                 reader.wrong);
        }
    }
    if (reader.at != reader.end) {
        return psd_error_set(err, PSD_PROTO, "%td bytes are left over after %" PRIu64 " keys",
                             reader.end - reader.at, n);
    }
    return PSD_OK;
}
