/* SPDX-License-Identifier: Apache-2.0 */
/* Two boxes under one lock. */
#include "client/connection/desk.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "protocol/overlay/link_meter.h"

#define ROWS_SHIFT 16
#define AGO_MAX_US (UINT64_C(3600) * 1000000) /* older clocks are said to be this old */

/* Transfers to one end. */
typedef struct desk_meter {
    uint32_t to;
    ps_link_meter_t meter;
} desk_meter_t;

struct ps_desk {
    atomic_uint n_holders;
    _Atomic uint64_t plan;   /* that the relay goes by */
    _Atomic uint64_t newest; /* that was put here */
    _Atomic uint64_t rows;   /* ways of rows: a bit for each colour, go, come, n_colours */
    atomic_uint wait_ms;     /* of `left` */
    atomic_bool left;
    int relay_fd;
    int client_fd;
    char relay[PS_ENDPOINT_MAX + 1];
    pthread_mutex_t mutex; /* of what follows */
    struct ps_desk_lots lots;
    struct ps_desk_tables tables;
    struct ps_desk_rows_list out; /* rows and questions, for the relay */
    struct ps_desk_rows_list in;  /* answers, for the client */
    ps_relay_facts_t facts;       /* owned */
    ps_desk_news_t *news;         /* owned */
    size_t n_news;
    size_t n_heard; /* of these: the client has them */
    size_t news_capacity;
    ps_overlay_rules_t rules;
    ps_site_t site;
    ps_may_t may;
    uint64_t pushed;       /* bytes … */
    uint64_t clock_pushed; /* … when the clock ended */
    uint64_t clock;
    uint64_t clock_us; /* 0: none has ended yet */
    ps_overlay_counts_t counts;
    uint32_t n_meters;
    desk_meter_t meters[PS_OVERLAY_REPORT_LINKS];
};

static void lock(ps_desk_t *self)
{
    (void)pthread_mutex_lock(&self->mutex);
}

static void unlock(ps_desk_t *self)
{
    (void)pthread_mutex_unlock(&self->mutex);
}

static void ring(int fd)
{
    const uint64_t one = 1;

    (void)!write(fd, &one, sizeof one); /* full: it is readable already */
}

static void quiet(int fd)
{
    uint64_t n = 0;

    (void)!read(fd, &n, sizeof n);
}

void ps_desk_lot_free(ps_desk_lot_t **lot_p)
{
    ps_payload_destroy(&(*lot_p)->payload);
    ps_free(*lot_p);
    *lot_p = NULL;
}

void ps_desk_table_free(ps_desk_table_t **table_p)
{
    ps_free((*table_p)->routes);
    ps_free(*table_p);
    *table_p = NULL;
}

void ps_desk_rows_free(ps_desk_rows_t **rows_p)
{
    ps_payload_destroy(&(*rows_p)->payload);
    ps_free(*rows_p);
    *rows_p = NULL;
}

static void drop_rows(struct ps_desk_rows_list *list)
{
    while (!STAILQ_EMPTY(list)) {
        ps_desk_rows_t *rows = STAILQ_FIRST(list);

        STAILQ_REMOVE_HEAD(list, in_list);
        ps_desk_rows_free(&rows);
    }
}

static void drop_all(struct ps_desk_lots *lots, struct ps_desk_tables *tables)
{
    while (!STAILQ_EMPTY(lots)) {
        ps_desk_lot_t *lot = STAILQ_FIRST(lots);

        STAILQ_REMOVE_HEAD(lots, in_list);
        ps_desk_lot_free(&lot);
    }
    while (!STAILQ_EMPTY(tables)) {
        ps_desk_table_t *table = STAILQ_FIRST(tables);

        STAILQ_REMOVE_HEAD(tables, in_list);
        ps_desk_table_free(&table);
    }
}

psd_status_t ps_desk_new(const char *relay, ps_desk_t **ret_desk, psd_error_t *err)
{
    ps_desk_t *self = ps_alloc(1, sizeof *self);

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a relay");
    }
    atomic_init(&self->n_holders, 1);
    atomic_init(&self->plan, 0);
    atomic_init(&self->newest, 0);
    atomic_init(&self->rows, 0);
    atomic_init(&self->wait_ms, 0);
    atomic_init(&self->left, false);
    STAILQ_INIT(&self->lots);
    STAILQ_INIT(&self->tables);
    STAILQ_INIT(&self->out);
    STAILQ_INIT(&self->in);
    (void)snprintf(self->relay, sizeof self->relay, "%s", relay);
    (void)pthread_mutex_init(&self->mutex, NULL); /* cannot fail on Linux */
    self->relay_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    self->client_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (self->relay_fd < 0 || self->client_fd < 0) {
        ps_desk_release(&self);
        return psd_error_set(err, PSD_IO, "no descriptor for a relay");
    }
    *ret_desk = self;
    return PSD_OK;
}

ps_desk_t *ps_desk_keep(ps_desk_t *self)
{
    atomic_fetch_add(&self->n_holders, 1);
    return self;
}

void ps_desk_release(ps_desk_t **self_p)
{
    ps_desk_t *self = *self_p;

    *self_p = NULL;
    if (self == NULL || atomic_fetch_sub(&self->n_holders, 1) > 1) {
        return;
    }
    drop_all(&self->lots, &self->tables);
    drop_rows(&self->out);
    drop_rows(&self->in);
    ps_relay_facts_done(&self->facts);
    ps_free(self->news);
    if (self->relay_fd >= 0) {
        (void)close(self->relay_fd);
    }
    if (self->client_fd >= 0) {
        (void)close(self->client_fd);
    }
    (void)pthread_mutex_destroy(&self->mutex);
    ps_free(self);
}

const char *ps_desk_relay(const ps_desk_t *self)
{
    return self->relay;
}

uint64_t ps_desk_plan(const ps_desk_t *self)
{
    return atomic_load(&self->plan);
}

uint64_t ps_desk_newest(const ps_desk_t *self)
{
    return atomic_load(&self->newest);
}

int ps_desk_client_fd(const ps_desk_t *self)
{
    return self->client_fd;
}

int ps_desk_relay_fd(const ps_desk_t *self)
{
    return self->relay_fd;
}

/* ---- what was measured ---- */

void ps_desk_set_rules(ps_desk_t *self, const ps_overlay_rules_t *rules, const ps_site_t *site,
                       const ps_may_t *may)
{
    self->rules = *rules;
    self->site = *site;
    self->may = *may;
}

void ps_desk_pushed(ps_desk_t *self, uint64_t bytes)
{
    lock(self);
    self->pushed += bytes;
    unlock(self);
}

void ps_desk_clock(ps_desk_t *self, uint64_t clock, uint64_t now_us)
{
    lock(self);
    self->clock = clock;
    self->clock_us = now_us;
    self->clock_pushed = self->pushed;
    unlock(self);
}

void ps_desk_went_directly(ps_desk_t *self)
{
    lock(self);
    self->counts.direct++;
    unlock(self);
}

void ps_desk_bundle_ended(ps_desk_t *self, bool is_taken)
{
    lock(self);
    self->counts.bundles += is_taken ? 1 : 0;
    self->counts.refused += is_taken ? 0 : 1;
    unlock(self);
}

uint64_t ps_desk_clock_bytes(ps_desk_t *self)
{
    uint64_t bytes = 0;

    lock(self);
    bytes = self->clock == 0 ? 0 : self->clock_pushed / self->clock;
    unlock(self);
    return bytes;
}

/* The one of that end; when there is no room, in place of the one that has measured least. */
static ps_link_meter_t *meter_of(ps_desk_t *self, uint32_t to)
{
    desk_meter_t *least = &self->meters[0];

    for (uint32_t i = 0; i < self->n_meters; i++) {
        if (self->meters[i].to == to) {
            return &self->meters[i].meter;
        }
        if (self->meters[i].meter.bytes < least->meter.bytes) {
            least = &self->meters[i];
        }
    }
    if (self->n_meters < PS_OVERLAY_REPORT_LINKS) {
        least = &self->meters[self->n_meters++];
    }
    *least = (desk_meter_t){.to = to};
    return &least->meter;
}

void ps_desk_moved(ps_desk_t *self, uint32_t to, uint64_t bytes, uint64_t start_us, uint64_t end_us)
{
    lock(self);
    ps_link_meter_add(meter_of(self, to), bytes, start_us, end_us);
    unlock(self);
}

void ps_desk_report(ps_desk_t *self, uint64_t now_us, ps_overlay_report_t *ret_report)
{
    ps_overlay_report_t report = {.rules = self->rules, .site = self->site, .may = self->may};

    lock(self);
    report.clock = self->clock;
    report.bytes = self->clock_pushed;
    report.counts = self->counts;
    report.counts.has = true;
    report.ago_us = self->clock_us == 0 || now_us < self->clock_us ? 0 : now_us - self->clock_us;
    report.ago_us = report.ago_us > AGO_MAX_US ? AGO_MAX_US : report.ago_us;
    for (uint32_t i = 0; i < self->n_meters; i++) {
        ps_overlay_link_t *link = &report.links[report.n_links];

        link->to = self->meters[i].to;
        report.n_links +=
            ps_link_meter_take(&self->meters[i].meter, &link->bytes, &link->us) ? 1 : 0;
    }
    unlock(self);
    *ret_report = report;
}

/* ---- for the relay ---- */

void ps_desk_put_lot(ps_desk_t *self, ps_desk_lot_t *lot)
{
    lock(self);
    STAILQ_INSERT_TAIL(&self->lots, lot, in_list);
    self->counts.lent++;
    unlock(self);
    ring(self->relay_fd);
}

void ps_desk_put_table(ps_desk_t *self, ps_desk_table_t *table)
{
    lock(self);
    STAILQ_INSERT_TAIL(&self->tables, table, in_list);
    unlock(self);
    ring(self->relay_fd);
}

void ps_desk_put_plan(ps_desk_t *self, ps_relay_facts_t *facts)
{
    lock(self);
    if (facts->version > atomic_load(&self->newest)) {
        ps_relay_facts_done(&self->facts);
        self->facts = *facts;
        *facts = (ps_relay_facts_t){.version = 0};
        atomic_store(&self->newest, self->facts.version);
    }
    unlock(self);
    ps_relay_facts_done(facts);
    ring(self->relay_fd);
}

void ps_desk_put_rows(ps_desk_t *self, ps_desk_rows_t *rows)
{
    lock(self);
    STAILQ_INSERT_TAIL(&self->out, rows, in_list);
    unlock(self);
    ring(self->relay_fd);
}

void ps_desk_leave(ps_desk_t *self, uint32_t wait_ms)
{
    atomic_store(&self->wait_ms, wait_ms);
    atomic_store(&self->left, true);
    atomic_store(&self->plan, 0);
    ring(self->relay_fd);
}

bool ps_desk_is_left(const ps_desk_t *self, uint32_t *ret_wait_ms)
{
    *ret_wait_ms = atomic_load(&self->wait_ms);
    return atomic_load(&self->left);
}

void ps_desk_look(const ps_desk_t *self)
{
    quiet(self->relay_fd);
}

void ps_desk_take(ps_desk_t *self, struct ps_desk_lots *ret_lots, struct ps_desk_tables *ret_tables,
                  ps_relay_facts_t *ret_facts)
{
    STAILQ_INIT(ret_lots);
    STAILQ_INIT(ret_tables);
    lock(self);
    STAILQ_CONCAT(ret_lots, &self->lots);
    STAILQ_CONCAT(ret_tables, &self->tables);
    *ret_facts = self->facts;
    self->facts = (ps_relay_facts_t){.version = 0};
    unlock(self);
}

void ps_desk_take_rows(ps_desk_t *self, struct ps_desk_rows_list *ret_rows)
{
    STAILQ_INIT(ret_rows);
    lock(self);
    STAILQ_CONCAT(ret_rows, &self->out);
    unlock(self);
}

void ps_desk_set_rows(ps_desk_t *self, uint32_t n_colours, uint32_t come, uint32_t go)
{
    static_assert(PS_OVERLAY_COLOURS_MAX <= ROWS_SHIFT, "a bit for each colour");
    atomic_store(&self->rows, (uint64_t)n_colours << (2 * ROWS_SHIFT) |
                                  (uint64_t)come << ROWS_SHIFT | (uint64_t)go);
}

void ps_desk_set_plan(ps_desk_t *self, uint64_t version)
{
    if (!atomic_load(&self->left)) {
        atomic_store(&self->plan, version);
    }
}

/* ---- for the client ---- */

static bool has_way(const ps_desk_t *self, unsigned shift, uint32_t table, uint32_t partition)
{
    uint64_t rows = atomic_load(&self->rows);
    uint32_t n_colours = (uint32_t)(rows >> (2 * ROWS_SHIFT));

    return n_colours > 0 && (rows >> (shift + (table + partition) % n_colours) & 1) != 0;
}

bool ps_desk_rows_come(const ps_desk_t *self, uint32_t table, uint32_t partition)
{
    return has_way(self, ROWS_SHIFT, table, partition);
}

bool ps_desk_rows_go(const ps_desk_t *self, uint32_t table, uint32_t partition)
{
    return has_way(self, 0, table, partition);
}

bool ps_desk_shares_rows(const ps_desk_t *self)
{
    return atomic_load(&self->rows) >> (2 * ROWS_SHIFT) != 0;
}

void ps_desk_give_rows(ps_desk_t *self, ps_desk_rows_t *rows)
{
    lock(self);
    STAILQ_INSERT_TAIL(&self->in, rows, in_list);
    unlock(self);
    ring(self->client_fd);
}

void ps_desk_hear_rows(ps_desk_t *self, struct ps_desk_rows_list *ret_rows)
{
    STAILQ_INIT(ret_rows);
    lock(self);
    STAILQ_CONCAT(ret_rows, &self->in);
    unlock(self);
}

void ps_desk_tell(ps_desk_t *self, uint64_t request, ps_relay_news_t news)
{
    bool fits = false;

    lock(self);
    self->counts.returned += news == PS_RELAY_RETURNED ? 1 : 0;
    fits = news == PS_RELAY_DONE || news == PS_RELAY_RETURNED ||
           self->n_news - self->n_heard < PS_DESK_SIGNS_MAX;
    /* Without memory it is not told: the client asks the shard in its time. */
    if (fits && ps_grow(&self->news, &self->news_capacity, self->n_news + 1, sizeof *self->news)) {
        self->news[self->n_news++] = (ps_desk_news_t){.request = request, .news = news};
    }
    unlock(self);
    ring(self->client_fd);
}

size_t ps_desk_hear(ps_desk_t *self, ps_desk_news_t *ret_news, size_t most)
{
    size_t n = 0;

    quiet(self->client_fd);
    lock(self);
    n = self->n_news - self->n_heard < most ? self->n_news - self->n_heard : most;
    if (n > 0) {
        memcpy(ret_news, self->news + self->n_heard, n * sizeof *ret_news);
        self->n_heard += n;
    }
    if (self->n_heard == self->n_news) {
        self->n_news = self->n_heard = 0;
    }
    unlock(self);
    return n;
}
