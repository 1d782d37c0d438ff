/* SPDX-License-Identifier: Apache-2.0 */
/* The words by which ZeroMQ hands on who a peer is. */
#include "transport/sockets/asker.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "transport/sockets/zap.h"

#define KEY_SHOWN 8 /* characters: enough to tell keys apart */

bool ps_asker_read(const char *user, const char *address, ps_asker_t *ret_caller)
{
    ps_asker_t caller = {.has_uid = false};
    bool is_here = false;
    uint64_t uid = 0;
    size_t length = user == NULL ? 0 : strlen(user);

    if (user == NULL) {
        return false;
    }
    if (strncmp(user, PS_ZAP_UID, strlen(PS_ZAP_UID)) == 0 &&
        ps_text_u64(user + strlen(PS_ZAP_UID), &uid) && uid <= UINT32_MAX) {
        is_here = true;
        caller.has_uid = uid != PS_UID_OVERFLOW;
        caller.uid = caller.has_uid ? (uint32_t)uid : 0;
    } else if (strncmp(user, PS_ZAP_KEY, strlen(PS_ZAP_KEY)) == 0 &&
               length == strlen(PS_ZAP_KEY) + PS_KEY_SIZE) {
        memcpy(caller.key, user + strlen(PS_ZAP_KEY), sizeof caller.key);
    } else if (length > 0) {
        return false;
    }
    if (!is_here && address != NULL) {
        (void)snprintf(caller.address, sizeof caller.address, "%s", address);
    }
    *ret_caller = caller;
    return true;
}

const char *ps_asker_print(const ps_asker_t *self, char ret[PS_ASKER_TEXT_SIZE])
{
    if (self->has_uid) {
        (void)snprintf(ret, PS_ASKER_TEXT_SIZE, "uid %lu", (unsigned long)self->uid);
    } else if (self->key[0] != '\0') {
        (void)snprintf(ret, PS_ASKER_TEXT_SIZE, "key %.*s... from %s", KEY_SHOWN, self->key,
                       self->address);
    } else {
        (void)snprintf(ret, PS_ASKER_TEXT_SIZE, "%s",
                       self->address[0] == '\0' ? "an unknown peer" : self->address);
    }
    return ret;
}
