/* SPDX-License-Identifier: Apache-2.0 */
/* ps_alias_value - what a variable's text says of its setting */
#ifndef PS_TRANSPORT_ALIAS_VALUE_H
#define PS_TRANSPORT_ALIAS_VALUE_H

#include "transport/environment/environment.h"

/* What part of the setting is said. */
typedef enum ps_alias_part {
    PS_ALIAS_ALL = 0,
    PS_ALIAS_ITS_HOST,
    PS_ALIAS_ITS_PORT,
    PS_ALIAS_PARTS
} ps_alias_part_t;

ps_alias_part_t ps_alias_part(const ps_alias_t *self);
/*
 * ret  out  the setting's value, or the part's; "" when the text says nothing of it
 *
 * Errors: PSD_INVALID by the variable's name.
 */
PSD_MUST_CHECK psd_status_t ps_alias_value(const ps_alias_t *self, const char *text,
                                           char ret[PS_ENVIRONMENT_TEXT], psd_error_t *err);
#endif
