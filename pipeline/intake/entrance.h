/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_ENTRANCE_H
#define PIPELINE_INTAKE_ENTRANCE_H

#include "pipeline/intake/gate.h"

/*
 * Where the requests of a receiver enter: it leads to the gate of the graph that runs. A receiver
 * whose configuration a reload does not change keeps its entrance, with its sockets and
 * connections, and the entrance leads to another gate from then on. A request takes the gate that
 * it finds when its headers arrive, and keeps it until its reply. It is therefore processed by one
 * graph only.
 *
 * The functions that receivers call are in pipeline/inbound.h.
 */
struct entrance *entrance_new(struct budget *budget);
void entrance_unref(struct entrance **entrance);
/* Requests that arrive from now on take this gate. On return no thread is about to take the one
 * before, so gate_wait sees all of its requests. [loop thread] */
void entrance_lead(struct entrance *entrance, struct gate *gate);

#endif
