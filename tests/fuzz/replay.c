/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Runs a fuzz target over files, without libFuzzer, so that the corpora are ordinary tests with any
 * compiler and sanitizer. Prints the number of inputs. No input is a failure. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	if (!file) {
		perror(path);
		return 1;
	}
	fseek(file, 0, SEEK_END);
	long size = ftell(file);
	rewind(file);
	/* Exactly as large as the input, so that sanitizers find reads past its end. */
	uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
	size_t got = data ? fread(data, 1, (size_t)size, file) : 0;
	fclose(file);
	if (got == (size_t)size)
		LLVMFuzzerTestOneInput(data, got);
	free(data);
	return got != (size_t)size;
}

int main(int argc, char **argv)
{
	int failed = argc < 2;
	for (int i = 1; i < argc; i++)
		failed |= run_file(argv[i]);
	printf("%s: %d inputs\n", argv[0], argc - 1);
	return failed;
}
