/* SPDX-License-Identifier: Apache-2.0 */
/* Tells ThreadSanitizer what the sockets between threads guarantee. */
#include "base/handover.h"

#if defined(__SANITIZE_THREAD__)
/* Of the TSan runtime; its header is not installed with every compiler. */
void __tsan_acquire(void *address);
void __tsan_release(void *address);

void ps_handover_give(void *pointer)
{
    __tsan_release(pointer);
}

void ps_handover_take(void *pointer)
{
    __tsan_acquire(pointer);
}
#else
void ps_handover_give(void *pointer)
{
    (void)pointer;
}

void ps_handover_take(void *pointer)
{
    (void)pointer;
}
#endif
