/* SPDX-License-Identifier: Apache-2.0 */
/* What both ends of a line say first. */
#include <string.h>

#include "base/alloc.h"
#include "ucx/lines_inner.h"

/* Both ends are of one byte order. */
typedef struct meeting {
    uint32_t magic;
    uint32_t line; /* of who says it */
    uint32_t generation;
} meeting_t;

static void on_sent(void *request, ucs_status_t code, void *message)
{
    (void)code; /* the endpoint tells it */
    ucp_request_free(request);
    ps_free(message);
}

void ps_ucx_meet(ps_ucx_lines_t *self, ps_ucx_line_t *line)
{
    meeting_t *message = ps_alloc(1, sizeof *message);
    const ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                       UCP_OP_ATTR_FIELD_USER_DATA |
                                                       UCP_OP_ATTR_FIELD_FLAGS,
                                       .flags = UCP_AM_SEND_FLAG_REPLY,
                                       .cb = {.send = on_sent},
                                       .user_data = message};
    ucs_status_ptr_t request = NULL;

    if (message == NULL) {
        ps_ucx_line_lose(self, line);
        return;
    }
    *message =
        (meeting_t){.magic = PS_UCX_MAGIC, .line = line->number, .generation = line->generation};
    request =
        ucp_am_send_nbx(line->endpoint, PS_UCX_MEETING, NULL, 0, message, sizeof *message, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        ps_free(message);
    }
    if (UCS_PTR_IS_ERR(request)) {
        ps_ucx_line_lose(self, line);
    }
}

/* NULL: none. */
static ps_ucx_line_t *find_line(ps_ucx_lines_t *self, const ucp_am_recv_param_t *param)
{
    for (size_t i = 0; (param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0 && i < self->n;
         i++) {
        if (self->items[i]->is_used && self->items[i]->endpoint == param->reply_ep) {
            return self->items[i];
        }
    }
    return NULL;
}

ucs_status_t ps_ucx_on_meeting(void *arg, const void *header, size_t header_size, void *data,
                               size_t size, const ucp_am_recv_param_t *param)
{
    ps_ucx_lines_t *self = arg;
    ps_ucx_line_t *line = find_line(self, param);
    meeting_t message = {.magic = 0};

    (void)header;
    (void)header_size;
    if (line == NULL) {
        return UCS_OK;
    }
    if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0 && size == sizeof message) {
        memcpy(&message, data, sizeof message);
    }
    if (message.magic != PS_UCX_MAGIC || line->has_met) {
        ps_ucx_line_lose(self, line); /* it is none of psd's */
        return UCS_OK;
    }
    line->has_met = true;
    line->its_line = message.line;
    line->its_generation = message.generation;
    ps_hall_open_peer(self->hall, (int)line->number);
    return UCS_OK;
}
