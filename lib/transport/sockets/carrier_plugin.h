/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_carrier_plugin - the interface of a carrier in a plug-in
 *
 * What     The shared object libpsd-NAME.so exports psd_carrier_plugin. It
 *          carries the endpoints NAME://ADDRESS; only it interprets ADDRESS. An
 *          *end* is a link (one peer) or a port (any number). A message is 1 to
 *          PS_CARRIER_FRAMES frames of any bytes; it arrives whole, once, in the
 *          order of sending, or not at all.
 * Shape    Functions return 0, or an errno: EAGAIN the queue is full (send) or
 *          there is nothing (receive), EHOSTUNREACH the peer is gone, ENOMEM.
 *          conn of a port: a plug-in's number of a peer, 1 .. 2^32, never given
 *          twice; of a link: 0.
 * Owner    A frame that was sent is the plug-in's until it calls free_frame; one
 *          that was received is psd's until it does the same.
 *          A *world* is a fixed number of processes, its *ranks*, that were
 *          started together.
 * Threads  An end is used by one thread; different ends by different ones.
 *          Any thread may call free_frame and the functions of a world. Only close
 *          waits, and, while the world begins, enter, bind and connect.
 * Trust    A plug-in runs inside the process, with all of its rights.
 */
#ifndef PS_TRANSPORT_CARRIER_PLUGIN_H
#define PS_TRANSPORT_CARRIER_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#define PS_CARRIER_ABI 2      /* of this header; psd refuses any other */
#define PS_CARRIER_FRAMES 4   /* of one message, at most */
#define PS_CARRIER_REASON 256 /* bytes of a reason, with the '\0' */
#define PS_CARRIER_TEXT 512   /* bytes of a key or a value, with the '\0' */
#define PS_CARRIER_ENTRY "psd_carrier_plugin"

typedef struct ps_carrier_frame {
    const uint8_t *data;
    size_t size;
    void (*free_frame)(void *owner);
    void *owner;
} ps_carrier_frame_t;

/* Of one end. */
typedef struct ps_carrier_setup {
    uint32_t high_water;  /* messages queued each way, > 0 */
    uint64_t frame_bytes; /* largest frame accepted */
} ps_carrier_setup_t;

typedef struct ps_carrier_plugin {
    uint32_t abi;     /* PS_CARRIER_ABI */
    uint32_t size;    /* sizeof(ps_carrier_plugin_t) */
    const char *name; /* NAME */
    /* Opens a port, and writes the whole endpoint that links connect to into
     * ret_bound. ret_reason: why not. */
    int (*bind)(const char *endpoint, const ps_carrier_setup_t *setup, void **ret_end,
                char *ret_bound, size_t bound_size, char ret_reason[PS_CARRIER_REASON]);
    /* Opens a link; does not wait for the peer. */
    int (*connect)(const char *endpoint, const ps_carrier_setup_t *setup, void **ret_end,
                   char ret_reason[PS_CARRIER_REASON]);
    /* Sends for linger_ms what is queued, then drops the rest. */
    void (*close)(void *end, uint32_t linger_ms);
    /* Takes all n frames, or none when it fails. */
    int (*send)(void *end, uint64_t conn, const ps_carrier_frame_t *frames, size_t n);
    int (*receive)(void *end, uint64_t *ret_conn, ps_carrier_frame_t frames[PS_CARRIER_FRAMES],
                   size_t *ret_n);
    /* What was sent need not wait for more. */
    void (*flush)(void *end);
    /* 1: receive would give something. No system call. */
    int (*is_ready)(void *end);
    /* Readable when something may have come since lie_down; the same for all
     * the life of the end. */
    int (*fd)(void *end);
    /* The thread will sleep on fd. 0: there is something to do already. get_up
     * follows in both cases, and makes fd unreadable. */
    int (*lie_down)(void *end);
    void (*get_up)(void *end);
    /* 1: a port's next peer that is gone, after its last message; a link: its
     * peer is gone. */
    int (*next_gone)(void *end, uint64_t *ret_conn);

    /* ---- of a carrier that has a world; else NULL */
    /* This process's place in it, which begins now. From then on the ranks watch
     * each other. ret_reason: why not. */
    int (*enter)(int *ret_rank, int *ret_size, char ret_reason[PS_CARRIER_REASON]);
    /* Lets all ranks know what belongs to a key. It is never changed. */
    int (*say)(const char *key, const char *value);
    /* What a rank has said. ENOENT: nothing has come here yet, or nothing was
     * entered. */
    int (*find)(const char *key, char ret_value[PS_CARRIER_TEXT]);
    /* 1: that rank has ended, or does not answer and may be dead. */
    int (*is_lost)(int rank);
    /* Bytes that the process has sent and received. */
    void (*count)(uint64_t *ret_sent, uint64_t *ret_received);
} ps_carrier_plugin_t;

typedef const ps_carrier_plugin_t *ps_carrier_entry_t(void);
#endif
