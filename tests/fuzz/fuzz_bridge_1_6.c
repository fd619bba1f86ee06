/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/fuzz_bridge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	return fuzz_bridge(OTLP_1_6, data, len);
}
