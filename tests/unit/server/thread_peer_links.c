/* SPDX-License-Identifier: Apache-2.0 */
/* Connections to other shards that are not there, cannot be made, or are known
 * to nobody: nothing waits, and the core always hears of what is gone. */
#include <string.h>

#include "server/shards/peer_links.h"
#include "support/check.h"
#include "support/fail_alloc.h"

#define CONN 99
#define NOW_MS 5000
#define AGAIN_MS 200 /* as peer_links.h says */
#define NOBODY "tcp://127.0.0.1:1"

typedef struct kit {
    ps_peer_links_t links;
    psd_error_t *err;
} kit_t;

static psd_status_t send_one(kit_t *self)
{
    const ps_message_t message = {.kind = PS_KIND_PEER};

    return ps_peer_links_send(&self->links, CONN, &message, NULL, self->err);
}

static bool is_gone(kit_t *self, uint64_t now_ms)
{
    uint64_t conn = 0;

    return ps_peer_links_next_gone(&self->links, now_ms, &conn) && conn == CONN;
}

static bool one_message_waits_for_a_connection(kit_t *self)
{
    ps_peer_links_open(&self->links, CONN, NOBODY, NOW_MS, self->err);
    CHECK_OK(send_one(self), self->err);
    CHECK_ERROR(send_one(self), PSD_BUSY, "peer is not connected yet", self->err);
    CHECK(!is_gone(self, NOW_MS + 10 * AGAIN_MS)); /* ZeroMQ goes on trying */
    ps_peer_links_close(&self->links, CONN);
    CHECK(self->links.n_links == 0);
    CHECK(!is_gone(self, NOW_MS + 20 * AGAIN_MS));
    return true;
}

static bool what_cannot_be_opened_is_gone_later(kit_t *self)
{
    ps_peer_links_open(&self->links, CONN, "nonsense", NOW_MS, self->err);
    CHECK_ERROR(send_one(self), PSD_BUSY, "peer is gone", self->err);
    CHECK(!is_gone(self, NOW_MS + AGAIN_MS - 1));
    CHECK(is_gone(self, NOW_MS + AGAIN_MS));
    CHECK(!is_gone(self, NOW_MS + 2 * AGAIN_MS)); /* told once */
    return true;
}

static bool what_is_unknown_is_gone_when_it_is_used(kit_t *self)
{
    CHECK(!is_gone(self, NOW_MS));
    CHECK_ERROR(send_one(self), PSD_BUSY, "peer is gone", self->err);
    CHECK(is_gone(self, NOW_MS));
    CHECK(!is_gone(self, NOW_MS));
    return true;
}

/* Whatever there was no memory for: what does not take a message is told to be
 * gone. */
static bool lost_memory_is_told(kit_t *self)
{
    bool failed = true;

    for (size_t at = 0; failed; at++) {
        psd_status_t rc = PSD_OK;

        fail_alloc_at(at);
        ps_peer_links_open(&self->links, CONN, NOBODY, NOW_MS, self->err);
        failed = fail_alloc_happened();
        fail_alloc_off();
        rc = send_one(self);
        CHECK(rc == PSD_OK || rc == PSD_BUSY);
        CHECK(failed || rc == PSD_OK);
        CHECK(rc == PSD_OK || is_gone(self, NOW_MS + AGAIN_MS));
        psd_error_clear(self->err);
        ps_peer_links_done(&self->links);
        ps_peer_links_init(
            &self->links,
            &(ps_socket_args_t){.high_water = 10, .frame_bytes = 1 << 20, .chunk_bytes = 1 << 16});
        CHECK(at < 1000);
    }
    return true;
}

int main(void)
{
    kit_t kit = {.err = psd_error_new()};
    ps_socket_args_t args = {.high_water = 10, .frame_bytes = 1 << 20, .chunk_bytes = 1 << 16};
    bool done = ps_context_new(1, &args.context, NULL) == PSD_OK;

    ps_peer_links_init(&kit.links, &args);
    done = done && one_message_waits_for_a_connection(&kit) &&
           what_cannot_be_opened_is_gone_later(&kit) &&
           what_is_unknown_is_gone_when_it_is_used(&kit) && lost_memory_is_told(&kit);
    ps_peer_links_done(&kit.links);
    ps_context_destroy(&args.context);
    psd_error_destroy(&kit.err);
    return done ? 0 : 1;
}
