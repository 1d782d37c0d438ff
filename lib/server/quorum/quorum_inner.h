/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the thread's files: its state, and the steps of a turn. */
#ifndef PS_SERVER_QUORUM_INNER_H
#define PS_SERVER_QUORUM_INNER_H

#include <pthread.h>

#include "server/quorum/quorum_thread.h"
#include "transport/threads/clock.h"

#define WAITS_MAX 64 /* links beyond are looked at when something else ends a wait */

typedef struct ps_member_peer {
    uint64_t member;
    char node[PS_NAME_MAX + 1];
    char control[PS_ENDPOINT_MAX + 1];  /* of its node; "": unknown */
    char endpoint[PS_ENDPOINT_MAX + 1]; /* its own; "": unknown */
    bool moved;                         /* one of them is new */
    ps_socket_t *door;                  /* owned by the thread; to its control port */
    ps_socket_t *link;                  /* … to its own */
    ps_caller_t caller;                 /* what both proved on the link */
    uint64_t greeted_ms;                /* when that began last */
    uint64_t n_refused;                 /* answers there without the right proof */
    uint64_t life;                      /* of which it said last where it listens */
    uint32_t machine;  /* the registry's machine version that it knows; 0: unknown */
    uint64_t hello_ms; /* when this one said that last */
    uint64_t said_ms;  /* when it last said one; 0: never */
    uint64_t stray_ms; /* since when it is no member; 0: it is one */
} ps_member_peer_t;

/* What the main thread wants of the machine, which it waits for. */
typedef struct ps_quorum_order {
    enum { PS_ORDER_PROPOSE, PS_ORDER_CHANGE, PS_ORDER_TRANSFER } kind;
    const ps_bytes_t *commands; /* of PROPOSE … */
    size_t n;                   /* … how many */
    ps_quorum_change_t change;
    uint64_t member;
    const char *node;
    bool done;
    uint64_t term;  /* PROPOSE: in which the main thread takes itself for the leader */
    uint64_t index; /* of the first entry */
    psd_status_t status;
    psd_error_t *err; /* the main thread's */
} ps_quorum_order_t;

/* A database on its way to another member. */
typedef struct ps_quorum_sending {
    uint64_t to;       /* 0: none is sent */
    bool wanted;       /* the main thread has not given it yet */
    ps_buffer_t bytes; /* owned */
    ps_quorum_snapshot_t snapshot;
    uint64_t offset; /* of the piece in flight */
    uint64_t sent_ms;
    uint64_t until_ms;
} ps_quorum_sending_t;

struct ps_quorum_thread {
    pthread_t thread;
    pthread_mutex_t mutex; /* of what is shared */
    pthread_cond_t moved;  /* what may be applied, or who leads */
    int wake_fd;           /* wakes the thread */
    int news_fd;           /* wakes the main thread */
    /* shared */
    bool stopping;
    ps_quorum_t *quorum;     /* owned */
    ps_guard_t *guard;       /* owned; of the port */
    ps_member_peer_t *peers; /* owned */
    size_t n_peers;
    size_t peers_capacity;
    ps_quorum_order_t *order; /* of the main thread; NULL: none */
    uint64_t take_ms;         /* for the thread to come to a proposal */
    uint64_t applied;         /* entries up to this one are in the database */
    uint64_t flushed;         /* … and flushed there */
    uint64_t cut;             /* … of the last cut of the log */
    ps_quorum_sending_t sending;
    uint64_t unwanted;             /* a member that is to get its database later; 0: none */
    uint64_t coming_index;         /* of the state in `coming` */
    bool coming_whole;             /* it is there, and checked */
    ps_buffer_t coming;            /* owned; a database from the leader */
    bool installs;                 /* that is to be the own one */
    bool installed;                /* it is */
    ps_quorum_snapshot_t snapshot; /* of that */
    ps_node_message_t stranger;    /* MEMBER; member 0: none */
    psd_status_t status;
    char text[300];
    /* the thread's own */
    ps_registry_log_t *log;        /* owned */
    ps_socket_t *port;             /* owned */
    ps_socket_t *waits[WAITS_MAX]; /* port and links, of the next wait */
    bool ready[WAITS_MAX];
    ps_socket_args_t socket;
    ps_quorum_knows_fn *knows;          /* NULL: nobody is asked for */
    void *knows_of;                     /* borrowed */
    char endpoint[PS_ENDPOINT_MAX + 1]; /* of the port, as others reach it */
    char node[PS_NAME_MAX + 1];
    ps_buffer_t hello; /* owned; shared */
    uint64_t room_ms;  /* when the log is tried again; 0: it had room */
    uint64_t op;       /* of the log, that is not flushed */
    ps_turns_t *turns;
    psd_error_t *err; /* owned */
    uint64_t member;
    uint64_t life;
    ps_id_t cluster;
    uint64_t incarnation;
};

/* The machine version that the member of a MEMBER knows; an old psd does not say it. */
uint32_t ps_quorum_machine_of(const ps_node_message_t *hello);
void ps_quorum_lock(ps_quorum_thread_t *self);
void ps_quorum_unlock(ps_quorum_thread_t *self);
/* Why the log cannot be written; logs it once. */
void ps_quorum_break(ps_quorum_thread_t *self, psd_status_t rc);

/* ---- quorum_links.c: connections to other members, and from them ---- */

/* Ends a wait on that eventfd. */
void ps_quorum_ring(int fd);
/* NULL: it is not known. */
ps_member_peer_t *ps_quorum_find_peer(const ps_quorum_thread_t *self, uint64_t member);
/* Begins, or begins again, what both ends of the link to it prove; says where this
 * member listens to one that is not heard. */
void ps_quorum_greet(ps_quorum_thread_t *self, ps_member_peer_t *peer, uint64_t now_ms);
/* Takes in what the other ends of all links say. */
void ps_quorum_receive_links(ps_quorum_thread_t *self);
/* Sends a message, once both have proved who they are. */
void ps_quorum_send_sealed(ps_member_peer_t *peer, ps_bytes_t bytes);
/* Something came to the port. A message of a member that has proved itself is in
 * ret_word; false: it is none. */
PSD_MUST_CHECK bool ps_quorum_admit(ps_quorum_thread_t *self, uint64_t conn, ps_bytes_t bytes,
                                    ps_guard_word_t *ret_word);
/* The sockets that the thread waits for: as many as it returns, in self->waits. */
size_t ps_quorum_gather_waits(ps_quorum_thread_t *self);

/* quorum_turn.c: the thread; argument: a ps_quorum_thread_t. */
void *ps_quorum_run(void *argument);
/* The machine or the log cannot go on. */
bool ps_quorum_thread_is_broken(const ps_quorum_thread_t *self);
/* A message of this member, between threads of members. */
ps_node_message_t ps_quorum_new_message(const ps_quorum_thread_t *self,
                                        ps_node_message_kind_t kind);
void ps_quorum_say(ps_member_peer_t *peer, const ps_node_message_t *message);

/* ---- quorum_database.c ---- */

/* The machine wants a database sent to that member. */
void ps_quorum_want_database(ps_quorum_thread_t *self, uint64_t to);
/* Sends a piece again when it is due; gives up after a while. */
void ps_quorum_go_on_sending(ps_quorum_thread_t *self, uint64_t now_ms);
void ps_quorum_take_got(ps_quorum_thread_t *self, const ps_node_message_t *message);
void ps_quorum_take_piece(ps_quorum_thread_t *self, const ps_node_message_t *message);
#endif
