/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/pipeline/delivery/durable_fixture.h"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* A packet of a queue on disk that becomes a dead letter. */
static struct fixture *watched; /* NULL: nobody looks */
static char letters[80];
static _Atomic int file_syncs, directory_syncs, early, incomplete;

static int count_files(const char *suffix)
{
	int count = 0;
	size_t len = strlen(suffix);
	DIR *dir = opendir(letters);
	for (const struct dirent *file; (file = readdir(dir));) {
		size_t name = strlen(file->d_name);
		count += name > len && !strcmp(file->d_name + name - len, suffix);
	}
	closedir(dir);
	return count;
}

/* When the consumer is done with the packet, only its record and its letter are left. */
static bool has_record(struct delivery *d)
{
	for (;;) {
		pthread_mutex_lock(&d->lock);
		bool busy = d->busy, held = d->durable.held;
		pthread_mutex_unlock(&d->lock);
		if (!busy)
			return held;
		usleep(100);
	}
}

/* Before the letter is on disk. */
static void look_at(bool directory_itself)
{
	early += !has_record(watched->delivery) || read_metric(watched, DEAD_LETTERS);
	file_syncs += !directory_itself;
	directory_syncs += directory_itself;
	incomplete += directory_itself && (count_files(".otlp") != 1 || count_files(".json") != 1);
}

/* In place of that of the C library. */
int fsync(int fd)
{
	char link[64], path[256] = "";
	struct stat status;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	if (watched && readlink(link, path, sizeof path - 1) > 0 && !fstat(fd, &status) &&
	    !strncmp(path, letters, strlen(letters)))
		look_at(S_ISDIR(status.st_mode));
	return (int)syscall(SYS_fsync, fd);
}

/* A power cut at any time leaves the record or the letter. */
static void a_record_stays_until_its_letter_is_synced(void **state)
{
	struct fixture *f = *state;
	snprintf(letters, sizeof letters, "%s/letters", directory);
	f->config.dead_letter = (struct dead_letter_config){
		.present = { true }, .directory = letters, .max_size_mib = 10, .max_letters = 100
	};
	f->script[0] = (struct send_result){ .outcome = SEND_PERMANENT,
					     .retry_after_ms = -1,
					     .reason = "rejected" };
	start(f);
	watched = f;
	assert_true(enqueue(f, 3));
	run_until(f, 1, DEAD_LETTERS);
	watched = NULL;
	assert_int_equal(early, 0);
	assert_int_equal(file_syncs, 2);
	assert_int_equal(directory_syncs, 1);
	assert_int_equal(incomplete, 0);
	assert_int_equal(read_metric(f, DEAD_LETTERS), 3);
	restart(f);
	assert_int_equal(read_metric(f, RESTORED), 0);
	drain(f);
	loop_run(f->loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DURABLE(a_record_stays_until_its_letter_is_synced),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
