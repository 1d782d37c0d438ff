/* SPDX-License-Identifier: Apache-2.0 */
/* Lines from their making to their end. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "ucx/lines_inner.h"

#define PROGRESS_MOST 256 /* steps of a worker in one turn */

/* ---- UCX ----------------------------------------------------------------- */

static ucs_status_t begin(ps_ucx_lines_t *self)
{
    const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                                 .features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP};
    const ucp_worker_params_t worker = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                        .thread_mode = UCS_THREAD_MODE_SINGLE};
    ucs_status_t code = ucp_init(&params, NULL, &self->context);

    if (code != UCS_OK) {
        self->context = NULL;
        return code;
    }
    code = ucp_worker_create(self->context, &worker, &self->worker);
    if (code != UCS_OK) {
        self->worker = NULL;
    }
    return code;
}

static ucs_status_t hear(ps_ucx_lines_t *self)
{
    const ucp_am_handler_param_t handlers[] = {{.id = PS_UCX_MEETING, .cb = ps_ucx_on_meeting},
                                               {.id = PS_UCX_CARGO, .cb = ps_ucx_on_cargo},
                                               {.id = PS_UCX_BYE, .cb = ps_ucx_on_bye}};
    ucs_status_t code = UCS_OK;

    for (size_t i = 0; code == UCS_OK && i < sizeof handlers / sizeof handlers[0]; i++) {
        ucp_am_handler_param_t handler = handlers[i];

        handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                             UCP_AM_HANDLER_PARAM_FIELD_ARG | UCP_AM_HANDLER_PARAM_FIELD_FLAGS;
        handler.flags = UCP_AM_FLAG_WHOLE_MSG;
        handler.arg = self;
        code = ucp_worker_set_am_recv_handler(self->worker, &handler);
    }
    return code;
}

ps_ucx_lines_t *ps_ucx_lines_new(ps_hall_t *hall, char ret_reason[PS_CARRIER_REASON])
{
    ps_ucx_lines_t *self = ps_alloc(1, sizeof *self);
    ucs_status_t code = self == NULL ? UCS_ERR_NO_MEMORY : begin(self);

    if (code == UCS_OK) {
        code = hear(self);
    }
    if (code != UCS_OK) {
        (void)snprintf(ret_reason, PS_CARRIER_REASON, "UCX does not begin: %s",
                       ucs_status_string(code));
        ps_ucx_lines_destroy(&self);
        return NULL;
    }
    self->hall = hall;
    SLIST_INIT(&self->doors);
    return self;
}

/* ---- lines --------------------------------------------------------------- */

ps_ucx_line_t *ps_ucx_line_of(ps_ucx_lines_t *self, uint32_t number, uint32_t generation)
{
    ps_ucx_line_t *line = number < self->n ? self->items[number] : NULL;

    return line != NULL && line->is_used && line->generation == generation ? line : NULL;
}

void ps_ucx_line_lose(ps_ucx_lines_t *self, ps_ucx_line_t *line)
{
    line->is_lost = true;
    self->has_lost = true;
}

/* UCX's word: the other process is gone, or cannot be reached. */
static void on_error(void *arg, ucp_ep_h endpoint, ucs_status_t status)
{
    ps_ucx_lines_t *self = arg;

    (void)status;
    for (size_t i = 0; i < self->n; i++) {
        if (self->items[i]->is_used && self->items[i]->endpoint == endpoint) {
            ps_ucx_line_lose(self, self->items[i]);
        }
    }
}

/* That of a peer. NULL: no memory. */
static ps_ucx_line_t *begin_line(ps_ucx_lines_t *self, int peer)
{
    ps_ucx_line_t *line = NULL;
    uint32_t generation = 0;

    while (self->n <= (size_t)peer) {
        ps_ucx_line_t *made = ps_alloc(1, sizeof *made);

        if (made == NULL ||
            !ps_grow(&self->items, &self->capacity, self->n + 1, sizeof *self->items) ||
            !ps_grow(&self->n_sending, &self->n_capacity, self->n + 1, sizeof *self->n_sending)) {
            ps_free(made);
            return NULL;
        }
        self->items[self->n++] = made;
    }
    line = self->items[peer];
    generation = line->generation + 1;
    *line = (ps_ucx_line_t){.is_used = true, .number = (uint32_t)peer, .generation = generation};
    TAILQ_INIT(&line->arrivals);
    self->n_sending[peer] = 0;
    return line;
}

/* With what is there already. false: UCX refuses. */
static bool open_line(ps_ucx_lines_t *self, ps_ucx_line_t *line, ucp_ep_params_t *params)
{
    params->field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params->err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params->err_handler = (ucp_err_handler_t){.cb = on_error, .arg = self};
    if (ucp_ep_create(self->worker, params, &line->endpoint) != UCS_OK) {
        line->endpoint = NULL;
        return false;
    }
    return true;
}

static socklen_t size_of(const struct sockaddr_storage *at)
{
    return at->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

void ps_ucx_lines_connect(ps_ucx_lines_t *self, int peer, const struct sockaddr_storage *at)
{
    ps_ucx_line_t *line = begin_line(self, peer);
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_SOCK_ADDR | UCP_EP_PARAM_FIELD_FLAGS,
        .flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER,
        .sockaddr = {.addr = (const struct sockaddr *)at, .addrlen = size_of(at)}};

    if (line == NULL) {
        ps_hall_lose(self->hall, peer);
        ps_hall_drop_peer(self->hall, peer);
        return;
    }
    line->is_ours = true;
    if (open_line(self, line, &params)) {
        ps_ucx_meet(self, line);
    } else {
        ps_ucx_line_lose(self, line);
    }
}

/* Somebody has connected to a door. */
static void on_connection(ucp_conn_request_h request, void *arg)
{
    ps_ucx_door_t *door = arg;
    ps_ucx_lines_t *self = door->lines;
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST,
                              .conn_request = request};
    int peer = ps_hall_add_peer(self->hall);
    ps_ucx_line_t *line = peer < 0 ? NULL : begin_line(self, peer);

    if (line == NULL) {
        (void)ucp_listener_reject(door->listener, request);
        if (peer >= 0) {
            ps_hall_drop_peer(self->hall, peer);
        }
        return;
    }
    line->port = door->port;
    if (open_line(self, line, &params)) {
        ps_ucx_meet(self, line);
    } else {
        ps_ucx_line_lose(self, line);
    }
}

/* Ends its endpoint. One that is lost is told nothing. */
static void close_line(ps_ucx_lines_t *self, ps_ucx_line_t *line)
{
    const ucp_request_param_t how = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                     .flags = line->is_lost ? UCP_EP_CLOSE_FLAG_FORCE : 0};
    ucs_status_ptr_t request = NULL;

    line->is_used = false; /* what its endpoint still tells is of no line */
    if (line->endpoint != NULL) {
        request = ucp_ep_close_nbx(line->endpoint, &how);
    }
    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request);
    }
    ps_ucx_drop_arrivals(line);
    ps_hall_lose(self->hall, (int)line->number);
    ps_hall_drop_peer(self->hall, (int)line->number);
}

/* ---- doors --------------------------------------------------------------- */

static int errno_of(ucs_status_t code)
{
    return code == UCS_ERR_BUSY            ? EADDRINUSE
           : code == UCS_ERR_NO_MEMORY     ? ENOMEM
           : code == UCS_ERR_INVALID_ADDR  ? EADDRNOTAVAIL
           : code == UCS_ERR_UNREACHABLE   ? ENETUNREACH
           : code == UCS_ERR_INVALID_PARAM ? EINVAL
           : code == UCS_ERR_NO_DEVICE     ? ENODEV
                                           : EIO;
}

int ps_ucx_lines_listen(ps_ucx_lines_t *self, const struct sockaddr_storage *at, uint32_t port,
                        struct sockaddr_storage *ret_at)
{
    ps_ucx_door_t *door = ps_alloc(1, sizeof *door);
    const ucp_listener_params_t params = {
        .field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
        .sockaddr = {.addr = (const struct sockaddr *)at, .addrlen = size_of(at)},
        .conn_handler = {.cb = on_connection, .arg = door}};
    ucp_listener_attr_t attributes = {.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR};
    ucs_status_t code = UCS_OK;

    if (door == NULL) {
        return ENOMEM;
    }
    door->lines = self;
    door->port = port;
    code = ucp_listener_create(self->worker, &params, &door->listener);
    if (code != UCS_OK) {
        ps_free(door);
        return errno_of(code);
    }
    SLIST_INSERT_HEAD(&self->doors, door, in_list);
    code = ucp_listener_query(door->listener, &attributes);
    *ret_at = attributes.sockaddr;
    return code == UCS_OK ? 0 : errno_of(code);
}

void ps_ucx_lines_unlisten(ps_ucx_lines_t *self, uint32_t port)
{
    ps_ucx_door_t *door = SLIST_FIRST(&self->doors);

    while (door != NULL && door->port != port) {
        door = SLIST_NEXT(door, in_list);
    }
    if (door != NULL) {
        SLIST_REMOVE(&self->doors, door, ps_ucx_door, in_list);
        ucp_listener_destroy(door->listener);
        ps_free(door);
    }
}

/* ---- a turn -------------------------------------------------------------- */

static bool progress(ps_ucx_lines_t *self)
{
    uint32_t n = 0;

    while (n < PROGRESS_MOST && ucp_worker_progress(self->worker) != 0) {
        n++;
    }
    return n > 0;
}

static void look_lost(ps_ucx_lines_t *self)
{
    for (size_t i = 0; self->has_lost && i < self->n; i++) {
        ps_ucx_line_t *line = self->items[i];

        if (line->is_used && line->is_lost) {
            ps_ucx_deliver(self, line);
            close_line(self, line);
        }
    }
    self->has_lost = false;
}

/* Lines that nobody needs any more. */
static void look_left(ps_ucx_lines_t *self)
{
    for (size_t i = 0; i < self->n; i++) {
        ps_ucx_line_t *line = self->items[i];

        if (!line->is_used || line->is_lost) {
            continue;
        }
        if (line->has_bye && line->n_taken >= line->bye && self->n_sending[i] == 0) {
            close_line(self, line);
        } else if (line->is_ours && !line->is_leaving && self->n_sending[i] == 0 &&
                   !ps_hall_watches(self->hall, (int)i)) {
            if (line->has_met) {
                ps_ucx_send_bye(self, line);
            } else {
                ps_ucx_line_lose(self, line);
            }
        }
    }
}

bool ps_ucx_lines_turn(ps_ucx_lines_t *self)
{
    bool moved = progress(self);

    for (size_t i = 0; self->has_arrived && i < self->n; i++) {
        if (self->items[i]->is_used) {
            ps_ucx_deliver(self, self->items[i]);
        }
    }
    self->has_arrived = false;
    moved = ps_ucx_send_all(self) || moved;
    if (!moved) {
        look_left(self);
    }
    look_lost(self);
    return moved;
}

bool ps_ucx_lines_lie_down(ps_ucx_lines_t *self, int *ret_fd)
{
    *ret_fd = -1;
    return !self->has_lost && ucp_worker_get_efd(self->worker, ret_fd) == UCS_OK &&
           ucp_worker_arm(self->worker) == UCS_OK;
}

bool ps_ucx_lines_are_open(const ps_ucx_lines_t *self)
{
    bool any = false;

    for (size_t i = 0; i < self->n; i++) {
        any = any || self->items[i]->is_used;
    }
    return any;
}

void ps_ucx_lines_count(const ps_ucx_lines_t *self, uint64_t *ret_sent, uint64_t *ret_received)
{
    *ret_sent = self->sent;
    *ret_received = self->received;
}

void ps_ucx_lines_destroy(ps_ucx_lines_t **self_p)
{
    ps_ucx_lines_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    *self_p = NULL;
    for (size_t i = 0; i < self->n; i++) {
        ps_ucx_line_t *line = self->items[i];

        if (line->is_used) {
            line->is_lost = true;
            close_line(self, line);
        }
    }
    while (!SLIST_EMPTY(&self->doors)) {
        ps_ucx_lines_unlisten(self, SLIST_FIRST(&self->doors)->port);
    }
    if (self->worker != NULL) {
        (void)progress(self);
        ucp_worker_destroy(self->worker);
    }
    if (self->context != NULL) {
        ucp_cleanup(self->context);
    }
    for (size_t i = 0; i < self->n; i++) {
        ps_free(self->items[i]);
    }
    ps_free(self->items);
    ps_free(self->n_sending);
    ps_free(self);
}
