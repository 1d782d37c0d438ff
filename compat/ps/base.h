/* SPDX-License-Identifier: Apache-2.0 */
/* ps/base.h - keys, and the numbers of nodes and groups */
#ifndef PSD_COMPAT_PS_BASE_H
#define PSD_COMPAT_PS_BASE_H

#include <stdint.h>

#include <limits>

#include "ps/internal/utils.h"

namespace ps {

#if defined(USE_KEY32) && USE_KEY32
using Key = uint32_t;
#else
using Key = uint64_t;
#endif

static const Key kMaxKey = std::numeric_limits<Key>::max();
/* The scheduler's number. It and the groups may be added up. */
static const int kScheduler = 1;
static const int kServerGroup = 2;
static const int kWorkerGroup = 4;

}
#endif
