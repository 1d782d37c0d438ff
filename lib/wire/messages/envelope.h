/* SPDX-License-Identifier: Apache-2.0 */
/* ps_envelope - what a reply of the control port has beside its answer */
#ifndef PS_WIRE_ENVELOPE_H
#define PS_WIRE_ENVELOPE_H

#include "wire/messages/doc.h"

/* Takes out of a reply what only the protocol needs. */
void ps_envelope_strip(ps_doc_t *reply);
#endif
