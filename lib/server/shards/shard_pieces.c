/* SPDX-License-Identifier: Apache-2.0 */
/* Between the port of a shard and its core. */
#include "server/shards/shard_pieces.h"

#include <stdio.h>

void ps_shard_find_answer(ps_socket_t *port, ps_shard_t *core, uint64_t now_ms, ps_event_t *event)
{
    uint64_t epoch = 0;
    uint64_t request = ps_request_for_values(event->message, &epoch);
    uint64_t conns[PS_SENDING_CONNS];
    size_t n = request == 0 ? 0 : ps_shard_conns(core, event->conn, conns);

    for (size_t i = 0; i < n; i++) {
        if (ps_socket_find_answer(port, conns[i], request, epoch, now_ms, &event->sending.sent,
                                  &event->sending.bytes)) {
            return;
        }
    }
}

bool ps_shard_refusal(const ps_message_t *of, psd_status_t status, const char *text,
                      ps_message_t *ret_refused)
{
    ps_msg_refused_t *refused = &ret_refused->refused;

    *ret_refused = (ps_message_t){.kind = PS_KIND_REFUSED, .refused = {.status = (uint16_t)status}};
    (void)snprintf(refused->text, sizeof refused->text, "%.*s", PS_TEXT_MAX, text);
    if (status == PSD_BUSY && of->kind == PS_KIND_PUSH) {
        refused->request = of->push.request;
        refused->table = of->push.table;
        refused->partition = of->push.partition;
        refused->epoch = of->push.epoch;
        refused->seq = of->push.seq;
    }
    return status != PSD_BUSY || of->kind != PS_KIND_CHUNK;
}

void ps_shard_limit_pieces(ps_socket_t *port, const ps_shard_t *core, ps_shard_told_t *told,
                           const ps_shard_actor_args_t *args)
{
    uint64_t most = args->core.memory_bytes;
    uint64_t rest = 0;

    told->unfinished = ps_socket_unfinished_bytes(port);
    if (most > 0) {
        rest = ps_shard_others(told, args->common) + ps_shard_bytes(core);
        ps_socket_set_unfinished_max(port, rest < most ? most - rest : 0);
    }
}
