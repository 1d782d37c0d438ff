/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_asker - who is at the other end of a connection, as far as that is proven
 *
 * What     A user of this host by its uid, which the kernel says; or whoever has
 *          the secret half of a key, which CURVE has proven. Neither: nobody
 *          known. What the peer itself says is never taken.
 * Shape    plain values
 */
#ifndef PS_TRANSPORT_ASKER_H
#define PS_TRANSPORT_ASKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/keys/key_file.h"

#define PS_ASKER_ADDRESS_SIZE 64
#define PS_UID_OVERFLOW 65534 /* shown for users of other user namespaces: nobody known */
#define PS_ASKER_TEXT_SIZE 96 /* of ps_asker_print */

typedef struct ps_asker {
    bool has_uid;
    uint32_t uid;                        /* of this host */
    char key[PS_KEY_SIZE + 1];           /* public; "": none was proven */
    char address[PS_ASKER_ADDRESS_SIZE]; /* "192.0.2.1"; "": of this host, by ipc or lane */
} ps_asker_t;

/* As ZeroMQ knows a connection: user is what the ZAP thread said (zap.h), NULL: nobody
 * asked it; address is the peer's. false: user is none of ours. */
bool ps_asker_read(const char *user, const char *address, ps_asker_t *ret_caller);
/* "uid 1000", "key rq:rM>}U…" (its beginning), "127.0.0.1". Returns ret. */
const char *ps_asker_print(const ps_asker_t *self, char ret[PS_ASKER_TEXT_SIZE]);
#endif
