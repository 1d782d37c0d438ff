/* SPDX-License-Identifier: Apache-2.0 */
/* ps/internal/utils.h - settings by type, and LL */
#ifndef PSD_COMPAT_PS_UTILS_H
#define PSD_COMPAT_PS_UTILS_H

#include <inttypes.h>
#include <stdlib.h>

#include "dmlc/logging.h"
#include "ps/internal/env.h"

namespace ps {

/* The setting's text as a V, or what stands for one that is not set. */
template <typename V> inline V GetEnv(const char *key, V otherwise)
{
    const char *text = Environment::Get()->find(key);

    return text == nullptr ? otherwise : V(text);
}
inline int GetEnv(const char *key, int otherwise)
{
    const char *text = Environment::Get()->find(key);

    return text == nullptr ? otherwise : atoi(text);
}

}

#define LL LOG(ERROR)

#endif
