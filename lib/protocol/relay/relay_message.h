/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_relay_message - a relay's lots and news as messages, and back
 *
 * What     What a relay is given comes as a BUNDLE, what it sends goes as one, and what it says
 *          of it as RELAYED (docs/protocol.md, "Bundles"). A shard answers a BUNDLE with ACK,
 *          REFUSED, PARKED or MOVED: to a relay these are news, too.
 * Owner    Lots and payloads are the caller's.
 * Threads  Pure functions.
 */
#ifndef PS_PROTOCOL_RELAY_MESSAGE_H
#define PS_PROTOCOL_RELAY_MESSAGE_H

#include "protocol/relay/relay.h"
#include "wire/messages/message.h"

/* Who sends: the worker of this relay, as one of its clients. */
typedef struct ps_relay_speaker {
    uint32_t job;
    uint32_t worker;
    uint32_t member;
    uint32_t joins;
} ps_relay_speaker_t;

/* Reads the body of a BUNDLE; the lot holds the payload, which must not be `shared`. Errors:
 * PSD_PROTO; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_relay_lot_read(const ps_msg_bundle_t *message, ps_payload_t *payload,
                                              ps_relay_lot_t *ret_lot, psd_error_t *err);
/* The body of a BUNDLE of that lot. Errors: PSD_NOMEM; PSD_LIMIT more than a body can be. */
PSD_MUST_CHECK psd_status_t ps_relay_lot_write(const ps_relay_lot_t *lot,
                                               ps_payload_t **ret_payload, psd_error_t *err);
/* The BUNDLE of a deed SEND; its number is the request. epoch: of the partition's place. */
void ps_relay_bundle(const ps_relay_deed_t *deed, const ps_relay_speaker_t *speaker, uint64_t epoch,
                     ps_message_t *ret_message);
/* The RELAYED of a deed TELL. */
void ps_relay_relayed(const ps_relay_deed_t *deed, ps_message_t *ret_message);
/* The news in an answer to a BUNDLE, for ps_relay_heard. false: it answers none. */
PSD_MUST_CHECK bool ps_relay_news(const ps_message_t *message, uint64_t *ret_number,
                                  ps_relay_news_t *ret_news);
#endif
