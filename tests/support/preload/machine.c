/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

/* Simulates a machine with MACHINE_MIB for a program that is started with this library as
 * LD_PRELOAD. It replaces a container's limit where tests cannot create a cgroup. */
__attribute__((visibility("default"))) long sysconf(int name)
{
	const char *mib = getenv("MACHINE_MIB");
	long (*real)(int) = (long (*)(int))dlsym(RTLD_NEXT, "sysconf");
	if (name != _SC_PHYS_PAGES || !mib)
		return real(name);
	return strtol(mib, NULL, 10) * ((1 << 20) / real(_SC_PAGESIZE));
}
