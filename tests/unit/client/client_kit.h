/* SPDX-License-Identifier: Apache-2.0 */
/* A client with a session but no sockets, and one table of one partition: what
 * it sends stays in its outbox. Its credits are one request. */
#ifndef PS_TESTS_CLIENT_KIT_H
#define PS_TESTS_CLIENT_KIT_H

#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"
#include "client/requests/pump.h"
#include "client/requests/table.h"
#include "client/requests/ticket.h"

typedef struct fixture {
    psd_client_t client;
    ps_known_table_t *table;
    ps_ticket_t *ticket;
} fixture_t;

static inline void set_up(fixture_t *f)
{
    const ps_session_args_t args = {.session = 1, .resend_ms = 100};
    ps_route_t route = {.epoch = 1, .incarnation = 1};

    *f = (fixture_t){.ticket = NULL};
    ps_client_init(&f->client);
    f->client.now_ms = 1000;
    f->client.credit_requests = 1;
    f->client.credit_bytes = 1;
    f->client.scratch = psd_error_new();
    cr_assert_eq(ps_session_new(&args, &f->client.session, NULL), PSD_OK);
    cr_assert_eq(ps_session_routes(f->client.session, 1, &route, 1, NULL), PSD_OK);
    cr_assert_eq(ps_known_table_add(&f->client, 1, "w", 1, &f->table, NULL), PSD_OK);
    cr_assert_eq(ps_ticket_new(&f->client, 60000, &f->ticket, NULL), PSD_OK);
    f->ticket->verb = "push to";
    f->ticket->table = f->table;
}

static inline void tear_down(fixture_t *f)
{
    ps_slice_requests_done(&f->client);
    ps_tickets_done(&f->client);
    ps_session_destroy(&f->client.session);
    ps_outbox_done(&f->client.outbox);
    psd_error_destroy(&f->client.scratch);
    ps_free(f->table->queues);
    ps_free(f->table);
    ps_free(f->client.tables);
}

#endif
