// SPDX-License-Identifier: GPL-2.0-or-later
/* CPUs go offline and come back, one at a time, in random order. */
#include "storm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int set_online(int cpu, bool online)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
	return write_word(path, online ? "1" : "0");
}

static void prepare(struct world *world)
{
	/* CPU 0 of x86 cannot go offline. */
	if (world->nr_cpus < 2)
		die("hotplug: a machine of one CPU has none to spare");
	if (access("/sys/devices/system/cpu/cpu1/online", W_OK))
		die("hotplug: CPU 1 cannot be switched off: %s", strerror(errno));
}

static void bring_back(int cpu)
{
	int error;

	/* A CPU that comes back may be refused while the kernel is low on memory or suspended. */
	for (int try = 0; try < 3; try++) {
		error = set_online(cpu, true);
		if (!error)
			return;
		sleep_ns(100 * NS_PER_MS);
	}
	die("hotplug: CPU %d does not come back: %s", cpu, strerror(error));
}

static void run(struct world *world, struct tally *tally)
{
	while (!world->stop) {
		int cpu = 1 + (int)random_below((uint32_t)world->nr_cpus - 1);

		if (set_online(cpu, false)) {
			tally->refused++;
		} else {
			sleep_ns(random_below(20) * NS_PER_MS);
			bring_back(cpu);
			tally->done++;
		}
		sleep_ns(random_below(20) * NS_PER_MS);
	}
	if (sysconf(_SC_NPROCESSORS_ONLN) != world->nr_cpus)
		die("hotplug: %ld of %d CPUs are online at the end", sysconf(_SC_NPROCESSORS_ONLN),
		    world->nr_cpus);
}

const struct storm hotplug_storm = {
	.name = "hotplug",
	.counts = "times a CPU went offline and came back",
	.prepare = prepare,
	.run = run,
};
