/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

/* A machine of MACHINE_MIB, for a program that is started with this as LD_PRELOAD: what a
 * container's limit is to it, where tests may not make a cgroup. */
__attribute__((visibility("default"))) long sysconf(int name)
{
	const char *mib = getenv("MACHINE_MIB");
	long (*real)(int) = (long (*)(int))dlsym(RTLD_NEXT, "sysconf");
	if (name != _SC_PHYS_PAGES || !mib)
		return real(name);
	return strtol(mib, NULL, 10) * ((1 << 20) / real(_SC_PAGESIZE));
}
