/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/system.h"

/* A directory tree in the form that the kernel shows. */
static char root[] = "/tmp/portcullis-cgroup-XXXXXX";

static void put(const char *path, const char *text)
{
	char full[256];
	snprintf(full, sizeof full, "%s/%s", root, path);
	for (char *slash = full + sizeof root; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(full, 0700);
		*slash = '/';
	}
	FILE *file = fopen(full, "we");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static const char *groups_file(const char *groups)
{
	static char path[256];
	put("groups", groups);
	snprintf(path, sizeof path, "%s/groups", root);
	return path;
}

static uint64_t limit_with(const char *groups)
{
	return system_group_memory(groups_file(groups), root);
}

static uint64_t cores_with(const char *groups)
{
	return system_group_cores(groups_file(groups), root);
}

static int setup(void **state)
{
	(void)state;
	snprintf(root, sizeof root, "/tmp/portcullis-cgroup-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

/* The directories that were synced, in this order. */
static ino_t synced[8];
static size_t synced_count;
static int sync_error; /* errno of each fsync; 0: it succeeds */

int fsync(int fd)
{
	struct stat st;
	if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) && synced_count < 8)
		synced[synced_count++] = st.st_ino;
	errno = sync_error;
	return sync_error ? -1 : 0;
}

static int drop(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
	(void)status;
	(void)kind;
	(void)walk;
	return remove(path);
}

static int teardown(void **state)
{
	(void)state;
	return nftw(root, drop, 8, FTW_DEPTH | FTW_PHYS);
}

static void without_a_group_or_a_limit_there_is_none(void **state)
{
	(void)state;
	assert_int_equal(system_group_memory("/nowhere", root), UINT64_MAX);
	assert_int_equal(limit_with(""), UINT64_MAX);
	assert_int_equal(limit_with("0::/\n"), UINT64_MAX);
	put("a/memory.max", "max\n");
	assert_int_equal(limit_with("0::/a\n"), UINT64_MAX);
	put("a/memory.max", "");
	assert_int_equal(limit_with("0::/a\n"), UINT64_MAX);
}

static void the_lowest_limit_on_the_way_up_holds(void **state)
{
	(void)state;
	put("a/b/memory.max", "3000\n");
	put("a/memory.max", "2000\n");
	put("memory.max", "9000\n");
	assert_int_equal(limit_with("0::/a/b\n"), 2000);
	assert_int_equal(limit_with("0::/a/b/gone\n"), 2000);
	assert_int_equal(limit_with("0::/\n"), 9000);
	assert_int_equal(limit_with("0::/elsewhere\n"), 9000);
}

static void the_limit_above_which_the_kernel_slows_down_holds_too(void **state)
{
	(void)state;
	put("a/memory.max", "5000\n");
	put("a/memory.high", "max\n");
	assert_int_equal(limit_with("0::/a\n"), 5000);
	put("a/memory.high", "4000\n");
	assert_int_equal(limit_with("0::/a\n"), 4000);
	assert_int_equal(limit_with("0::/a/b\n"), 4000);
	put("a/b/memory.max", "3000\n");
	put("a/b/memory.high", "9000\n");
	assert_int_equal(limit_with("0::/a/b\n"), 3000);
}

static void the_lowest_limit_of_version_1_on_the_way_up_holds(void **state)
{
	(void)state;
	put("memory/memory.limit_in_bytes", "9223372036854771712\n");
	put("memory/kubepods/memory.limit_in_bytes", "7000\n");
	put("memory/kubepods/pod/memory.limit_in_bytes", "9000\n");
	put("memory/kubepods/pod/memory.soft_limit_in_bytes", "10\n");
	assert_int_equal(limit_with("9:memory:/kubepods/pod\n"), 7000);
	put("memory/kubepods/pod/memory.limit_in_bytes", "6000\n");
	assert_int_equal(limit_with("9:memory:/kubepods/pod\n"), 6000);
}

/* Both versions are mounted: the controller belongs to one of them. */
static void the_version_that_has_the_controller_is_asked(void **state)
{
	(void)state;
	put("memory/x/memory.limit_in_bytes", "5000\n");
	put("unified/x/cgroup.procs", "");
	assert_int_equal(limit_with("3:memory:/x\n1:name=systemd:/x\n0::/x\n"), 5000);
	/* without a memory controller there is no limit */
	assert_int_equal(limit_with("3:cpuset:/x\n0::/x\n"), UINT64_MAX);
}

static void a_group_of_version_1_is_found_by_its_controller(void **state)
{
	(void)state;
	put("memory/docker/x/memory.limit_in_bytes", "5000\n");
	put("memory/memory.limit_in_bytes", "9223372036854771712\n");
	assert_int_equal(limit_with("12:pids:/docker/x\n4:cpu,memory:/docker/x\n0::/\n"), 5000);
	assert_int_equal(limit_with("4:cpu,memory:/seen/from/outside\n"), 9223372036854771712u);
	assert_int_equal(limit_with("no colon\n1:one\n"), UINT64_MAX);
}

static void a_quota_is_so_many_cores_rounded_up(void **state)
{
	(void)state;
	assert_int_equal(cores_with("0::/\n"), UINT64_MAX);
	put("a/cpu.max", "max 100000\n");
	assert_int_equal(cores_with("0::/a\n"), UINT64_MAX);
	put("a/cpu.max", "150000 100000\n");
	assert_int_equal(cores_with("0::/a\n"), 2);
	put("a/b/cpu.max", "1000 100000\n");
	assert_int_equal(cores_with("0::/a/b\n"), 1);
	put("cpu/x/cpu.cfs_quota_us", "-1\n");
	put("cpu/x/cpu.cfs_period_us", "100000\n");
	assert_int_equal(cores_with("4:cpu,cpuacct:/x\n"), UINT64_MAX);
	put("cpu/x/cpu.cfs_quota_us", "300000\n");
	assert_int_equal(cores_with("5:cpuset:/y\n4:cpu,cpuacct:/x\n"), 3);
}

static void this_process_has_at_least_one_core_and_some_memory(void **state)
{
	(void)state;
	assert_true(system_cores() >= 1);
	assert_true(system_memory() > 1 << 20);
}

static void an_output_waits_for_nobody_when_it_is_opened(void **state)
{
	(void)state;
	char path[256];
	struct error err;
	snprintf(path, sizeof path, "%s/pipe", root);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(system_open_output(path, O_APPEND, &err), -1);
	assert_non_null(strstr(err.text, "/pipe: No such device or address"));
	int reader = open(path, O_RDONLY | O_NONBLOCK),
	    fd = system_open_output(path, O_APPEND, &err);
	assert_true(fd >= 0);
	assert_false(fcntl(fd, F_GETFL) & O_NONBLOCK);
	close(fd);
	close(reader);
}

static void no_link_is_followed_in_place_of_an_output(void **state)
{
	(void)state;
	char target[256], path[256], missing[256];
	struct error err = { 0 };
	put("target", "as it was");
	snprintf(target, sizeof target, "%s/target", root);
	snprintf(missing, sizeof missing, "%s/missing", root);
	snprintf(path, sizeof path, "%s/link", root);
	const char *const targets[] = { target, missing, "/proc/self/fd/2", "/dev/null" };
	for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
		assert_int_equal(symlink(targets[i], path), 0);
		assert_int_equal(system_open_output(path, i % 2 ? O_APPEND : O_TRUNC, &err), -1);
		assert_int_equal(err.kind, ERROR_CONFIG);
		assert_non_null(strstr(err.text, "/link: it is a symbolic link, which outputs "
						 "do not follow"));
		unlink(path);
	}
	struct stat st;
	assert_int_equal(stat(target, &st), 0);
	assert_int_equal(st.st_size, strlen("as it was"));
	assert_int_equal(access(missing, F_OK), -1);
}

static void directories_on_the_way_may_be_links(void **state)
{
	(void)state;
	char link[256], path[512];
	struct error err;
	put("a/b", "");
	snprintf(link, sizeof link, "%s/link", root);
	snprintf(path, sizeof path, "%s/b", link);
	assert_int_equal(symlink("a", link), 0);
	int fd = system_open_output(path, O_APPEND, &err);
	assert_true(fd >= 0);
	close(fd);
}

/* The names of standard streams are links to the files that this process has open. */
static void devices_and_open_files_may_be_links(void **state)
{
	(void)state;
	char path[256], by_number[64], by_process[64];
	struct error err;
	put("a", "");
	snprintf(path, sizeof path, "%s/a", root);
	int file = open(path, O_WRONLY);
	assert_true(file >= 0);
	snprintf(by_number, sizeof by_number, "/dev/fd/%d", file);
	snprintf(by_process, sizeof by_process, "/proc/%d/fd/%d", (int)getpid(), file);
	const char *const names[] = { by_number, by_process };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		int fd = system_open_output(names[i], O_APPEND, &err);
		if (fd < 0)
			fail_msg("%s", err.text);
		assert_int_equal(write(fd, "x", 1), 1);
		close(fd);
	}
	struct stat st;
	assert_int_equal(fstat(file, &st), 0);
	assert_int_equal(st.st_size, 2);
	close(file);
}

static ino_t inode_of(const char *path)
{
	char full[256];
	struct stat st;
	snprintf(full, sizeof full, "%s/%s", root, path);
	assert_int_equal(stat(full, &st), 0);
	return st.st_ino;
}

static bool make(const char *path)
{
	char full[256];
	snprintf(full, sizeof full, "%s/%s", root, path);
	synced_count = 0;
	return system_make_directories(full, 0700);
}

static void the_directory_above_each_new_one_is_synced(void **state)
{
	(void)state;
	put("a/b", "");
	assert_true(make("a/c/d"));
	assert_int_equal(synced_count, 2);
	assert_int_equal(synced[0], inode_of("a"));
	assert_int_equal(synced[1], inode_of("a/c"));
	assert_true(make("a/c/d"));
	assert_int_equal(synced_count, 0);
}

static void a_new_directory_that_cannot_be_synced_is_an_error(void **state)
{
	(void)state;
	sync_error = EIO;
	bool made = make("a");
	int reason = errno;
	sync_error = EINVAL; /* the file system has no such thing */
	assert_true(make("b"));
	sync_error = 0;
	assert_false(made);
	assert_int_equal(reason, EIO);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_a_group_or_a_limit_there_is_none),
		TEST(the_lowest_limit_on_the_way_up_holds),
		TEST(the_limit_above_which_the_kernel_slows_down_holds_too),
		TEST(the_lowest_limit_of_version_1_on_the_way_up_holds),
		TEST(the_version_that_has_the_controller_is_asked),
		TEST(a_group_of_version_1_is_found_by_its_controller),
		TEST(a_quota_is_so_many_cores_rounded_up),
		TEST(this_process_has_at_least_one_core_and_some_memory),
		TEST(an_output_waits_for_nobody_when_it_is_opened),
		TEST(no_link_is_followed_in_place_of_an_output),
		TEST(directories_on_the_way_may_be_links),
		TEST(devices_and_open_files_may_be_links),
		TEST(the_directory_above_each_new_one_is_synced),
		TEST(a_new_directory_that_cannot_be_synced_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
