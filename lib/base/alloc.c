/* SPDX-License-Identifier: Apache-2.0 */
/* The allocation functions, all on top of ps_alloc_resize. */
#include "base/alloc.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define FIRST_CAPACITY 8 /* items after an array's first growth */

void *ps_alloc(size_t count, size_t size)
{
    void *block = ps_alloc_resize(NULL, count, size);

    if (block != NULL) {
        memset(block, 0, count * size);
    }
    return block;
}

void *ps_alloc_raw(size_t count, size_t size)
{
    return ps_alloc_resize(NULL, count, size);
}

char *ps_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = ps_alloc_raw(size, 1);

    if (copy != NULL) {
        memcpy(copy, text, size);
    }
    return copy;
}

void ps_free_at(void *pointer_to_pointer)
{
    void *block = NULL;

    /* memcpy: the pointer's own type is not known here. */
    memcpy(&block, pointer_to_pointer, sizeof block);
    ps_free(block);
    block = NULL;
    memcpy(pointer_to_pointer, &block, sizeof block);
}

bool ps_grow(void *items_p, size_t *capacity_p, size_t need, size_t item_size)
{
    size_t capacity = *capacity_p > 0 ? *capacity_p : FIRST_CAPACITY;
    void *items = NULL;

    if (need <= *capacity_p) {
        return true;
    }
    while (capacity < need) {
        capacity = capacity > SIZE_MAX / 2 ? need : capacity * 2;
    }
    memcpy(&items, items_p, sizeof items);
    items = ps_alloc_resize(items, capacity, item_size);
    if (items == NULL) {
        return false;
    }
    memcpy(items_p, &items, sizeof items);
    *capacity_p = capacity;
    return true;
}
