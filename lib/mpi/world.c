/* SPDX-License-Identifier: Apache-2.0 */
#include "mpi/world.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "mpi/traffic.h"
#include "transport/threads/clock.h"
#include "transport/threads/thread.h"

#define GROUP_TAG 7117
#define BEGIN_MS 60000     /* for all ranks to begin MPI */
#define LOOKS 50           /* that find nothing, before the thread sleeps */
#define SLEEP_LEAST_US 20  /* and twice as long each time … */
#define SLEEP_MOVING_US 80 /* … up to this while something is on its way … */
#define MOVING_LOOKS 5000  /* … which may never arrive, at a rank that is dead */
#define SLEEP_MOST_US 1000
#define WARM_LOOKS 110     /* that find nothing, some 50 ms: from then on, … */
#define COLD_FROM 53       /* (where little goes on it begins with sleeps of 320 us, … */
#define COLD_LOOKS 63      /* … and has slept some 8 ms, while a peer sleeps long) */
#define SLEEP_LONG_US 5000 /* … so long */
#define WINDOW_MS 100      /* in which it is counted what goes on */
#define WARM_LEAST 8       /* turns that moved something in a window, and … */
#define WARM_RANKS 2       /* … one for each two ranks: more than their heartbeats */
#define LOOK_MS 200        /* for silent ranks */
#define LINGER_MS 2000     /* for what is queued at the end */

typedef enum stage { NOT_BEGUN, BEGINS, RUNS, ENDS, ENDED, FAILED } stage_t;

/* MPI has one world for each process. */
typedef struct world {
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* the stage */
    bool has_cond;
    stage_t stage;
    _Atomic pid_t pid;  /* 0: it has not begun */
    bool is_ours;       /* we have begun MPI */
    _Atomic bool fails; /* the process exits with another code than 0 */
    int rank;
    int size;
    MPI_Comm comm;
    ps_hall_t *hall;
    ps_mpi_traffic_t *traffic;
    char reason[PS_CARRIER_REASON];
} world_t;

static world_t world = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void set_stage(stage_t stage)
{
    (void)pthread_mutex_lock(&world.mutex);
    world.stage = stage;
    (void)pthread_cond_broadcast(&world.changed);
    (void)pthread_mutex_unlock(&world.mutex);
}

static stage_t stage_now(void)
{
    stage_t stage = NOT_BEGUN;

    (void)pthread_mutex_lock(&world.mutex);
    stage = world.stage;
    (void)pthread_mutex_unlock(&world.mutex);
    return stage;
}

/* ---- the beginning ------------------------------------------------------- */

/* The thread stops: MPI ends, or the process. Waits until it has; for one that
 * begins only where MPI ends. */
static void stop(bool waits_for_begin)
{
    if (getpid() != world.pid) {
        return; /* a forked child */
    }
    (void)pthread_mutex_lock(&world.mutex);
    while (waits_for_begin && world.stage == BEGINS) {
        (void)pthread_cond_wait(&world.changed, &world.mutex);
    }
    if (world.stage == RUNS) {
        world.stage = ENDS;
        ps_hall_wake(world.hall);
    }
    while (world.stage == ENDS) {
        (void)pthread_cond_wait(&world.changed, &world.mutex);
    }
    (void)pthread_mutex_unlock(&world.mutex);
}

/* One that fails does not wait for the others in MPI_Finalize: so mpirun ends them, as
 * it does where a rank fails before it calls that. */
static void stop_at_exit(int status, void *argument)
{
    (void)argument;
    if (getpid() == world.pid) {
        world.fails = status != 0;
    }
    stop(false);
}

/* The program calls MPI_Finalize. */
static int on_finalize(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm;
    (void)key;
    (void)value;
    (void)extra;
    stop(true);
    return MPI_SUCCESS;
}

static bool watch_finalize(void)
{
    int key = MPI_KEYVAL_INVALID;

    return MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_finalize, &key, NULL) == MPI_SUCCESS &&
           MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL) == MPI_SUCCESS;
}

/* A communicator of our own, for the program may speak on others, in one rank and
 * not in another. It does not mix with collective calls of the program; it waits for
 * all ranks, and who waits for this thread does so for a time. */
static bool copy_world(void)
{
    MPI_Group all = MPI_GROUP_NULL;
    bool ok = MPI_Comm_group(MPI_COMM_WORLD, &all) == MPI_SUCCESS &&
              MPI_Comm_create_group(MPI_COMM_WORLD, all, GROUP_TAG, &world.comm) == MPI_SUCCESS;

    if (all != MPI_GROUP_NULL) {
        (void)MPI_Group_free(&all);
    }
    return ok;
}

static bool refuse(const char *reason)
{
    (void)snprintf(world.reason, sizeof world.reason, "%s", reason);
    return false;
}

/* MPI begins alone, too, as a world of one, and takes a while for it. */
static bool is_launched(void)
{
    static const char *const NAMES[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"};

    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        if (getenv(NAMES[i]) != NULL) {
            return true;
        }
    }
    return false;
}

static bool begin_mpi(void)
{
    int is_begun = 0;
    int is_ended = 0;
    int level = MPI_THREAD_SINGLE;

    (void)MPI_Initialized(&is_begun);
    (void)MPI_Finalized(&is_ended);
    if (is_ended != 0) {
        return refuse("the program has called MPI_Finalize");
    }
    if (is_begun != 0) {
        (void)MPI_Query_thread(&level);
        if (level != MPI_THREAD_MULTIPLE) {
            return refuse("the program has begun MPI for one thread; call MPI_Init_thread with "
                          "MPI_THREAD_MULTIPLE");
        }
        return watch_finalize() || refuse("MPI_Comm_set_attr failed");
    }
    if (!is_launched()) {
        return refuse("no mpirun has started this process");
    }
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level) != MPI_SUCCESS) {
        return refuse("MPI_Init_thread failed");
    }
    world.is_ours = true;
    return level >= MPI_THREAD_FUNNELED || refuse("MPI has no level MPI_THREAD_FUNNELED");
}

static bool begin(void)
{
    if (!begin_mpi()) {
        return false;
    }
    if (!copy_world()) {
        return refuse("MPI_Comm_create_group failed");
    }
    if (MPI_Comm_set_errhandler(world.comm, MPI_ERRORS_RETURN) != MPI_SUCCESS ||
        MPI_Comm_rank(world.comm, &world.rank) != MPI_SUCCESS ||
        MPI_Comm_size(world.comm, &world.size) != MPI_SUCCESS) {
        return refuse("MPI does not know the world");
    }
    world.hall = ps_hall_new(world.rank, world.size);
    if (world.hall != NULL) {
        world.traffic = ps_mpi_traffic_new(world.comm, world.size, world.hall);
    }
    return world.traffic != NULL || refuse("no memory");
}

/* ---- the thread ---------------------------------------------------------- */

/* How often to look. What says only that it is there does not begin a spin, which costs a core
 * more than all else that an idle rank does. */
typedef struct pace {
    uint32_t n_idle;    /* looks in a row that found nothing */
    uint32_t n_moved;   /* turns of this window that moved something */
    uint64_t window_ms; /* its end */
    bool is_warm;       /* much was moved in this window, or in the one before */
} pace_t;

static void begin_window(pace_t *pace, uint64_t now_ms)
{
    uint32_t least = WARM_LEAST + (uint32_t)world.size / WARM_RANKS;
    bool is_over = now_ms >= pace->window_ms;

    pace->is_warm = pace->n_moved >= least || (pace->is_warm && !is_over);
    if (is_over) {
        pace->n_moved = 0;
        pace->window_ms = now_ms + WINDOW_MS;
    }
}

static void count(pace_t *pace, bool moved)
{
    if (moved) {
        pace->n_moved++;
        pace->n_idle = pace->is_warm ? 0 : COLD_FROM;
    } else {
        pace->n_idle += pace->n_idle < UINT32_MAX ? 1 : 0;
    }
}

/* How long to sleep after n looks that found nothing; 0: not yet. */
static uint32_t pause_us(const pace_t *pace, bool is_moving)
{
    const uint32_t n_idle = pace->n_idle;
    uint32_t most_us = is_moving && n_idle < MOVING_LOOKS ? SLEEP_MOVING_US : SLEEP_MOST_US;
    uint32_t n_doubled = n_idle < LOOKS ? 0 : n_idle - LOOKS;
    uint32_t us = n_doubled > 6 ? SLEEP_MOST_US : (uint32_t)SLEEP_LEAST_US << n_doubled;

    if (n_idle < LOOKS) {
        return 0;
    }
    if (n_idle >= (pace->is_warm ? WARM_LOOKS : COLD_LOOKS) &&
        !(is_moving && n_idle < MOVING_LOOKS)) {
        return SLEEP_LONG_US;
    }
    return us < most_us ? us : most_us;
}

static void rest(const pace_t *pace)
{
    uint32_t us = pause_us(pace, ps_mpi_traffic_is_moving(world.traffic));

    if (us == 0) {
        (void)sched_yield();
    } else {
        ps_hall_sleep(world.hall, us);
    }
}

/* Until the end is wanted. */
static void turn_on(void)
{
    pace_t pace = {.n_idle = 0};
    uint64_t look_ms = 0;

    while (stage_now() == RUNS) {
        uint64_t now_ms = ps_now_ms();
        bool moved = ps_mpi_traffic_turn(world.traffic, now_ms);

        begin_window(&pace, now_ms);
        count(&pace, moved);
        if (!moved) {
            rest(&pace);
        }
        if (now_ms >= look_ms) {
            look_ms = now_ms + LOOK_MS;
            ps_mpi_traffic_look(world.traffic, now_ms);
            (void)ps_hall_look_lingering(world.hall, now_ms);
        }
    }
}

/* Sends what is queued, for a while. */
static void send_queued(void)
{
    uint64_t until_ms = ps_now_ms() + LINGER_MS;
    pace_t pace = {.is_warm = true};
    bool any = true;

    while (any && ps_now_ms() < until_ms) {
        count(&pace, ps_mpi_traffic_turn(world.traffic, ps_now_ms()));
        any = ps_hall_look_lingering(world.hall, ps_now_ms()) ||
              ps_mpi_traffic_is_moving(world.traffic);
        if (any && pace.n_idle > 0) {
            rest(&pace);
        }
    }
}

static void send_rest(void)
{
    ps_hall_end(world.hall, LINGER_MS);
    send_queued();
    ps_hall_tell_end(world.hall);
    send_queued();
}

static void *run(void *argument)
{
    bool ok = begin();

    (void)argument;
    set_stage(ok ? RUNS : FAILED);
    if (!ok) {
        return NULL;
    }
    turn_on();
    send_rest();
    if (world.is_ours && !world.fails && !ps_mpi_traffic_has_failed(world.traffic) &&
        !ps_hall_has_lost(world.hall)) {
        (void)MPI_Finalize();
    }
    set_stage(ENDED);
    return NULL;
}

/* ---- for the others ------------------------------------------------------ */

/* Under the lock. 0 or an errno. */
static int start(void)
{
    pthread_t thread;
    int code = world.has_cond ? 0 : ps_cond_init(&world.changed);

    if (code != 0) {
        return code;
    }
    world.has_cond = true;
    world.pid = getpid();
    world.stage = BEGINS;
    code = ps_thread_start(&thread, run, NULL);
    if (code != 0) {
        world.stage = NOT_BEGUN;
        return code;
    }
    (void)pthread_detach(thread);
    return on_exit(stop_at_exit, NULL) == 0 ? 0 : ENOMEM;
}

/* Under the lock. */
static int wait_for_begin(char ret_reason[PS_CARRIER_REASON])
{
    struct timespec end = ps_cond_end_in(BEGIN_MS);
    int code = 0;

    while (world.stage == BEGINS && code == 0) {
        code = pthread_cond_timedwait(&world.changed, &world.mutex, &end);
    }
    if (world.stage == RUNS) {
        return 0;
    }
    if (world.stage == BEGINS) {
        (void)snprintf(ret_reason, PS_CARRIER_REASON,
                       "MPI did not begin within %d s; do all ranks use it?", BEGIN_MS / 1000);
        return ETIMEDOUT;
    }
    (void)snprintf(ret_reason, PS_CARRIER_REASON, "%s",
                   world.stage == FAILED ? world.reason : "MPI has ended");
    return EIO;
}

int ps_world_enter(ps_hall_t **ret_hall, int *ret_rank, int *ret_size,
                   char ret_reason[PS_CARRIER_REASON])
{
    int code = 0;

    if (world.pid != 0 && world.pid != getpid()) {
        (void)snprintf(ret_reason, PS_CARRIER_REASON, "the world is that of the parent process");
        return EIO;
    }
    (void)pthread_mutex_lock(&world.mutex);
    if (world.stage == NOT_BEGUN) {
        code = start();
    }
    if (code == 0) {
        code = wait_for_begin(ret_reason);
    }
    if (code == 0) {
        *ret_hall = world.hall;
        *ret_rank = world.rank;
        *ret_size = world.size;
    }
    (void)pthread_mutex_unlock(&world.mutex);
    return code;
}

ps_hall_t *ps_world_hall(void)
{
    ps_hall_t *hall = NULL;

    if (world.pid != getpid()) {
        return NULL; /* in a forked child the lock may be held for ever */
    }
    (void)pthread_mutex_lock(&world.mutex);
    if (world.stage == RUNS || world.stage == ENDS) {
        hall = world.hall;
    }
    (void)pthread_mutex_unlock(&world.mutex);
    return hall;
}

void ps_world_count(uint64_t *ret_sent, uint64_t *ret_received)
{
    *ret_sent = 0;
    *ret_received = 0;
    if (world.pid != getpid()) {
        return;
    }
    (void)pthread_mutex_lock(&world.mutex);
    if (world.traffic != NULL) {
        ps_mpi_traffic_count(world.traffic, ret_sent, ret_received);
    }
    (void)pthread_mutex_unlock(&world.mutex);
}
