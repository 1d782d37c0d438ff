/* SPDX-License-Identifier: Apache-2.0 */
/* Looks, logs, feeds. */
#include "server/threads/thread_watch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/threads/thread_probe.h"
#include "transport/threads/thread.h"

#define PREFIXES 100      /* two digits: the name of a thread has 15 characters */
#define LOOK_MS 250       /* between two looks */
#define LATE_MAX 64       /* late threads in one look */
#define SAY_AFTER_MS 2000 /* a thread that is late for so long is logged */
#define FED_FACTOR 6      /* all have turned within WatchdogSec / 6 … */
#define FED_LEAST_MS 1000 /* … or this, which is twice what they may wait */
#define ITEMS_MAX (PS_PROBE_IO_MAX + 2)

/* A thread that was named in the log and has not turned since. */
typedef struct spell {
    pid_t tid;
    char name[PS_TURN_NAME_SIZE];
} spell_t;

struct ps_thread_watch {
    pthread_t thread;
    ps_turns_t *turns; /* borrowed */
    int stop_fd;       /* an eventfd */
    ps_thread_probe_t zmq;
    ps_server_host_t host;
    uint64_t fed_ms; /* when it was fed last */
    uint64_t looked_ms;
    spell_t spells[LATE_MAX];
    size_t n_spells;
};

/* ---- the log ---- */

static bool has_late(const ps_late_t *late, size_t n, pid_t tid)
{
    for (size_t i = 0; i < n; i++) {
        if (late[i].tid == tid) {
            return true;
        }
    }
    return false;
}

static bool has_spell(const ps_thread_watch_t *self, pid_t tid)
{
    for (size_t i = 0; i < self->n_spells; i++) {
        if (self->spells[i].tid == tid) {
            return true;
        }
    }
    return false;
}

/* Logs threads that turn again. */
static void end_spells(ps_thread_watch_t *self, const ps_late_t *late, size_t n)
{
    size_t n_kept = 0;

    for (size_t i = 0; i < self->n_spells; i++) {
        const spell_t spell = self->spells[i];

        if (has_late(late, n, spell.tid)) {
            self->spells[n_kept++] = spell;
        } else {
            ps_log(PS_LOG_WARN, "thread_turns_again", "thread=%s tid=%d", spell.name, spell.tid);
        }
    }
    self->n_spells = n_kept;
}

static void begin_spells(ps_thread_watch_t *self, const ps_late_t *late, size_t n)
{
    for (size_t i = 0; i < n && self->n_spells < LATE_MAX; i++) {
        spell_t *spell = &self->spells[self->n_spells];

        if (late[i].silent_ms < SAY_AFTER_MS || has_spell(self, late[i].tid)) {
            continue;
        }
        *spell = (spell_t){.tid = late[i].tid};
        memcpy(spell->name, late[i].name, sizeof spell->name);
        self->n_spells++;
        ps_log(PS_LOG_ERROR, "thread_silent",
               "thread=%s tid=%d ms=%" PRIu64 " state=%c hint=\"%s\"", spell->name, spell->tid,
               late[i].silent_ms, late[i].state,
               late[i].is_stopped ? "a debugger or a signal has stopped it"
               : late[i].state == 'D'
                   ? "it waits for a disk"
                   : "data on disk is kept; under systemd psd is restarted if this lasts");
    }
}

/* ---- the watchdog ---- */

static uint64_t fed_within_ms(const ps_thread_watch_t *self)
{
    uint64_t within_ms = self->host.watchdog_ms / FED_FACTOR;

    return within_ms < FED_LEAST_MS ? FED_LEAST_MS : within_ms;
}

static void feed_if_due(ps_thread_watch_t *self, uint64_t now_ms)
{
    if (self->host.watchdog_ms == 0 ||
        now_ms - self->fed_ms < self->host.watchdog_ms / FED_FACTOR ||
        ps_turns_oldest_ms(ps_turns_page(self->turns)) >= fed_within_ms(self)) {
        return;
    }
    self->fed_ms = now_ms;
    self->host.notify("WATCHDOG=1");
}

/* ---- the thread ---- */

static void look(ps_thread_watch_t *self, uint64_t now_ms)
{
    ps_late_t late[LATE_MAX];
    bool was_away = now_ms - self->looked_ms > PS_LATE_WAIT_MS;
    size_t n = 0;

    self->looked_ms = now_ms;
    if (was_away) {
        return; /* all others may also have stood still: the process was stopped */
    }
    n = ps_turns_late(ps_turns_page(self->turns), late, LATE_MAX);
    end_spells(self, late, n);
    begin_spells(self, late, n);
    feed_if_due(self, now_ms);
}

/* Waits for events of the probes. false: the end. */
static bool wait_some(const ps_thread_watch_t *self)
{
    zmq_pollitem_t items[ITEMS_MAX] = {{.fd = self->stop_fd, .events = ZMQ_POLLIN}};
    size_t n = 1;

    n += ps_thread_probe_items(&self->zmq, items + n);
    return zmq_poll(items, (int)n, LOOK_MS) < 0 || (items[0].revents & ZMQ_POLLIN) == 0;
}

static void *run(void *arg)
{
    ps_thread_watch_t *self = arg;
    ps_turn_t *turn = ps_turns_enter(self->turns, PS_TURNS_WATCH);

    self->looked_ms = ps_turn_now_ms();
    do {
        uint64_t now_ms = ps_turn_now_ms();

        ps_turn_works(turn);
        ps_thread_probe_turn(&self->zmq, now_ms);
        if (now_ms - self->looked_ms >= LOOK_MS) {
            look(self, now_ms);
        }
        ps_turn_waits(turn);
    } while (wait_some(self));
    ps_turn_leave(&turn);
    return NULL;
}

/* ---- start and stop ---- */

/* Of the context that the calling thread opens: threads of other contexts of the process
 * have other names, or were renamed since. */
static int prefix_of_caller(void)
{
    return (int)(syscall(SYS_gettid) % PREFIXES);
}

void ps_thread_watch_prepare(void *context)
{
    (void)zmq_ctx_set(context, ZMQ_THREAD_NAME_PREFIX, prefix_of_caller());
}

static psd_status_t start(ps_thread_watch_t *self, void *context, psd_error_t *err)
{
    char prefix[16];
    int code = 0;
    psd_status_t rc = PSD_OK;

    (void)snprintf(prefix, sizeof prefix, "%d/", prefix_of_caller());
    rc = ps_thread_probe_init(&self->zmq, context, prefix, "zmq", self->turns, err);
    if (rc != PSD_OK) {
        return rc;
    }
    self->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    code = self->stop_fd < 0 ? errno : ps_thread_start(&self->thread, run, self);
    return code == 0 ? PSD_OK : psd_error_set(err, PSD_IO, "start a thread: error %d", code);
}

static void destroy(ps_thread_watch_t *self)
{
    ps_thread_probe_done(&self->zmq);
    if (self->stop_fd >= 0) {
        (void)close(self->stop_fd);
    }
    ps_free(self);
}

psd_status_t ps_thread_watch_start(ps_turns_t *turns, void *context, const ps_server_host_t *host,
                                   ps_thread_watch_t **ret_watch, psd_error_t *err)
{
    ps_thread_watch_t *self = ps_alloc(1, sizeof *self);
    psd_status_t rc = PSD_OK;

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to watch the threads");
    }
    self->turns = turns;
    self->host = *host;
    self->stop_fd = -1;
    rc = start(self, context, err);
    if (rc != PSD_OK) {
        destroy(self);
        return rc;
    }
    *ret_watch = self;
    return PSD_OK;
}

void ps_thread_watch_stop(ps_thread_watch_t **self_p)
{
    ps_thread_watch_t *self = *self_p;
    const uint64_t one = 1;

    if (self == NULL) {
        return;
    }
    (void)!write(self->stop_fd, &one, sizeof one);
    (void)pthread_join(self->thread, NULL);
    destroy(self);
    *self_p = NULL;
}
