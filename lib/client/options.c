/* SPDX-License-Identifier: Apache-2.0 */
/* How a client connects, and how one call is done. */
#include <string.h>

#include "base/alloc.h"
#include "client/client_state.h"

const char *
psd_version(void)
{
    return PSD_RELEASE;
}

psd_options_t *
psd_options_new(void)
{
    psd_options_t *self = ps_alloc(1, sizeof *self);

    if (self != NULL) {
        self->timeout_ms = PS_TIMEOUT_MS;
    }
    return self;
}

void
psd_options_destroy(psd_options_t **self_p)
{
    if (self_p != NULL) {
        ps_free(*self_p);
        *self_p = NULL;
    }
}

void
psd_options_set_timeout_ms(psd_options_t *self, uint32_t timeout_ms)
{
    self->timeout_ms = timeout_ms;
}

psd_status_t
psd_options_set_transport(psd_options_t *self,
                          const char *transport,
                          psd_error_t *err)
{
    static const char *const words[] = {"auto", "tcp", "ipc"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(transport, words[i]) == 0) {
            self->transport = (ps_transport_t)i;
            return PSD_OK;
        }
    }
    return psd_error_set(err, PSD_INVALID,
                         "transport is \"%.40s\"; allowed: auto, tcp, ipc",
                         transport);
}

psd_call_t *
psd_call_new(void)
{
    return ps_alloc(1, sizeof(psd_call_t));
}

void
psd_call_destroy(psd_call_t **self_p)
{
    if (self_p != NULL) {
        ps_free(*self_p);
        *self_p = NULL;
    }
}

void
psd_call_set_timeout_ms(psd_call_t *self, uint32_t timeout_ms)
{
    self->has_timeout = true;
    self->timeout_ms = timeout_ms;
}

psd_status_t
psd_call_set_ack(psd_call_t *self, const char *level, psd_error_t *err)
{
    if (strcmp(level, "default") == 0) {
        self->ack = PS_ACK_DEFAULT;
        return PSD_OK;
    }
    return ps_ack_parse(level, &self->ack, err);
}

void
psd_call_set_priority(psd_call_t *self, int32_t priority)
{
    self->priority = priority;
}

void
psd_call_set_after(psd_call_t *self, psd_ticket_t ticket)
{
    self->after = ticket;
}

void
psd_call_set_command(psd_call_t *self, uint32_t command)
{
    self->command = command;
}

void
psd_call_set_borrow(psd_call_t *self, bool borrow)
{
    self->borrow = borrow;
}

void
psd_free(void *text)
{
    ps_free(text);
}
