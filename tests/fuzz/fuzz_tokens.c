/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/fuzz_tokens.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	tokens_check(data, len);
	return 0;
}
