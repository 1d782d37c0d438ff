/* SPDX-License-Identifier: Apache-2.0 */
/* base/handover.h: a pointer crosses threads through a socket that
 * ThreadSanitizer cannot see into, and both ends may use what is behind it.
 * Without the two calls this program fails under TSan. */
#include "base/handover.h"

#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <zmq.h>

#include "base/alloc.h"

#define N_BOXES 1000

typedef struct box {
    int value;
} box_t;

/* Sends every box back with its value doubled. */
static void *doubler(void *pipe)
{
    for (int i = 0; i < N_BOXES; i++) {
        box_t *box = NULL;
        int size = zmq_recv(pipe, &box, sizeof box, 0);

        assert(size == (int)sizeof box);
        ps_handover_take(box);
        box->value *= 2;
        ps_handover_give(box);
        size = zmq_send(pipe, &box, sizeof box, 0);
        assert(size == (int)sizeof box);
    }
    return NULL;
}

static void pass_a_box(void *pipe, int value)
{
    box_t *box = ps_alloc(1, sizeof *box);
    int size = 0;

    assert(box != NULL);
    box->value = value;
    ps_handover_give(box);
    size = zmq_send(pipe, &box, sizeof box, 0);
    assert(size == (int)sizeof box);
    size = zmq_recv(pipe, &box, sizeof box, 0);
    assert(size == (int)sizeof box);
    ps_handover_take(box);
    assert(box->value == 2 * value);
    ps_free(box);
}

int main(void)
{
    void *context = zmq_ctx_new();
    void *here = zmq_socket(context, ZMQ_PAIR);
    void *there = zmq_socket(context, ZMQ_PAIR);
    pthread_t thread = {0};
    int rc = zmq_bind(here, "inproc://boxes");

    assert(rc == 0);
    rc = zmq_connect(there, "inproc://boxes");
    assert(rc == 0);
    rc = pthread_create(&thread, NULL, doubler, there);
    assert(rc == 0);
    for (int i = 0; i < N_BOXES; i++) {
        pass_a_box(here, i);
    }
    rc = pthread_join(thread, NULL);
    assert(rc == 0);
    zmq_close(here);
    zmq_close(there);
    zmq_ctx_term(context);
    return 0;
}
