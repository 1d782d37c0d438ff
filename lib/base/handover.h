/* SPDX-License-Identifier: Apache-2.0 */
/* ps_handover - the only way to pass a pointer to another thread. The sockets
 * between actors order memory, but ThreadSanitizer cannot see that; these two
 * calls tell it. They cost nothing in other builds. */
#ifndef PS_BASE_HANDOVER_H
#define PS_BASE_HANDOVER_H

/* Call before sending the pointer. */
void ps_handover_give(void *pointer);
/* Call after receiving it, before the first access through it. */
void ps_handover_take(void *pointer);
#endif
