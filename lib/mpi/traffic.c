/* SPDX-License-Identifier: Apache-2.0 */
#include "mpi/traffic.h"

#include "base/alloc.h"

#define TAG 17
#define ARRIVALS_MAX 64   /* taken in before sends have their turn */
#define BEAT_MS 1000      /* to a rank that was told nothing else */
#define SILENCE_MS 5000   /* of a rank with channels, before they are gone */
#define STANDSTILL_MS 500 /* of this process: it cannot say who was silent */

/* One that MPI has begun. */
typedef struct moving {
    STAILQ_ENTRY(moving) in_line;
    MPI_Request request;
    ps_mpi_parcel_t *parcel; /* owned */
} moving_t;

typedef STAILQ_HEAD(movings, moving) movings_t;

typedef struct rank_state {
    movings_t arriving; /* in order of sending */
    uint64_t heard_ms;
    uint64_t told_ms;
} rank_state_t;

struct ps_mpi_traffic {
    MPI_Comm comm;
    int size;
    ps_hall_t *hall;
    rank_state_t *ranks;
    uint32_t *n_sending; /* to each rank */
    movings_t sending;
    size_t n_sending_all;
    size_t n_arriving;
    ps_mpi_parcels_t ready; /* collected, not begun: no memory */
    MPI_Message matched;    /* one for which there was no memory … */
    MPI_Status its;         /* … and what it is; MPI_MESSAGE_NULL: none */
    uint64_t turned_ms;
    bool has_failed;
    _Atomic uint64_t sent;
    _Atomic uint64_t received;
};

ps_mpi_traffic_t *ps_mpi_traffic_new(MPI_Comm comm, int size, ps_hall_t *hall)
{
    ps_mpi_traffic_t *self = ps_alloc(1, sizeof *self);

    if (self == NULL) {
        return NULL;
    }
    self->comm = comm;
    self->size = size;
    self->hall = hall;
    self->matched = MPI_MESSAGE_NULL;
    self->ranks = ps_alloc((size_t)size, sizeof *self->ranks);
    self->n_sending = ps_alloc((size_t)size, sizeof *self->n_sending);
    if (self->ranks == NULL || self->n_sending == NULL) {
        ps_free(self->ranks);
        ps_free(self->n_sending);
        ps_free(self);
        return NULL;
    }
    for (int i = 0; i < size; i++) {
        STAILQ_INIT(&self->ranks[i].arriving);
    }
    STAILQ_INIT(&self->sending);
    STAILQ_INIT(&self->ready);
    return self;
}

/* MPI has failed. */
static void lose(ps_mpi_traffic_t *self, int rank)
{
    self->has_failed = true;
    ps_hall_lose(self->hall, rank);
}

/* ---- out ----------------------------------------------------------------- */

static void sent(ps_mpi_traffic_t *self, moving_t *moving)
{
    self->n_sending[moving->parcel->rank]--;
    self->n_sending_all--;
    ps_mpi_parcel_free(moving->parcel);
    ps_free(moving);
}

/* false: no memory, nothing has changed. */
static bool begin_send(ps_mpi_traffic_t *self, ps_mpi_parcel_t *parcel, uint64_t now_ms)
{
    moving_t *moving = ps_alloc(1, sizeof *moving);
    int done = 0;

    if (moving == NULL) {
        return false;
    }
    moving->parcel = parcel;
    self->n_sending[parcel->rank]++;
    self->n_sending_all++;
    self->ranks[parcel->rank].told_ms = now_ms;
    self->sent += parcel->size;
    if (MPI_Isend(ps_mpi_parcel_bytes(parcel), (int)parcel->size, MPI_BYTE, parcel->rank, TAG,
                  self->comm, &moving->request) != MPI_SUCCESS) {
        lose(self, parcel->rank);
        sent(self, moving);
        return true;
    }
    if (MPI_Test(&moving->request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done != 0) {
        sent(self, moving);
    } else {
        STAILQ_INSERT_TAIL(&self->sending, moving, in_line);
    }
    return true;
}

static bool send_all(ps_mpi_traffic_t *self, uint64_t now_ms)
{
    ps_mpi_parcel_t *parcel = NULL;
    bool moved = false;

    if (STAILQ_EMPTY(&self->ready)) {
        ps_hall_collect(self->hall, self->n_sending, PS_MPI_TRAFFIC_MOST, &self->ready);
    }
    while ((parcel = STAILQ_FIRST(&self->ready)) != NULL) {
        STAILQ_REMOVE_HEAD(&self->ready, in_line);
        if (!begin_send(self, parcel, now_ms)) {
            STAILQ_INSERT_HEAD(&self->ready, parcel, in_line);
            return moved;
        }
        moved = true;
    }
    return moved;
}

static bool look_sent(ps_mpi_traffic_t *self)
{
    movings_t left = STAILQ_HEAD_INITIALIZER(left);
    moving_t *moving = NULL;
    bool moved = false;

    while ((moving = STAILQ_FIRST(&self->sending)) != NULL) {
        int done = 0;
        int code = MPI_Test(&moving->request, &done, MPI_STATUS_IGNORE);

        STAILQ_REMOVE_HEAD(&self->sending, in_line);
        if (code != MPI_SUCCESS) {
            lose(self, moving->parcel->rank);
        }
        if (done != 0 || code != MPI_SUCCESS) {
            sent(self, moving);
            moved = true;
        } else {
            STAILQ_INSERT_TAIL(&left, moving, in_line);
        }
    }
    STAILQ_CONCAT(&self->sending, &left);
    return moved;
}

/* ---- in ------------------------------------------------------------------ */

/* Takes in those at the head of a rank's line that are there. */
static bool look_arriving(ps_mpi_traffic_t *self, int rank, uint64_t now_ms)
{
    rank_state_t *state = &self->ranks[rank];
    moving_t *moving = NULL;
    bool moved = false;

    while ((moving = STAILQ_FIRST(&state->arriving)) != NULL) {
        int done = 0;

        if (MPI_Test(&moving->request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
            lose(self, rank);
            moving->parcel->size = 0; /* no good one */
            done = 1;
        }
        if (done == 0) {
            return moved;
        }
        STAILQ_REMOVE_HEAD(&state->arriving, in_line);
        self->n_arriving--;
        self->received += moving->parcel->size;
        state->heard_ms = now_ms;
        ps_hall_take(self->hall, &moving->parcel);
        ps_free(moving);
        moved = true;
    }
    return moved;
}

/* Begins to receive the message that is matched. false: no memory now. */
static bool begin_receive(ps_mpi_traffic_t *self, uint64_t now_ms)
{
    moving_t *moving = ps_alloc(1, sizeof *moving);
    int rank = self->its.MPI_SOURCE;
    int bytes = 0;

    if (MPI_Get_count(&self->its, MPI_BYTE, &bytes) != MPI_SUCCESS || bytes < 0) {
        bytes = 0; /* no good one */
    }
    if (moving != NULL) {
        moving->parcel = ps_mpi_parcel_for(rank, (size_t)bytes);
    }
    if (moving == NULL || moving->parcel == NULL) {
        ps_free(moving);
        return false;
    }
    if (MPI_Imrecv(ps_mpi_parcel_bytes(moving->parcel), bytes, MPI_BYTE, &self->matched,
                   &moving->request) != MPI_SUCCESS) {
        self->matched = MPI_MESSAGE_NULL;
        ps_mpi_parcel_free(moving->parcel);
        ps_free(moving);
        lose(self, rank);
        return true;
    }
    self->matched = MPI_MESSAGE_NULL;
    self->ranks[rank].heard_ms = now_ms;
    STAILQ_INSERT_TAIL(&self->ranks[rank].arriving, moving, in_line);
    self->n_arriving++;
    (void)look_arriving(self, rank, now_ms);
    return true;
}

static bool receive_all(ps_mpi_traffic_t *self, uint64_t now_ms)
{
    bool moved = false;

    for (int i = 0; i < ARRIVALS_MAX; i++) {
        int is_there = 1;

        if (self->matched == MPI_MESSAGE_NULL &&
            MPI_Improbe(MPI_ANY_SOURCE, TAG, self->comm, &is_there, &self->matched, &self->its) !=
                MPI_SUCCESS) {
            self->has_failed = true;
            return moved;
        }
        if (is_there == 0 || !begin_receive(self, now_ms)) {
            return moved;
        }
        moved = true;
    }
    return moved;
}

bool ps_mpi_traffic_turn(ps_mpi_traffic_t *self, uint64_t now_ms)
{
    bool moved = false;

    if (now_ms > self->turned_ms + STANDSTILL_MS) {
        for (int i = 0; i < self->size; i++) {
            self->ranks[i].heard_ms = now_ms;
        }
    }
    self->turned_ms = now_ms;
    moved = look_sent(self);
    moved = send_all(self, now_ms) || moved;
    for (int i = 0; self->n_arriving > 0 && i < self->size; i++) {
        moved = look_arriving(self, i, now_ms) || moved;
    }
    return receive_all(self, now_ms) || moved;
}

void ps_mpi_traffic_look(ps_mpi_traffic_t *self, uint64_t now_ms)
{
    for (int i = 0; i < self->size; i++) {
        rank_state_t *state = &self->ranks[i];

        if (!ps_hall_watches(self->hall, i)) {
            state->heard_ms = now_ms; /* one that is begins with that */
            continue;
        }
        if (now_ms > state->heard_ms + SILENCE_MS) {
            ps_hall_lose(self->hall, i);
        }
        if (now_ms > state->told_ms + BEAT_MS && self->n_sending[i] < PS_MPI_TRAFFIC_MOST) {
            ps_mpi_parcel_t *beat = ps_mpi_parcel_new(i, PS_MPI_PARCEL_BEAT);

            if (beat != NULL && !begin_send(self, beat, now_ms)) {
                ps_mpi_parcel_free(beat);
            }
        }
    }
}

bool ps_mpi_traffic_is_moving(const ps_mpi_traffic_t *self)
{
    return self->n_sending_all > 0 || self->n_arriving > 0 || !STAILQ_EMPTY(&self->ready) ||
           self->matched != MPI_MESSAGE_NULL;
}

void ps_mpi_traffic_count(const ps_mpi_traffic_t *self, uint64_t *ret_sent, uint64_t *ret_received)
{
    *ret_sent = self->sent;
    *ret_received = self->received;
}

bool ps_mpi_traffic_has_failed(const ps_mpi_traffic_t *self)
{
    return self->has_failed;
}
