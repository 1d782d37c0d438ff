/* SPDX-License-Identifier: Apache-2.0 */
/* The process that measures the machine. */
#include "cli/machine/bench_machine.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/output/interrupt.h"

#define SMALL_BYTES 64
#define MEGABYTE ((size_t)1 << 20)
#define SPARE_MS 30000 /* allowance for what a limit does besides measuring */

typedef struct question {
    ps_limit_t limit;
    uint32_t duration_ms;
} question_t;

typedef struct answer {
    int error; /* an errno; 0: measured */
    double value;
} answer_t;

static bool measure(ps_limit_t limit, uint32_t duration_ms, double *ret)
{
    bool ok = false;

    switch (limit) {
    case PS_LIMIT_MEMCPY_4M:
        return ps_limit_memcpy(4 * MEGABYTE, duration_ms, ret);
    case PS_LIMIT_MEMCPY:
        return ps_limit_memcpy(30 * MEGABYTE, duration_ms, ret);
    case PS_LIMIT_ADD:
        return ps_limit_add(duration_ms, ret);
    case PS_LIMIT_LOOKUP:
        return ps_limit_lookup(duration_ms, ret);
    case PS_LIMIT_RING:
        ok = ps_limit_ring(MEGABYTE, duration_ms, ret);
        *ret *= (double)MEGABYTE;
        return ok;
    case PS_LIMIT_RING_SMALL:
        return ps_limit_ring(SMALL_BYTES, duration_ms, ret);
    case PS_LIMIT_SPIN:
        return ps_limit_spin(duration_ms, ret);
    case PS_LIMIT_TCP:
        return ps_limit_tcp(duration_ms, ret);
    case PS_LIMIT_ZMQ:
        ok = ps_limit_zmq(MEGABYTE, duration_ms, ret);
        *ret *= (double)MEGABYTE;
        return ok;
    case PS_LIMIT_ZMQ_SMALL:
        return ps_limit_zmq(SMALL_BYTES, duration_ms, ret);
    case PS_LIMIT_ZMQ_TRIP:
        return ps_limit_zmq_trip(duration_ms, ret);
    case PS_LIMIT_COUNT:
    default:
        errno = EINVAL;
        return false;
    }
}

/* In a child of its own: measures and writes the answer. */
static _Noreturn void answer_one(const question_t *question, int to)
{
    answer_t answer = {0};

    if (!measure(question->limit, question->duration_ms, &answer.value)) {
        answer.error = errno == 0 ? EIO : errno;
    }
    _exit(write(to, &answer, sizeof answer) == sizeof answer ? 0 : 1);
}

static _Noreturn void answer_all(int from, int to)
{
    question_t question;

    while (read(from, &question, sizeof question) == sizeof question) {
        answer_t lost = {.error = EIO};
        int status = 0;
        pid_t me = getpid();
        pid_t child = fork();

        if (child == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != me) {
                _exit(1);
            }
            answer_one(&question, to);
        }
        if ((child < 0 || waitpid(child, &status, 0) != child || status != 0) &&
            write(to, &lost, sizeof lost) != sizeof lost) {
            break;
        }
    }
    _exit(0);
}

psd_status_t ps_machine_start(ps_machine_t *ret_machine, psd_error_t *err)
{
    int questions[2] = {-1, -1};
    int answers[2] = {-1, -1};
    pid_t parent = getpid();

    if (pipe2(questions, O_CLOEXEC) != 0 || pipe2(answers, O_CLOEXEC) != 0) {
        psd_status_t rc = psd_error_set(err, PSD_IO, "no pipe: %s", strerror(errno));

        if (questions[0] >= 0) {
            (void)close(questions[0]);
            (void)close(questions[1]);
        }
        return rc;
    }
    ret_machine->pid = fork();
    if (ret_machine->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)close(questions[1]);
        (void)close(answers[0]);
        if (getppid() != parent) {
            _exit(1);
        }
        answer_all(questions[0], answers[1]);
    }
    (void)close(questions[0]);
    (void)close(answers[1]);
    ret_machine->to = questions[1];
    ret_machine->from = answers[0];
    if (ret_machine->pid < 0) {
        return psd_error_set(err, PSD_IO,
                             "no process to measure the machine: "
                             "%s",
                             strerror(errno));
    }
    return PSD_OK;
}

psd_status_t ps_machine_measure(ps_machine_t *self, ps_limit_t limit, uint32_t duration_ms,
                                double *ret_value, psd_error_t *err)
{
    question_t question = {.limit = limit, .duration_ms = duration_ms};
    struct pollfd wait = {.fd = self->from, .events = POLLIN};
    answer_t answer = {.error = EPIPE};
    int ready = 0;

    if (write(self->to, &question, sizeof question) == sizeof question) {
        do {
            ready = poll(&wait, 1, (int)(duration_ms * 4 + SPARE_MS));
        } while (ready < 0 && errno == EINTR && !ps_interrupt_came());
    }
    if (ps_interrupt_came()) {
        return psd_error_set(err, PSD_INTERRUPTED, "interrupted");
    }
    if (ready == 0) {
        return psd_error_set(err, PSD_DEADLINE, "the limit \"%s\" could not be measured in time",
                             ps_limit_text(limit));
    }
    if (ready < 0 || read(self->from, &answer, sizeof answer) != sizeof answer ||
        answer.error != 0) {
        return psd_error_set(err, PSD_IO, "the limit \"%s\" could not be measured: %s",
                             ps_limit_text(limit), strerror(answer.error));
    }
    *ret_value = answer.value;
    return PSD_OK;
}

void ps_machine_done(ps_machine_t *self)
{
    if (self->pid == 0) {
        return;
    }
    (void)close(self->to);
    (void)close(self->from);
    if (self->pid > 0) {
        (void)kill(self->pid, SIGKILL);
        (void)waitpid(self->pid, NULL, 0);
    }
    self->pid = 0;
}
