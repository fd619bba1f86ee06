/* SPDX-License-Identifier: Apache-2.0 */
#include "net/sockets.h"

#include "base/memory.h"

#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

struct shared {
	struct shared *next;
	char *address;
	int fd;
	const _Atomic uint64_t **owners;
	size_t owner_count;
};

struct sockets {
	pthread_mutex_t lock; /* guards what follows */
	struct shared *first;
};

struct sockets *sockets_new(void)
{
	struct sockets *s = memory_new(sizeof *s);
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

void sockets_unref(struct sockets **slot)
{
	struct sockets *s = *slot;
	*slot = NULL;
	if (!s)
		return;
	assert(!s->first);
	pthread_mutex_destroy(&s->lock);
	memory_free(s);
}

static bool has_owner(const struct shared *shared, uint64_t owner)
{
	for (size_t i = 0; i < shared->owner_count; i++)
		if (*shared->owners[i] == owner)
			return true;
	return false;
}

static void add_owner(struct shared *shared, const _Atomic uint64_t *owner)
{
	shared->owners =
		memory_resize(shared->owners, (shared->owner_count + 1) * sizeof *shared->owners);
	shared->owners[shared->owner_count++] = owner;
}

static bool remove_owner(struct shared *shared, const _Atomic uint64_t *owner)
{
	size_t i = 0;
	while (i < shared->owner_count && shared->owners[i] != owner)
		i++;
	if (i == shared->owner_count)
		return false;
	shared->owners[i] = shared->owners[--shared->owner_count];
	return true;
}

int sockets_share(const struct sockets_access *access, const char *address)
{
	struct sockets *s = access->sockets;
	int fd = -1;
	if (!s)
		return -1;
	pthread_mutex_lock(&s->lock);
	struct shared *shared = s->first;
	while (shared && (strcmp(shared->address, address) || has_owner(shared, *access->owner)))
		shared = shared->next;
	if (shared)
		fd = fcntl(shared->fd, F_DUPFD_CLOEXEC, 0);
	if (fd >= 0)
		add_owner(shared, access->owner);
	pthread_mutex_unlock(&s->lock);
	return fd;
}

void sockets_add(const struct sockets_access *access, const char *address, int fd)
{
	struct sockets *s = access->sockets;
	int copy = s ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
	if (copy < 0)
		return;
	struct shared *shared = memory_new(sizeof *shared);
	shared->address = memory_text(address);
	shared->fd = copy;
	add_owner(shared, access->owner);
	pthread_mutex_lock(&s->lock);
	shared->next = s->first;
	s->first = shared;
	pthread_mutex_unlock(&s->lock);
}

/* Takes the owner off the first socket of the address that it has; returns the socket if that was
 * the last owner. */
static struct shared *leave(struct sockets *s, const char *address, const _Atomic uint64_t *owner,
			    bool *free)
{
	struct shared **at = &s->first, *shared;
	while (*at && (strcmp((*at)->address, address) || !remove_owner(*at, owner)))
		at = &(*at)->next;
	shared = *at;
	*free = true;
	if (!shared)
		return NULL;
	*free = shared->owner_count == 0;
	if (!*free)
		return NULL;
	*at = shared->next;
	return shared;
}

bool sockets_close(const struct sockets_access *access, const char *address, int fd)
{
	struct sockets *s = access->sockets;
	bool last = true;
	close(fd);
	if (!s)
		return true;
	pthread_mutex_lock(&s->lock);
	struct shared *gone = leave(s, address, access->owner, &last);
	pthread_mutex_unlock(&s->lock);
	if (!gone)
		return last;
	close(gone->fd);
	memory_free(gone->owners);
	memory_free(gone->address);
	memory_free(gone);
	return true;
}
