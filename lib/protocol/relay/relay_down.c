/* SPDX-License-Identifier: Apache-2.0 */
/* Lists that are searched from the start: they have an entry for each partition that a worker
 * pulls from, and each of its children. */
#include "protocol/relay/relay_down.h"

#include "base/alloc.h"

/* A place where this worker's client has rows, or pulls them. */
typedef struct image {
    ps_down_key_t key;     /* clock: of the rows that it had last, … */
    bool has;              /* … if it had any */
    ps_payload_t *payload; /* held; NULL: they are not here */
    uint64_t expects;      /* the clock of its last pull */
} image_t;

/* A worker that waits for rows, or this relay's client. */
typedef struct want {
    uint32_t worker; /* who wants them; of an ask: who was asked */
    uint64_t request;
    ps_down_key_t key;
    uint64_t until_ms;
    uint64_t again_ms;     /* a payload is sent again then */
    ps_payload_t *payload; /* held; NULL: it waits for rows */
} want_t;

typedef struct wants {
    want_t *items; /* owned */
    size_t n;
    size_t capacity;
} wants_t;

struct ps_relay_down {
    uint64_t limit_bytes;
    uint64_t bytes;
    image_t *images; /* owned; those whose rows came last are last */
    size_t n_images;
    size_t images_capacity;
    wants_t wants;         /* of other workers */
    wants_t asks;          /* of this worker */
    ps_down_deed_t *deeds; /* owned */
    size_t n_deeds;
    size_t n_done; /* of these: the caller has them */
    size_t deeds_capacity;
};

psd_status_t ps_relay_down_new(uint64_t limit_bytes, ps_relay_down_t **ret_down, psd_error_t *err)
{
    ps_relay_down_t *self = ps_alloc(1, sizeof *self);

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a relay");
    }
    self->limit_bytes = limit_bytes;
    *ret_down = self;
    return PSD_OK;
}

static void wants_done(wants_t *self)
{
    for (size_t i = 0; i < self->n; i++) {
        ps_payload_destroy(&self->items[i].payload);
    }
    ps_free(self->items);
}

void ps_relay_down_destroy(ps_relay_down_t **self_p)
{
    ps_relay_down_t *self = *self_p;

    *self_p = NULL;
    if (self == NULL) {
        return;
    }
    for (size_t i = 0; i < self->n_images; i++) {
        ps_payload_destroy(&self->images[i].payload);
    }
    for (size_t i = self->n_done; i < self->n_deeds; i++) {
        ps_payload_destroy(&self->deeds[i].payload);
    }
    wants_done(&self->wants);
    wants_done(&self->asks);
    ps_free(self->images);
    ps_free(self->deeds);
    ps_free(self);
}

static bool is_place(const ps_down_key_t *a, const ps_down_key_t *b)
{
    return a->table == b->table && a->partition == b->partition && a->first_row == b->first_row;
}

/* Without memory nothing is said: who waits for it has a patience of its own. */
static void put_deed(ps_relay_down_t *self, ps_down_kind_t kind, const want_t *want,
                     ps_payload_t *payload)
{
    if (!ps_grow(&self->deeds, &self->deeds_capacity, self->n_deeds + 1, sizeof *self->deeds)) {
        return;
    }
    self->deeds[self->n_deeds++] =
        (ps_down_deed_t){.kind = kind,
                         .worker = want->worker,
                         .request = want->request,
                         .key = want->key,
                         .until_ms = want->until_ms,
                         .payload = payload == NULL ? NULL : ps_payload_keep(payload)};
}

static void wants_remove(wants_t *self, size_t i)
{
    ps_payload_destroy(&self->items[i].payload);
    self->items[i] = self->items[--self->n];
}

/* false: there is no room. */
static bool wants_add(wants_t *self, const want_t *want)
{
    if (self->n >= PS_DOWN_MAX ||
        !ps_grow(&self->items, &self->capacity, self->n + 1, sizeof *self->items)) {
        return false;
    }
    self->items[self->n++] = *want;
    return true;
}

/* ---- rows that are here ---- */

static void drop_rows(ps_relay_down_t *self, image_t *image)
{
    self->bytes -= image->payload == NULL ? 0 : ps_payload_size(image->payload);
    ps_payload_destroy(&image->payload);
}

static void drop_image(ps_relay_down_t *self, size_t i)
{
    drop_rows(self, &self->images[i]);
    self->n_images--;
    for (; i < self->n_images; i++) {
        self->images[i] = self->images[i + 1];
    }
}

static image_t *find_image(const ps_relay_down_t *self, const ps_down_key_t *key)
{
    for (size_t i = 0; i < self->n_images; i++) {
        if (is_place(&self->images[i].key, key)) {
            return &self->images[i];
        }
    }
    return NULL;
}

/* The place, which pulls rows of that clock. NULL: no memory. */
static image_t *settle_image(ps_relay_down_t *self, const ps_down_key_t *key)
{
    image_t *image = find_image(self, key);

    if (image == NULL && self->n_images >= PS_DOWN_MAX) {
        drop_image(self, 0);
    }
    if (image == NULL &&
        ps_grow(&self->images, &self->images_capacity, self->n_images + 1, sizeof *self->images)) {
        image = &self->images[self->n_images++];
        *image = (image_t){.key = *key};
    }
    if (image != NULL && image->expects < key->clock) {
        image->expects = key->clock;
    }
    return image;
}

static image_t *put_last(ps_relay_down_t *self, image_t *image)
{
    const image_t moved = *image;

    for (; image < &self->images[self->n_images - 1]; image++) {
        image[0] = image[1];
    }
    *image = moved;
    return image;
}

static void set_rows(ps_relay_down_t *self, image_t *image, const ps_down_key_t *key,
                     ps_payload_t *payload)
{
    uint64_t size = payload == NULL ? 0 : ps_payload_size(payload);

    drop_rows(self, image);
    image->key = *key;
    image->has = true;
    if (payload == NULL || size > self->limit_bytes) {
        return;
    }
    for (size_t i = 0; self->bytes + size > self->limit_bytes; i++) {
        drop_rows(self, &self->images[i]);
    }
    image->payload = ps_payload_keep(payload);
    self->bytes += size;
}

/* True when these rows end the waiting: they are the ones, or it waits in vain. */
static bool answer_with(ps_relay_down_t *self, const want_t *want, const ps_down_key_t *key,
                        ps_payload_t *payload)
{
    if (!is_place(&want->key, key) || want->key.clock > key->clock) {
        return false;
    }
    put_deed(self, PS_DOWN_SEND, want,
             want->key.clock == key->clock && want->key.n_rows == key->n_rows ? payload : NULL);
    return true;
}

void ps_relay_down_keep(ps_relay_down_t *self, const ps_down_key_t *key, ps_payload_t *payload)
{
    image_t *image = settle_image(self, key);

    if (image != NULL && image->has && image->key.clock > key->clock) {
        return;
    }
    for (size_t i = self->wants.n; i > 0; i--) {
        want_t *want = &self->wants.items[i - 1];

        if (want->payload == NULL && answer_with(self, want, key, payload)) {
            wants_remove(&self->wants, i - 1);
        }
    }
    if (image != NULL) {
        set_rows(self, put_last(self, image), key, payload);
    }
}

void ps_relay_down_begin(ps_relay_down_t *self, const ps_down_key_t *key)
{
    (void)settle_image(self, key); /* without memory nobody waits for them */
}

/* ---- those that want them ---- */

void ps_relay_down_want(ps_relay_down_t *self, uint64_t now_ms, uint32_t worker, uint64_t request,
                        const ps_down_key_t *key, uint32_t wait_ms)
{
    const want_t want = {
        .worker = worker, .request = request, .key = *key, .until_ms = now_ms + wait_ms};
    const image_t *image = find_image(self, key);

    for (size_t i = self->wants.n; i > 0; i--) {
        if (self->wants.items[i - 1].worker == worker &&
            is_place(&self->wants.items[i - 1].key, key)) {
            wants_remove(&self->wants, i - 1);
        }
    }
    if (image != NULL && image->has && answer_with(self, &want, &image->key, image->payload)) {
        return;
    }
    if (wait_ms == 0 || image == NULL || key->clock > image->expects + 1 ||
        !wants_add(&self->wants, &want)) {
        put_deed(self, PS_DOWN_SEND, &want, NULL);
    }
}

void ps_relay_down_unsent(ps_relay_down_t *self, uint64_t now_ms, ps_down_deed_t *deed)
{
    const want_t want = {.worker = deed->worker,
                         .request = deed->request,
                         .key = deed->key,
                         .until_ms = deed->until_ms,
                         .again_ms = now_ms + PS_DOWN_AGAIN_MS,
                         .payload = deed->payload};

    if (want.payload != NULL && now_ms < want.until_ms && wants_add(&self->wants, &want)) {
        deed->payload = NULL;
    }
    ps_payload_destroy(&deed->payload);
}

void ps_relay_down_without(ps_relay_down_t *self, uint32_t worker)
{
    for (size_t i = self->wants.n; i > 0; i--) {
        if (self->wants.items[i - 1].worker == worker) {
            wants_remove(&self->wants, i - 1);
        }
    }
}

/* ---- what this worker wants ---- */

void ps_relay_down_ask(ps_relay_down_t *self, uint64_t now_ms, uint32_t worker, uint64_t request,
                       const ps_down_key_t *key, uint32_t wait_ms)
{
    const want_t ask = {
        .worker = worker, .request = request, .key = *key, .until_ms = now_ms + wait_ms};

    ps_relay_down_begin(self, key);
    if (!wants_add(&self->asks, &ask)) {
        put_deed(self, PS_DOWN_GIVE, &ask, NULL);
    }
}

void ps_relay_down_heard(ps_relay_down_t *self, uint32_t worker, uint64_t request,
                         const ps_down_key_t *key, ps_payload_t *payload)
{
    for (size_t i = 0; i < self->asks.n; i++) {
        const want_t *ask = &self->asks.items[i];

        if (ask->worker == worker && ask->request == request && ask->key.table == key->table &&
            ask->key.partition == key->partition && ask->key.clock == key->clock) {
            put_deed(self, PS_DOWN_GIVE, ask, payload);
            wants_remove(&self->asks, i);
            return;
        }
    }
}

void ps_relay_down_lost(ps_relay_down_t *self, uint32_t worker)
{
    for (size_t i = self->asks.n; i > 0; i--) {
        if (self->asks.items[i - 1].worker == worker) {
            put_deed(self, PS_DOWN_GIVE, &self->asks.items[i - 1], NULL);
            wants_remove(&self->asks, i - 1);
        }
    }
}

/* ---- time ---- */

static void expire(wants_t *self, uint64_t now_ms)
{
    for (size_t i = self->n; i > 0; i--) {
        if (self->items[i - 1].until_ms <= now_ms) {
            wants_remove(self, i - 1);
        }
    }
}

void ps_relay_down_tick(ps_relay_down_t *self, uint64_t now_ms)
{
    expire(&self->wants, now_ms);
    expire(&self->asks, now_ms);
    for (size_t i = self->wants.n; i > 0; i--) {
        const want_t *want = &self->wants.items[i - 1];

        if (want->payload != NULL && want->again_ms <= now_ms) {
            put_deed(self, PS_DOWN_SEND, want, want->payload);
            wants_remove(&self->wants, i - 1);
        }
    }
}

static uint64_t earliest(const wants_t *self)
{
    uint64_t due_ms = UINT64_MAX;

    for (size_t i = 0; i < self->n; i++) {
        const want_t *want = &self->items[i];
        uint64_t at_ms = want->payload != NULL && want->again_ms < want->until_ms ? want->again_ms
                                                                                  : want->until_ms;

        due_ms = at_ms < due_ms ? at_ms : due_ms;
    }
    return due_ms;
}

uint64_t ps_relay_down_due(const ps_relay_down_t *self)
{
    uint64_t wants_ms = earliest(&self->wants);
    uint64_t asks_ms = earliest(&self->asks);

    return wants_ms < asks_ms ? wants_ms : asks_ms;
}

bool ps_relay_down_next(ps_relay_down_t *self, ps_down_deed_t *ret_deed)
{
    if (self->n_done == self->n_deeds) {
        self->n_done = self->n_deeds = 0;
        return false;
    }
    *ret_deed = self->deeds[self->n_done++];
    return true;
}

uint64_t ps_relay_down_bytes(const ps_relay_down_t *self)
{
    return self->bytes;
}
