// SPDX-License-Identifier: GPL-2.0-or-later
/* Processes come and go: children that run, sleep or have children; each exit code must arrive. */
#include "storm.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define AT_ONCE 24

static void expect(pid_t child, int code)
{
	int status;

	if (waitpid(child, &status, 0) != child)
		die("fork: waitpid: %s", strerror(errno));
	if (!WIFEXITED(status) || WEXITSTATUS(status) != code)
		die("fork: a child ended with status %#x instead of exit code %d", status, code);
}

__attribute__((noreturn)) static void be_child(int code, int generations)
{
	switch (random_below(4)) {
	case 0:
		sleep_ns(random_below(2000000));
		break;
	case 1:
		if (generations) {
			pid_t child = fork_child();

			if (!child)
				be_child(code ^ 1, generations - 1);
			expect(child, code ^ 1);
			break;
		}
		/* fall through */
	default:
		spin_ns(random_below(500000));
	}
	_exit(code);
}

static void run(struct world *world, struct tally *tally)
{
	pid_t children[AT_ONCE];

	while (!world->stop) {
		for (int i = 0; i < AT_ONCE; i++) {
			children[i] = fork_child();
			if (!children[i])
				be_child(i, 3);
		}
		for (int i = 0; i < AT_ONCE; i++)
			expect(children[i], i);
		tally->done += AT_ONCE;
	}
}

const struct storm fork_storm = {
	.name = "fork",
	.counts = "children forked and reaped",
	.run = run,
};
