/* SPDX-License-Identifier: Apache-2.0 */
/* Limits within one process, and code that all limits share. */
#include "cli/machine/bench_limit.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"

#define BIG_BYTES ((size_t)30 << 20)
#define ALL_BYTES ((size_t)60 << 20) /* that small blocks rotate through */
#define LOOKS_BEFORE_YIELD 4096

static const struct {
    const char *name;
    const char *text;
} LIMITS[] = {
#define PS_LIMIT_ROW(name, json, unit, what) {json, what},
    PS_LIMIT_MAP(PS_LIMIT_ROW)
#undef PS_LIMIT_ROW
};

const char *ps_limit_name(ps_limit_t limit)
{
    return LIMITS[limit].name;
}

const char *ps_limit_text(ps_limit_t limit)
{
    return LIMITS[limit].text;
}

uint64_t ps_bench_now_ns(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

void *ps_limit_share(size_t bytes)
{
    void *shared =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    return shared == MAP_FAILED ? NULL : shared;
}

bool ps_limit_fork(void (*other)(void *arg), void *arg)
{
    pid_t parent = getpid();
    pid_t child = fork();

    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent) {
            other(arg);
        }
        _exit(0);
    }
    return child > 0;
}

void ps_limit_keep_apart(unsigned side)
{
    cpu_set_t all;
    cpu_set_t one;
    size_t wanted = 0;

    if (sched_getaffinity(0, sizeof all, &all) != 0) {
        return;
    }
    for (size_t i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, &all)) {
            wanted = i;
            if (side == 0) {
                break; /* the first one; else the last one */
            }
        }
    }
    CPU_ZERO(&one);
    CPU_SET(wanted, &one);
    (void)sched_setaffinity(0, sizeof one, &one); /* a hint */
}

/* The loop spins on purpose, but with one processor the other side must run. */
void ps_limit_pause(uint32_t *n_looks)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
    if (++*n_looks % LOOKS_BEFORE_YIELD == 0) {
        (void)sched_yield();
    }
}

/* Makes the compiler believe that the value is used. */
static void keep(void *memory)
{
    __asm__ volatile("" : : "r"(memory) : "memory");
}

static void copy_block(char *to, const char *from, size_t n)
{
    memcpy(to, from, n);
    keep(to);
}

static void add_block(char *to_p, const char *from_p, size_t n)
{
    float *restrict to = (void *)to_p;
    const float *restrict from = (const void *)from_p;

    for (size_t i = 0; i < n / sizeof *to; i++) {
        to[i] += from[i];
    }
    keep(to);
}

/* Bytes a second of work on blocks that rotate through two areas. */
static bool time_blocks(void (*work)(char *to, const char *from, size_t n), size_t bytes,
                        uint32_t duration_ms, double *ret)
{
    PSD_AUTO(ps_free_at) char *to = ps_alloc(ALL_BYTES, 1);
    PSD_AUTO(ps_free_at) char *from = ps_alloc(ALL_BYTES, 1);
    uint64_t n = 0;
    uint64_t start = 0;
    uint64_t spent = 0;

    if (to == NULL || from == NULL) {
        errno = ENOMEM;
        return false;
    }
    memset(to, 0, ALL_BYTES);
    memset(from, 0, ALL_BYTES);
    start = ps_bench_now_ns();
    do {
        size_t at = (size_t)(n * bytes % (ALL_BYTES / bytes * bytes));

        work(to + at, from + at, bytes);
        n++;
        spent = ps_bench_now_ns() - start;
    } while (spent < (uint64_t)duration_ms * 1000000U);
    *ret = (double)n * (double)bytes / (double)spent * 1e9;
    return true;
}

bool ps_limit_memcpy(size_t bytes, uint32_t duration_ms, double *ret)
{
    return time_blocks(copy_block, bytes, duration_ms, ret);
}

bool ps_limit_add(uint32_t duration_ms, double *ret)
{
    return time_blocks(add_block, BIG_BYTES, duration_ms, ret);
}
