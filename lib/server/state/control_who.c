/* SPDX-License-Identifier: Apache-2.0 */
/* Who asks: the caller of a request as a principal, and in words. */
#include "server/state/control_inner.h"

#include <stdio.h>

const ps_principal_t *ps_control_principal(const ps_control_t *self, const ps_asker_t *caller)
{
    if (caller->key[0] != '\0') {
        return ps_registry_principal_by_key(self->is.registry, caller->key);
    }
    return caller->has_uid ? ps_registry_principal_by_uid(self->is.registry, caller->uid) : NULL;
}

const char *ps_control_print_who(const ps_control_t *self, const ps_asker_t *caller,
                                 char ret[PS_CONTROL_WHO_SIZE])
{
    const ps_principal_t *principal = ps_control_principal(self, caller);
    char text[PS_ASKER_TEXT_SIZE];

    (void)ps_asker_print(caller, text);
    if (principal == NULL) {
        (void)snprintf(ret, PS_CONTROL_WHO_SIZE, "%s", text);
    } else {
        (void)snprintf(ret, PS_CONTROL_WHO_SIZE, "%s (%s)", principal->name, text);
    }
    return ret;
}
