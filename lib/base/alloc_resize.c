/* SPDX-License-Identifier: Apache-2.0 */
/* The only call of realloc. It has a file of its own because the linker's
 * --wrap only catches calls from other files: a test that wraps ps_alloc_resize
 * sees every allocation of psd. */
#include "base/alloc.h"

#include <stdlib.h>

void *ps_alloc_resize(void *old, size_t count, size_t size)
{
    size_t bytes = 0;

    if (__builtin_mul_overflow(count, size, &bytes)) {
        return NULL;
    }
    return realloc(old, bytes > 0 ? bytes : 1);
}

void ps_free(void *block)
{
    free(block);
}
