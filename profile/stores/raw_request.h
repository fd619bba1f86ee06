/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_STORES_RAW_REQUEST_H
#define PROFILE_STORES_RAW_REQUEST_H

#include "profile/stores/label_set.h"

/*
 * Reads a request of series that carry profiles: push.v1.PushRequest (pyroscope,
 * api/push/v1/push.proto) or parca.profilestore.v1alpha1.WriteRawRequest (parca,
 * proto/parca/profilestore/v1alpha1/profilestore.proto). It returns the profiles one after the
 * other, each with the labels of its series. Views of the body; nothing is copied. One thread.
 * Annotations of a series, the ID of a sample, the tenant and unknown fields are ignored.
 *
 * A series is examined as a whole before its first profile is returned: it must be well-formed, and
 * its labels must have a __name__, different names, and stay within the limits. Otherwise it is
 * rejected, and the next one is read. Series without profiles are skipped.
 */
enum raw_request_form { RAW_REQUEST_PUSH, RAW_REQUEST_WRITE_RAW };

struct raw_request {
	/* set by the caller before raw_request_open */
	enum raw_request_form form;
	const struct label_limits *limits;
	uint64_t profiles; /* of the request */
	/* of a WriteRawRequest: addresses are relative to the executable */
	bool normalized;
	struct label_set labels; /* of the current series */
	uint32_t executables;    /* the number of ExecutableInfo of the current sample */
	/* own */
	struct view body;
	size_t at;           /* the rest of the body begins here */
	struct view samples; /* the rest of the current series */
	uint32_t series;     /* number of the current one, from 1 */
};

enum raw_request_more {
	RAW_REQUEST_PROFILE,
	RAW_REQUEST_REJECTED, /* a series; err gives the reason */
	RAW_REQUEST_END
};

/* False: the body is malformed (ERROR_INVALID), or it has more profiles than limits->max_profiles
 * (ERROR_TOO_LARGE). raw_request_next then finds nothing, and nothing in a request without
 * profiles. */
bool raw_request_open(struct raw_request *r, struct view body, struct error *err);

enum raw_request_more raw_request_next(struct raw_request *r, struct view *profile,
				       struct error *err);

#endif
