/* SPDX-License-Identifier: Apache-2.0 */
/* lib/server/threads/filler.h: memory comes in, contents stay, and an end in the middle. */
#include "server/threads/filler.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>

#include "support/fail_alloc.h"

#define BYTES ((size_t)8 << 20)
#define PAGE ((size_t)4096)

static uint8_t *map(void)
{
    uint8_t *data = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    cr_assert_neq((void *)data, MAP_FAILED);
    return data;
}

#ifdef MADV_POPULATE_WRITE
static bool is_there(uint8_t *page)
{
    unsigned char in = 0;

    cr_assert_eq(mincore(page, 1, &in), 0);
    return (in & 1) != 0;
}

/* Waits for what it has to see: there is no other sign of it. */
Test(filler, brings_memory_in_and_leaves_what_is_there, .timeout = 60)
{
    ps_filler_t *filler = NULL;
    uint8_t *data = map();
    uint8_t *probe = map();
    bool knows = madvise(probe, PAGE, MADV_POPULATE_WRITE) == 0;

    data[BYTES / 2] = 7;
    cr_assert(is_there(data + BYTES / 2));
    cr_assert_not(is_there(data + BYTES - PAGE));
    cr_assert_eq(ps_filler_new(NULL, &filler, NULL), PSD_OK);
    ps_filler_add(filler, &(ps_soon_t){.data = data + 64, .size = BYTES - 64});
    while (knows && !is_there(data + BYTES - PAGE)) {
    }
    for (size_t i = 0; i < BYTES; i += PAGE) {
        cr_assert(!knows || is_there(data + i));
    }
    cr_assert_eq(data[BYTES / 2], 7);
    cr_assert_eq(data[0], 0);
    ps_filler_destroy(&filler);
    cr_assert_null(filler);
    cr_assert_eq(munmap(data, BYTES) | munmap(probe, BYTES), 0);
}
#endif

/* More than its list holds, some of it gone already, and an end at once. */
Test(filler, memory_that_is_gone_and_a_full_list_hurt_nobody)
{
    ps_filler_t *filler = NULL;
    uint8_t *gone = map();
    uint8_t *data = map();

    memset(data, 3, BYTES);
    cr_assert_eq(munmap(gone, BYTES), 0);
    cr_assert_eq(ps_filler_new(NULL, &filler, NULL), PSD_OK);
    for (int i = 0; i < 10000; i++) {
        ps_filler_add(filler, &(ps_soon_t){.data = gone, .size = BYTES});
        ps_filler_add(filler, &(ps_soon_t){.data = data, .size = BYTES});
        ps_filler_add(filler, &(ps_soon_t){.data = data, .size = 0});
    }
    ps_filler_destroy(&filler);
    ps_filler_destroy(&filler);
    for (size_t i = 0; i < BYTES; i += PAGE) {
        cr_assert_eq(data[i], 3);
    }
    cr_assert_eq(munmap(data, BYTES), 0);
}

Test(filler, no_memory_is_said)
{
    ps_filler_t *filler = NULL;

    fail_alloc_at(0);
    cr_assert_eq(ps_filler_new(NULL, &filler, NULL), PSD_NOMEM);
    fail_alloc_off();
    cr_assert_null(filler);
}
