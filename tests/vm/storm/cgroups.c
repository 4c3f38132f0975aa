// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Task groups come and go while tasks run in them: with random weights, limits and nesting;
 * tasks move from one to another, throttled ones too.
 */
#include "storm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROOT "/sys/fs/cgroup"
#define TASKS 4

/* A group with one group inside; tasks run in the inner one. */
struct group {
	char outer[64];
	char inner[80];
};

static char top[40];

static void set(const char *group, const char *file, const char *value)
{
	char path[128];
	int error;

	snprintf(path, sizeof(path), "%s/%s", group, file);
	error = write_word(path, value);
	if (error)
		die("cgroup: %s: \"%s\" refused: %s", path, value, strerror(error));
}

static void make(const char *group)
{
	if (mkdir(group, 0755))
		die("cgroup: mkdir %s: %s", group, strerror(errno));
}

static void drop(const char *group)
{
	/* A task that has been waited for may still be on its way out of its group. */
	for (int try = 0; try < 1000; try++) {
		if (!rmdir(group))
			return;
		if (errno != EBUSY)
			break;
		sleep_ns(NS_PER_MS);
	}
	die("cgroup: rmdir %s: %s", group, strerror(errno));
}

static void limit(const char *group)
{
	char value[64];

	snprintf(value, sizeof(value), "%u", 1 + random_below(10000));
	set(group, "cpu.weight", value);
	if (random_below(2)) {
		snprintf(value, sizeof(value), "%u 20000", 1000 + random_below(40000));
		set(group, "cpu.max", value);
	}
}

static void prepare(struct world *world)
{
	int error = write_word(ROOT "/cgroup.subtree_control", "+cpu");

	(void)world;
	if (error)
		die("cgroup: %s does not give the cpu controller away: %s", ROOT, strerror(error));
	snprintf(top, sizeof(top), "%s/storm-%d", ROOT, (int)getpid());
	make(top);
	set(top, "cgroup.subtree_control", "+cpu");
}

static void create(struct group *group, int number)
{
	snprintf(group->outer, sizeof(group->outer), "%s/%d", top, number);
	snprintf(group->inner, sizeof(group->inner), "%s/%d/in", top, number);
	make(group->outer);
	set(group->outer, "cgroup.subtree_control", "+cpu");
	make(group->inner);
	limit(group->outer);
	limit(group->inner);
}

__attribute__((noreturn)) static void be_task(const char *group)
{
	uint32_t long_run = random_below(8) ? 1 : 20;

	set(group, "cgroup.procs", "0");
	spin_ns(random_below(3) * long_run * NS_PER_MS);
	sleep_ns(random_below(2) * NS_PER_MS);
	spin_ns(random_below(3) * long_run * NS_PER_MS);
	_exit(0);
}

/* While tasks run in them: moves some, changes limits, and sees all of them end well. */
static void use(struct group *groups)
{
	pid_t tasks[TASKS];
	char pid[16], procs[128];
	int status, error;

	for (int i = 0; i < TASKS; i++) {
		tasks[i] = fork_child();
		if (!tasks[i])
			be_task(groups[i & 1].inner);
	}
	for (int i = 0; i < TASKS; i++) {
		snprintf(pid, sizeof(pid), "%d", (int)tasks[i]);
		snprintf(procs, sizeof(procs), "%s/cgroup.procs", groups[random_below(2)].inner);
		error = write_word(procs, pid);
		if (error && error != ESRCH)
			die("cgroup: move %s to %s: %s", pid, procs, strerror(error));
		limit(groups[i & 1].inner);
	}
	for (int i = 0; i < TASKS; i++) {
		if (waitpid(tasks[i], &status, 0) != tasks[i])
			die("cgroup: waitpid: %s", strerror(errno));
		if (status)
			die("cgroup: a task in a group ended with status %#x", status);
	}
}

static void run(struct world *world, struct tally *tally)
{
	struct group groups[2];

	for (int number = 0; !world->stop; number += 2) {
		for (int i = 0; i < 2; i++)
			create(&groups[i], number + i);
		use(groups);
		for (int i = 0; i < 2; i++) {
			drop(groups[i].inner);
			drop(groups[i].outer);
		}
		tally->done += 4;
	}
	drop(top);
}

const struct storm cgroup_storm = {
	.name = "cgroup",
	.counts = "task groups created, used and removed",
	.prepare = prepare,
	.run = run,
};
