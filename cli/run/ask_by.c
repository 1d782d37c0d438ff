/* SPDX-License-Identifier: Apache-2.0 */
/* One question to one psd, under a key that is not that of PSD_KEY_FILE. */
#include "cli/run/ask_by.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "transport/sockets/socket.h"
#include "wire/messages/reply.h"

#define HIGH_WATER 16
#define LOOK_MS 200 /* between two looks whether the link is let in */

/* Context and link, closed together. */
typedef struct one_link {
    ps_context_t *context;
    ps_socket_t *link;
} one_link_t;

static void one_link_done(one_link_t *self)
{
    ps_socket_drop(&self->link);
    ps_context_destroy(&self->context);
}

static psd_status_t open_link(const char *endpoint, const ps_key_pair_t *pair, one_link_t *self,
                              psd_error_t *err)
{
    ps_socket_args_t args = {.high_water = HIGH_WATER,
                             .frame_bytes = PS_DOC_BYTES_MAX,
                             .assembly_bytes = PS_DOC_BYTES_MAX,
                             .chunk_bytes = PS_DOC_BYTES_MAX,
                             .patience_ms = PS_PATIENCE_SMALL_MS,
                             .keys = pair,
                             .is_watched = true};
    psd_status_t rc = ps_context_new(1, &self->context, err);

    args.context = self->context;
    return rc == PSD_OK ? ps_socket_connect(endpoint, &args, &self->link, err) : rc;
}

static psd_status_t send_request(one_link_t *self, json_t *request, psd_error_t *err)
{
    bool ok = request != NULL && json_object_set_new(request, "v", json_integer(1)) == 0 &&
              json_object_set_new(request, "id", json_integer(1)) == 0;
    char *text = ok ? json_dumps(request, JSON_COMPACT) : NULL;
    psd_status_t rc = PSD_OK;

    if (text == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a request");
    }
    rc = ps_socket_send_text(
        self->link, 0, (ps_bytes_t){.data = (const uint8_t *)text, .size = strlen(text)}, err);
    free(text);
    return rc;
}

/* Until the answer is there, the link is refused, or the time is over. */
static psd_status_t wait_answer(const ps_cli_t *cli, one_link_t *self, ps_buffer_t *text,
                                psd_error_t *err)
{
    const uint64_t until_ms = ps_now_ms() + cli->timeout_ms;

    for (uint64_t now_ms = ps_now_ms(); now_ms < until_ms; now_ms = ps_now_ms()) {
        const uint64_t left_ms = until_ms - now_ms;
        ps_denial_t denial = ps_socket_denial(self->link);
        uint64_t conn = 0;
        bool ready = false;
        bool got = false;
        psd_status_t rc = PSD_OK;

        if (denial != PS_DENIAL_NONE) {
            return psd_error_set(err, PSD_DENIED, "%s", ps_denial_text(denial));
        }
        rc = ps_socket_wait(&self->link, 1, left_ms < LOOK_MS ? left_ms : LOOK_MS, &ready, err);
        if (rc == PSD_OK) {
            rc = ps_socket_receive_text(self->link, &got, &conn, text, err);
        }
        if (rc != PSD_OK || got) {
            return rc;
        }
    }
    return psd_error_set(err, PSD_CONNECT,
                         "no answer: the psd there is away, or does not lead the registry now, or "
                         "does not know this key");
}

static psd_status_t read_answer(const ps_buffer_t *text, json_t **ret_reply, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;
    psd_status_t rc = ps_doc_parse((ps_bytes_t){.data = text->data, .size = text->size}, &doc, err);

    if (rc == PSD_OK) {
        rc = ps_reply_status(doc, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_reply = json_loadb((const char *)text->data, text->size, 0, NULL);
    ps_json_strip(*ret_reply);
    return PSD_OK;
}

psd_status_t ps_cli_ask_by(const ps_cli_t *cli, const char *endpoint, const ps_key_pair_t *pair,
                           json_t *request, json_t **ret_reply, psd_error_t *err)
{
    PSD_AUTO(one_link_done) one_link_t self = {.link = NULL};
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    psd_status_t rc = open_link(endpoint, pair, &self, err);

    if (rc == PSD_OK) {
        rc = send_request(&self, request, err);
    }
    if (rc == PSD_OK) {
        rc = wait_answer(cli, &self, &text, err);
    }
    if (rc == PSD_OK) {
        rc = read_answer(&text, ret_reply, err);
    }
    return rc == PSD_OK ? PSD_OK : psd_error_wrap(err, rc, "%s", endpoint);
}
