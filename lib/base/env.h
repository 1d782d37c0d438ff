/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_env - the variables of the environment that libpsd and programs read
 *
 * What     The list of their names, and an iterator over the environment's
 *          variables with a prefix. With both, a program warns about variables
 *          that nothing reads. The daemon's keys (PSD_LIMITS_CHUNK_BYTES) are
 *          its own.
 */
#ifndef PS_BASE_ENV_H
#define PS_BASE_ENV_H

#include <stdbool.h>
#include <stddef.h>

#define PS_ENV_NAME_SIZE 64

/* PSD_ENDPOINT …; NULL at the end. */
extern const char *const ps_env_names[];

bool ps_env_is_known(const char *name);
/*
 * The next name in `environment` (as environ has it) that begins with prefix;
 * skips names of PS_ENV_NAME_SIZE bytes and more.
 *
 * at  in/out  0 before the first
 *
 * False when there is none.
 */
bool ps_env_next(char *const *environment, size_t *at, const char *prefix,
                 char ret_name[PS_ENV_NAME_SIZE]);
#endif
