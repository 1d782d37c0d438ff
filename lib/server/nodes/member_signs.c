/* SPDX-License-Identifier: Apache-2.0 */
/* Signs of life to the members of the registry that do not lead, so that each knows
 * who lives when it begins to. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/nodes/member_inner.h"

#define QUEUED 8 /* signs to a member that is away: old ones are of no use */
#define BATCH 16

void ps_member_drop_signs(ps_member_t *self)
{
    for (size_t i = 0; i < self->n_signs; i++) {
        ps_socket_drop(&self->signs[i].link);
    }
    self->n_signs = 0;
}

static ps_sign_link_t *find_link(ps_member_t *self, const char *endpoint)
{
    for (size_t i = 0; i < self->n_signs; i++) {
        if (strcmp(self->signs[i].endpoint, endpoint) == 0) {
            return &self->signs[i];
        }
    }
    return NULL;
}

static void open_link(ps_member_t *self, const char *endpoint, const ps_socket_args_t *socket)
{
    ps_sign_link_t *link = &self->signs[self->n_signs];
    ps_socket_args_t args = *socket;

    args.high_water = QUEUED;
    *link = (ps_sign_link_t){.is_wanted = true};
    (void)snprintf(link->endpoint, sizeof link->endpoint, "%s", endpoint);
    if (ps_socket_connect(endpoint, &args, &link->link, self->err) == PSD_OK) {
        self->n_signs++;
    } else {
        ps_log(PS_LOG_DEBUG, "member_not_reached", "endpoint=%s reason=\"%s\"", endpoint,
               psd_error_text(self->err));
        psd_error_clear(self->err);
    }
}

/* Links to all that do not lead, as far as this node knows; not to itself. */
static void settle_links(ps_member_t *self, const ps_seat_t *seats, size_t n,
                         const ps_socket_args_t *socket)
{
    for (size_t i = 0; i < self->n_signs; i++) {
        self->signs[i].is_wanted = false;
    }
    for (size_t i = 0; i < n; i++) {
        ps_sign_link_t *link = find_link(self, seats[i].endpoint);
        bool leads = self->link != NULL && strcmp(seats[i].endpoint, self->registry) == 0;

        if (leads || strcmp(seats[i].node, self->name) == 0) {
            continue;
        }
        if (link != NULL) {
            link->is_wanted = true;
        } else if (self->n_signs < PS_SEATS_MAX) {
            open_link(self, seats[i].endpoint, socket);
        }
    }
    for (size_t i = self->n_signs; i-- > 0;) {
        if (!self->signs[i].is_wanted) {
            ps_socket_drop(&self->signs[i].link);
            self->signs[i] = self->signs[--self->n_signs];
        }
    }
}

/* One of them may lead by now. */
static void take_answers(ps_member_t *self, ps_sign_link_t *link)
{
    for (int i = 0; i < BATCH; i++) {
        PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
        uint64_t conn = 0;
        bool got = false;

        if (ps_socket_receive_text(link->link, &got, &conn, &text, NULL) != PSD_OK || !got) {
            return;
        }
        ps_agent_take_of_member(self->agent, (ps_bytes_t){.data = text.data, .size = text.size});
    }
}

void ps_member_sign(ps_member_t *self, const ps_replica_t *replica, const ps_socket_args_t *socket)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t sign = {0};
    ps_seat_t own[PS_SEATS_MAX];
    const ps_seat_t *seats = NULL;
    uint64_t now_ms = ps_now_ms();
    size_t n = 0;

    if (now_ms < self->sign_ms) {
        return;
    }
    self->sign_ms = now_ms + self->heartbeat_ms;
    n = ps_member_known_seats(self, replica, own, &seats);
    settle_links(self, seats, n, socket);
    if (self->n_signs == 0 || !ps_agent_sign(self->agent, &sign)) {
        return;
    }
    for (size_t i = 0; i < self->n_signs; i++) {
        take_answers(self, &self->signs[i]);
        /* A member that takes none is away. */
        (void)!ps_socket_send_text(self->signs[i].link, 0,
                                   (ps_bytes_t){.data = sign.data, .size = sign.size}, NULL);
    }
}

uint64_t ps_member_sign_due(const ps_member_t *self)
{
    return self->n_signs == 0 ? UINT64_MAX : self->sign_ms;
}
