/* SPDX-License-Identifier: Apache-2.0 */
/* How a client connects, and how one call is done. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "client/connection/client_state.h"
#include "client/connection/rank_server.h"
#include "psd/trace.h"
#include "transport/environment/environment.h"
#include "transport/sockets/ranks.h"

#define SPIN_MAX_US 10000
#define TIMEOUT_MAX_MS 86400000 /* a day */

const char *psd_version(void)
{
    return PSD_RELEASE;
}

psd_options_t *psd_options_new(void)
{
    return ps_alloc(1, sizeof(psd_options_t));
}

void psd_options_destroy(psd_options_t **self_p)
{
    if (self_p != NULL) {
        ps_free(*self_p);
        *self_p = NULL;
    }
}

void psd_options_set_timeout_ms(psd_options_t *self, uint32_t timeout_ms)
{
    self->has_timeout = true;
    self->timeout_ms = timeout_ms;
}

/* False: no such word. */
static bool parse_transport(const char *text, ps_transport_t *ret_transport)
{
    static const char *const words[] = {"auto", "tcp", "ipc", "lane"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(text, words[i]) == 0) {
            *ret_transport = (ps_transport_t)(PS_TRANSPORT_AUTO + i);
            return true;
        }
    }
    return false;
}

psd_status_t psd_options_set_transport(psd_options_t *self, const char *transport, psd_error_t *err)
{
    psd_error_clear(err);
    if (parse_transport(transport, &self->transport)) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_INVALID,
                         "transport is \"%.40s\"; allowed: auto, lane, ipc, "
                         "tcp",
                         transport);
}

psd_status_t psd_options_set_spin_us(psd_options_t *self, uint32_t spin_us, psd_error_t *err)
{
    psd_error_clear(err);
    if (spin_us > SPIN_MAX_US) {
        return psd_error_set(err, PSD_INVALID, "spin_us is %" PRIu32 "; allowed: 0..%d", spin_us,
                             SPIN_MAX_US);
    }
    self->has_spin = true;
    self->spin_us = spin_us;
    return PSD_OK;
}

void psd_options_set_wait(psd_options_t *self, bool wait)
{
    self->has_wait = true;
    self->waits = wait;
}

void psd_options_set_guest(psd_options_t *self, bool guest)
{
    self->no_guest = !guest;
}

void psd_options_set_on_wait(psd_options_t *self, psd_on_wait_t *on_wait, void *user)
{
    self->on_wait = on_wait;
    self->on_wait_user = user;
}

/* A whole number that the environment says, where it says one. */
static psd_status_t read_number(const char *name, int64_t least, int64_t most, uint32_t *number,
                                psd_error_t *err)
{
    ps_environment_t said;
    int64_t value = 0;
    psd_status_t rc = ps_environment_read(name, &said, err);

    if (rc != PSD_OK || said.text == NULL) {
        return rc;
    }
    if (!ps_text_i64(said.text, &value) || value < least || value > most) {
        return psd_error_set(err, PSD_INVALID, "%s is \"%.40s\"; allowed: %" PRId64 "..%" PRId64,
                             said.origin, said.text, least, most);
    }
    *number = (uint32_t)value;
    return PSD_OK;
}

static psd_status_t resolve_transport(psd_options_t *self, psd_error_t *err)
{
    ps_environment_t said;
    psd_status_t rc = ps_environment_read("PSD_TRANSPORT", &said, err);

    self->transport = PS_TRANSPORT_AUTO;
    if (rc != PSD_OK || said.text == NULL || parse_transport(said.text, &self->transport)) {
        return rc;
    }
    switch (ps_ranks_use()) {
    case PS_RANKS_FIRST:
        self->transport = ps_ranks_do_carry() ? PS_TRANSPORT_MPI_AUTO : PS_TRANSPORT_AUTO;
        return PSD_OK;
    case PS_RANKS_ALONE:
        self->transport = PS_TRANSPORT_MPI;
        return ps_ranks_do_carry()
                   ? PSD_OK
                   : psd_error_set(err, PSD_INVALID,
                                   "%s=mpi is allowed only with PSD_ENDPOINT=" PS_RANKS_ENDPOINT,
                                   said.origin);
    case PS_RANKS_UNUSED:
    default:
        return psd_error_set(err, PSD_INVALID,
                             "%s is \"%.40s\"; allowed: auto, lane, ipc, tcp, mpi, mpi,auto",
                             said.origin, said.text);
    }
}

psd_status_t ps_options_resolve(psd_options_t *self, psd_error_t *err)
{
    uint32_t wait = 2; /* not said */
    psd_status_t rc = ps_environment_check(err);

    if (rc == PSD_OK && self->transport == PS_TRANSPORT_UNSAID) {
        rc = resolve_transport(self, err);
    }
    if (rc == PSD_OK && !self->has_spin) {
        self->spin_us = PS_LANE_SPIN_US;
        rc = read_number("PSD_SPIN_US", 0, SPIN_MAX_US, &self->spin_us, err);
    }
    if (rc == PSD_OK && !self->has_timeout) {
        self->timeout_ms = PS_TIMEOUT_MS;
        rc = read_number("PSD_TIMEOUT_MS", 1, TIMEOUT_MAX_MS, &self->timeout_ms, err);
    }
    if (rc == PSD_OK && !self->has_wait) {
        rc = read_number("PSD_WAIT", 0, 1, &wait, err);
        self->has_wait = wait < 2;
        self->waits = wait == 1;
    }
    return rc;
}

psd_call_t *psd_call_new(void)
{
    return ps_alloc(1, sizeof(psd_call_t));
}

void psd_call_destroy(psd_call_t **self_p)
{
    if (self_p != NULL) {
        ps_free(*self_p);
        *self_p = NULL;
    }
}

void psd_call_set_timeout_ms(psd_call_t *self, uint32_t timeout_ms)
{
    self->has_timeout = true;
    self->timeout_ms = timeout_ms;
}

psd_status_t psd_call_set_ack(psd_call_t *self, const char *level, psd_error_t *err)
{
    psd_error_clear(err);
    if (strcmp(level, "default") == 0) {
        self->ack = PS_ACK_DEFAULT;
        return PSD_OK;
    }
    return ps_ack_parse(level, &self->ack, err);
}

void psd_call_set_priority(psd_call_t *self, int32_t priority)
{
    self->priority = priority;
}

void psd_call_set_after(psd_call_t *self, psd_ticket_t ticket)
{
    self->after = ticket;
}

void psd_call_set_command(psd_call_t *self, uint32_t command)
{
    self->command = command;
}

void psd_call_set_borrow(psd_call_t *self, bool borrow)
{
    self->borrow = borrow;
}

void psd_call_set_ends_clock(psd_call_t *self, bool ends)
{
    self->ends_clock = ends;
}

void psd_call_set_trace(psd_call_t *self, psd_trace_t *trace)
{
    self->trace = trace;
}

psd_status_t psd_call_set_filter(psd_call_t *self, const char *filter, psd_error_t *err)
{
    psd_error_clear(err);

    psd_status_t rc = ps_filter_parse(filter, &self->filter, err);

    if (rc == PSD_OK) {
        self->has_filter = true;
    }
    return rc;
}

void psd_free(void *text)
{
    ps_free(text);
}
