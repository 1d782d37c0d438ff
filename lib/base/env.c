/* SPDX-License-Identifier: Apache-2.0 */
/* Names of environment variables. */
#include "base/env.h"

#include <string.h>

const char *const ps_env_names[] = {"PSD_COMBINE", "PSD_CONFIG",     "PSD_ENDPOINT",
                                    "PSD_JOB",     "PSD_MAX_DELAY",  "PSD_RUNTIME_DIR",
                                    "PSD_SPIN_US", "PSD_TIMEOUT_MS", "PSD_TRANSPORT",
                                    "PSD_WORKER",  "PSD_WORKERS",    NULL};

bool ps_env_is_known(const char *name)
{
    for (size_t i = 0; ps_env_names[i] != NULL; i++) {
        if (strcmp(ps_env_names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

bool ps_env_next(char *const *environment, size_t *at, const char *prefix,
                 char ret_name[PS_ENV_NAME_SIZE])
{
    for (; environment != NULL && environment[*at] != NULL; (*at)++) {
        const char *entry = environment[*at];
        size_t length = strcspn(entry, "=");

        if (length < PS_ENV_NAME_SIZE && strncmp(entry, prefix, strlen(prefix)) == 0) {
            memcpy(ret_name, entry, length);
            ret_name[length] = '\0';
            (*at)++;
            return true;
        }
    }
    return false;
}
