/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_PACKET_ATTRIBUTE_H
#define PROFILE_PACKET_ATTRIBUTE_H

#include "profile/packet.h"

/* The value of this attribute of the packet's first resource; it belongs to the packet. False:
 * there is no such attribute, or its value is no string. [any thread] */
bool packet_attribute(const struct packet *packet, const char *key, struct view *value);

#endif
