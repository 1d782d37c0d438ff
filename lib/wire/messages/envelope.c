/* SPDX-License-Identifier: Apache-2.0 */
/* The members of every reply (docs/protocol.md). */
#include "wire/messages/envelope.h"

#include "wire/messages/doc_node.h"

void ps_envelope_strip(ps_doc_t *reply)
{
    static const char *const KEYS[] = {"v", "id", "op", "status", "session"};

    for (size_t i = 0; i < sizeof KEYS / sizeof KEYS[0]; i++) {
        (void)json_object_del(reply->json, KEYS[i]);
    }
}
