/* SPDX-License-Identifier: Apache-2.0 */
/* Watches a link over ZeroMQ: is it connected, and was that connection lost?
 * ZeroMQ reconnects by itself, and reports it only to a monitor. Watches a
 * port: which of its connections are closed? */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <zmq.h>

#include "transport/sockets/socket_parts.h"

/* An event's number and value; the endpoint follows in a frame of its own. */
#define EVENT_SIZE 6
#define LINK_EVENTS                                                    \
    (ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | \
     ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL)
#define REFUSED_BY_ZAP 400
/* A server whose key is another one hangs up at once, without a word; so does one that ends just
 * then, but not so often for so long. A handshake that ends later was given up, and says nothing
 * of keys. One that has let this link in before has the key. */
#define FAILURES_MIN 3
#define FAILURES_MS 2000 /* from the first one to the last */
#define GIVEN_UP_MS 4000 /* from one to the next: that one took too long */

psd_status_t ps_socket_begin_watch(ps_socket_t *self, psd_error_t *err)
{
    const int events = ZMQ_EVENT_DISCONNECTED | (self->is_port ? 0 : LINK_EVENTS);
    const int no_limit = 0; /* an I/O thread never waits for the reader of this */
    char place[64];
    psd_status_t rc = PSD_OK;

    (void)snprintf(place, sizeof place, "inproc://watch-%" PRIu64,
                   ps_context_next_number(self->context));
    if (zmq_socket_monitor(self->handle, place, events) != 0) {
        return ps_zmq_status(err, "watch a link");
    }
    rc = ps_context_open(self->context, ZMQ_PAIR, &self->monitor, err);
    if (rc != PSD_OK) {
        (void)zmq_socket_monitor(self->handle, NULL, 0);
    } else if (zmq_setsockopt(self->monitor, ZMQ_RCVHWM, &no_limit, sizeof no_limit) != 0 ||
               zmq_connect(self->monitor, place) != 0) {
        rc = ps_zmq_status(err, "watch a link");
    }
    return rc;
}

/* First the one that tells: an I/O thread that has news for a reader that is
 * gone waits for good, and all its connections with it. */
void ps_socket_end_watch(ps_socket_t *self)
{
    if (self->monitor != NULL) {
        if (!ps_context_is_forked(self->context)) {
            (void)zmq_socket_monitor(self->handle, NULL, 0);
        }
        ps_context_close(self->context, self->monitor);
        self->monitor = NULL;
    }
}

/* The next event's number; 0: there is none. */
static uint16_t next_event(void *monitor, uint32_t *ret_value)
{
    uint8_t event[EVENT_SIZE] = {0};
    uint16_t number = 0;
    int size = zmq_recv(monitor, event, sizeof event, ZMQ_DONTWAIT);

    if (size < EVENT_SIZE) {
        return 0;
    }
    memcpy(&number, event, sizeof number); /* in the order of the machine */
    memcpy(ret_value, event + sizeof number, sizeof *ret_value);
    (void)zmq_recv(monitor, NULL, 0, ZMQ_DONTWAIT);
    return number;
}

/* One more handshake has failed. Are these enough in a row to blame another key? */
static bool is_hung_up(ps_socket_t *self, uint64_t now_ms)
{
    if (self->n_failures == 0 || now_ms - self->failed_ms >= GIVEN_UP_MS) {
        self->n_failures = 0;
        self->first_failed_ms = now_ms;
    }
    self->failed_ms = now_ms;
    return ++self->n_failures >= FAILURES_MIN && now_ms - self->first_failed_ms >= FAILURES_MS;
}

/* A handshake has failed. */
static void note_failure(ps_socket_t *self, uint16_t event, uint32_t value)
{
    if (event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH && value == REFUSED_BY_ZAP) {
        self->denial = PS_DENIAL_KEY;
    } else if (event == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL &&
               value == ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH) {
        self->denial = self->is_curve ? PS_DENIAL_HAS_NONE : PS_DENIAL_WANTS_KEY;
    } else if (event == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL && self->is_curve && !self->is_up &&
               is_hung_up(self, ps_now_ms())) {
        self->denial = PS_DENIAL_SERVER;
    }
}

/* Takes in what the monitor has said. */
static void look(ps_socket_t *self)
{
    uint16_t event = 0;
    uint32_t value = 0;

    while (self->monitor != NULL && (event = next_event(self->monitor, &value)) != 0) {
        if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
            self->is_up = true;
            self->n_failures = 0;
        } else if (event != ZMQ_EVENT_DISCONNECTED) {
            note_failure(self, event, value);
        } else if (self->is_up) {
            self->was_lost = true;
        }
    }
}

void ps_socket_look_closed(ps_socket_t *self)
{
    uint16_t event = 0;
    uint32_t value = 0;

    while (self->monitor != NULL && (event = next_event(self->monitor, &value)) != 0) {
        if (event == ZMQ_EVENT_DISCONNECTED) {
            uint64_t gone = ps_port_conns_closed(&self->conns, (int)value);

            if (gone != 0) {
                ps_unfinished_forget(self, gone);
            }
        }
    }
}

ps_denial_t ps_socket_denial(ps_socket_t *self)
{
    look(self);
    return self->denial;
}

const char *ps_denial_text(ps_denial_t denial)
{
    switch (denial) {
    case PS_DENIAL_WANTS_KEY:
        return "the psd there asks for a key, and the endpoint does not name the psd's own: take "
               "the endpoint from its endpoints.json or its log (tcp://HOST:PORT#KEY), and set "
               "PSD_KEY_FILE to the file of your key";
    case PS_DENIAL_HAS_NONE:
        return "the endpoint names the key of a psd, and what answers there has none";
    case PS_DENIAL_KEY:
        return "the psd there does not take this key";
    case PS_DENIAL_SERVER:
    case PS_DENIAL_NONE:
    default:
        return "what answers there has another key than the endpoint names: ask the owner of that "
               "psd for its endpoint, and send nothing before";
    }
}

bool ps_socket_is_connected(ps_socket_t *self)
{
    look(self);
    return self->is_up && !self->was_lost;
}

bool ps_socket_was_lost(ps_socket_t *self)
{
    look(self);
    return self->was_lost;
}
