/* SPDX-License-Identifier: Apache-2.0 */
/* What goes over lines, and what comes. */
#include <string.h>

#include "base/alloc.h"
#include "ucx/lines_inner.h"

/* One that UCX has begun. UCX reads head and cargo until it ends. */
typedef struct sending {
    ps_ucx_lines_t *lines;
    uint32_t line;
    uint32_t generation;
    ps_ucx_head_t head;
    ps_cargo_t *cargo; /* NULL: BYE */
} sending_t;

/* ---- out ----------------------------------------------------------------- */

static void end_send(sending_t *self, ucs_status_t code)
{
    ps_ucx_line_t *line = ps_ucx_line_of(self->lines, self->line, self->generation);

    if (line != NULL) { /* else its counts are another one's */
        self->lines->n_sending[self->line]--;
        if (code != UCS_OK) {
            ps_ucx_line_lose(self->lines, line);
        }
    }
    ps_cargo_free(self->cargo);
    ps_free(self);
}

static void on_sent(void *request, ucs_status_t code, void *of)
{
    ucp_request_free(request);
    end_send(of, code);
}

/* Takes the cargo; NULL: BYE. false: no memory, nothing has changed. */
static bool begin_send(ps_ucx_lines_t *self, ps_ucx_line_t *line, ps_cargo_t *cargo)
{
    sending_t *sending = ps_alloc(1, sizeof *sending);
    const ucp_request_param_t param = {.op_attr_mask =
                                           UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                       .cb = {.send = on_sent},
                                       .user_data = sending};
    ucs_status_ptr_t request = NULL;

    if (sending == NULL) {
        return false;
    }
    line->n_sent += cargo == NULL ? 0 : 1;
    *sending = (sending_t){
        .lines = self,
        .line = line->number,
        .generation = line->generation,
        .head = {.number = line->n_sent, .to = line->its_line, .of = line->its_generation},
        .cargo = cargo};
    self->n_sending[line->number]++;
    self->sent += cargo == NULL ? 0 : cargo->size;
    request =
        ucp_am_send_nbx(line->endpoint, cargo == NULL ? PS_UCX_BYE : PS_UCX_CARGO, &sending->head,
                        sizeof sending->head, cargo == NULL ? NULL : ps_cargo_bytes(cargo),
                        cargo == NULL ? 0 : cargo->size, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        end_send(sending, UCS_PTR_STATUS(request));
    }
    return true;
}

void ps_ucx_send_bye(ps_ucx_lines_t *self, ps_ucx_line_t *line)
{
    line->is_leaving = begin_send(self, line, NULL);
}

bool ps_ucx_send_all(ps_ucx_lines_t *self)
{
    ps_cargos_t ready = STAILQ_HEAD_INITIALIZER(ready);
    ps_cargo_t *cargo = NULL;
    bool moved = false;

    ps_hall_collect(self->hall, self->n_sending, PS_UCX_MOST, &ready);
    while ((cargo = STAILQ_FIRST(&ready)) != NULL) {
        ps_ucx_line_t *line = (size_t)cargo->rank < self->n ? self->items[cargo->rank] : NULL;

        STAILQ_REMOVE_HEAD(&ready, in_line);
        moved = true;
        if (line == NULL || !line->is_used || line->is_lost || !line->has_met) {
            ps_cargo_free(cargo); /* to one that is gone */
        } else if (!begin_send(self, line, cargo)) {
            ps_cargo_free(cargo);
            ps_ucx_line_lose(self, line);
        }
    }
    return moved;
}

/* ---- in ------------------------------------------------------------------ */

static void free_arrival(ps_ucx_arrival_t *arrival)
{
    ps_cargo_free(arrival->cargo);
    ps_free(arrival);
}

/* What has the number after that of the last one, and so on. */
void ps_ucx_deliver(ps_ucx_lines_t *self, ps_ucx_line_t *line)
{
    ps_ucx_arrival_t *arrival = NULL;

    while ((arrival = TAILQ_FIRST(&line->arrivals)) != NULL && arrival->is_done &&
           arrival->number == line->n_taken + 1) {
        ps_cargo_t *cargo = arrival->cargo;

        if (arrival->is_bad) {
            ps_ucx_line_lose(self, line);
            return;
        }
        TAILQ_REMOVE(&line->arrivals, arrival, in_order);
        arrival->cargo = NULL;
        free_arrival(arrival);
        line->n_taken++;
        self->received += cargo->size;
        if (cargo->size >= sizeof cargo->head && cargo->head.kind == PS_CARGO_OPEN) {
            cargo->head.to = line->port; /* a line leads to one port */
        }
        ps_hall_take(self->hall, &cargo);
    }
}

void ps_ucx_drop_arrivals(ps_ucx_line_t *line)
{
    ps_ucx_arrival_t *arrival = NULL;

    while ((arrival = TAILQ_FIRST(&line->arrivals)) != NULL) {
        TAILQ_REMOVE(&line->arrivals, arrival, in_order);
        if (arrival->is_done) {
            free_arrival(arrival);
        } else {
            arrival->is_orphan = true; /* UCX writes into it */
        }
    }
}

static void on_received(void *request, ucs_status_t code, size_t size, void *of)
{
    ps_ucx_arrival_t *arrival = of;

    (void)size; /* it is what was said */
    ucp_request_free(request);
    arrival->is_done = true;
    arrival->is_bad = code != UCS_OK;
    arrival->lines->has_arrived = true;
    if (arrival->is_orphan) {
        free_arrival(arrival);
    }
}

/* By its number; mostly it is the last. */
static void put_in_order(ps_ucx_line_t *line, ps_ucx_arrival_t *arrival)
{
    ps_ucx_arrival_t *before = TAILQ_LAST(&line->arrivals, ps_ucx_arrivals);

    while (before != NULL && before->number > arrival->number) {
        before = TAILQ_PREV(before, ps_ucx_arrivals, in_order);
    }
    if (before == NULL) {
        TAILQ_INSERT_HEAD(&line->arrivals, arrival, in_order);
    } else {
        TAILQ_INSERT_AFTER(&line->arrivals, before, arrival, in_order);
    }
}

/* The line that the head is for. NULL: none. */
static ps_ucx_line_t *read_head(ps_ucx_lines_t *self, const void *header, size_t size,
                                ps_ucx_head_t *ret_head)
{
    if (size != sizeof *ret_head) {
        return NULL;
    }
    memcpy(ret_head, header, sizeof *ret_head);
    return ps_ucx_line_of(self, ret_head->to, ret_head->of);
}

/* What the sender has announced, and still has. */
static ucs_status_t fetch(ucp_worker_h worker, void *data, size_t size, ps_ucx_arrival_t *arrival)
{
    const ucp_request_param_t how = {.op_attr_mask =
                                         UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                     .cb = {.recv_am = on_received},
                                     .user_data = arrival};
    ucs_status_ptr_t request = NULL;

    request = ucp_am_recv_data_nbx(worker, data, ps_cargo_bytes(arrival->cargo), size, &how);
    if (!UCS_PTR_IS_PTR(request)) {
        arrival->is_done = true;
        arrival->is_bad = UCS_PTR_STATUS(request) != UCS_OK;
    }
    return UCS_INPROGRESS;
}

ucs_status_t ps_ucx_on_cargo(void *arg, const void *header, size_t header_size, void *data,
                             size_t size, const ucp_am_recv_param_t *param)
{
    ps_ucx_lines_t *self = arg;
    ps_ucx_head_t head;
    ps_ucx_line_t *line = read_head(self, header, header_size, &head);
    const bool is_there = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0;
    ps_ucx_arrival_t *arrival = NULL;

    if (line == NULL) {
        return UCS_OK;
    }
    if (head.number <= line->n_taken || size > PS_CARGO_BYTES_MAX + sizeof(ps_cargo_head_t)) {
        ps_ucx_line_lose(self, line); /* it breaks the rules */
        return UCS_OK;
    }
    arrival = ps_alloc(1, sizeof *arrival);
    if (arrival != NULL) {
        arrival->cargo = ps_cargo_for((int)line->number, size);
    }
    if (arrival == NULL || arrival->cargo == NULL) {
        ps_free(arrival);
        ps_ucx_line_lose(self, line);
        return UCS_OK;
    }
    arrival->lines = self;
    arrival->number = head.number;
    put_in_order(line, arrival);
    self->has_arrived = true;
    if (is_there) {
        memcpy(ps_cargo_bytes(arrival->cargo), data, size);
        arrival->is_done = true;
        return UCS_OK;
    }
    return fetch(self->worker, data, size, arrival);
}

ucs_status_t ps_ucx_on_bye(void *arg, const void *header, size_t header_size, void *data,
                           size_t size, const ucp_am_recv_param_t *param)
{
    ps_ucx_lines_t *self = arg;
    ps_ucx_head_t head;
    ps_ucx_line_t *line = read_head(self, header, header_size, &head);

    (void)data;
    (void)size;
    (void)param;
    if (line != NULL) {
        line->has_bye = true;
        line->bye = head.number;
    }
    return UCS_OK;
}
