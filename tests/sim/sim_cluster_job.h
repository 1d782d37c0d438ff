/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_cluster_job - workers that come and go, and their work queue
 *
 * What     A client of a job is one worker. In some worlds it joins when it has
 *          work, leaves and joins again, and falls silent for a while, so that
 *          it is lost; it asks for slices of a work queue. It retries every
 *          question to the registry until it gets an answer. The registry's
 *          side does what the daemon's does: a worker that joins holds every
 *          clock; when all nodes know it, the registry sets its start from
 *          their clocks; when they also know the start, the registry answers.
 * Checks   Slices are given to one life of a worker at a time and counted once
 *          an epoch; a slice is counted when a worker has the answer that says
 *          so.
 */
#ifndef PS_TESTS_SIM_CLUSTER_JOB_H
#define PS_TESTS_SIM_CLUSTER_JOB_H

#include "protocol/registry/registry_work.h"

#define CLUSTER_WORKERS_MAX 4 /* one a client */
#define CLUSTER_SLICES 5      /* of the queue */
#define CLUSTER_EPOCHS 3

struct cluster;
struct cluster_letter;
struct cluster_line;

typedef enum cluster_life {
    CLUSTER_OUT = 0,
    CLUSTER_COMING = 1,
    CLUSTER_IN = 2,
    CLUSTER_GOING = 3
} cluster_life_t;

/* A client as a worker. */
typedef struct cluster_worker {
    cluster_life_t life;
    uint32_t joins;
    uint64_t silent_ms; /* it is silent before that */
    uint64_t asked;     /* number of its question; 0: it waits for no answer */
    int asks;           /* its kind, a cluster_letter_kind_t */
    uint64_t n_asks;
    bool has_slice;
    uint64_t epoch;
    uint32_t slice;
} cluster_worker_t;

/* A worker that joins, as the registry's process knows it. */
typedef struct cluster_joining {
    uint64_t number;                      /* of its question; 0: not joining */
    bool asked;                           /* the question for the nodes' clocks … */
    uint64_t clocks[CLUSTER_WORKERS_MAX]; /* … and the clocks so far */
    bool started;
} cluster_joining_t;

/* The stored state of the jobs. */
typedef struct cluster_facts {
    uint32_t lost[CLUSTER_WORKERS_MAX]; /* last life that was lost */
    uint32_t runs[CLUSTER_WORKERS_MAX]; /* the life that runs; 0: none */
    uint64_t epoch;                     /* of the queue */
    uint32_t holder[CLUSTER_SLICES];    /* the worker that got it last … */
    uint32_t joins[CLUSTER_SLICES];     /* … in which life; 0: none */
    uint32_t counted[CLUSTER_EPOCHS + 1][CLUSTER_SLICES];
    uint64_t n_counted; /* in this epoch */
    uint64_t n_lost;    /* lives */
    uint64_t n_joins;
} cluster_facts_t;

/* sim_cluster_worker.c */
void cluster_worker_start(struct cluster *self, uint32_t client);
/* It sends a heartbeat, if it is alive, and plans the next. */
void cluster_worker_alive(struct cluster *self, uint32_t client);
/* Whether its question of that number has no answer yet. */
void cluster_worker_again(struct cluster *self, uint32_t client, uint64_t number);
/* Whether it can do the line now. false: it is asking, or silent. */
bool cluster_worker_is_ready(struct cluster *self, uint32_t client);
/* LEAVE, TAKE, COUNT, HIDE. */
void cluster_worker_line(struct cluster *self, uint32_t client, const struct cluster_line *line);
void cluster_worker_letter(struct cluster *self, const struct cluster_letter *letter);
/* It learns that this life of it was lost. */
void cluster_worker_lost(struct cluster *self, uint32_t client, uint32_t joins);

/* sim_cluster_job.c */
/* All clients are running workers, in worlds where none comes or goes. */
void cluster_job_begin(struct cluster *self);
/* Declares workers lost that have been silent too long; moves joins on. */
void cluster_job_decide(struct cluster *self);
void cluster_job_letter(struct cluster *self, const struct cluster_letter *letter);
/* A command is about to be stored. */
void cluster_job_note(struct cluster *self, const ps_command_t *command);
#endif
