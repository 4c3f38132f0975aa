/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One byte back and forth between two processes: exchange KIND CPU ROUNDS [CPU]. This process is on CPU 0,
 * the other on CPU. ROUNDS rounds warm both up, then count.c counts as many. With a second CPU, another
 * pair does the same there and on the next CPU, without an end, and both pairs count their messages
 * in one place: a line that must be seen to move between them.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Where an end reads and writes. */
struct end {
	int in, out;
};

static int checked(int result, const char *what)
{
	if (result < 0) {
		fprintf(stderr, "exchange: %s: %s\n", what, strerror(errno));
		exit(1);
	}
	return result;
}

static void on_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	checked(sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity");
}

static int on_loopback(int type, struct sockaddr_in *address)
{
	socklen_t size = sizeof(*address);
	int fd = checked(socket(AF_INET, type, 0), "socket");

	*address = (struct sockaddr_in){ .sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	checked(bind(fd, (void *)address, size), "bind");
	checked(getsockname(fd, (void *)address, &size), "getsockname");
	return fd;
}

static void connect_ends(const char *kind, struct end ends[2])
{
	struct sockaddr_in address[2];
	int fds[2], back[2], one = 1;

	if (!strcmp(kind, "pipe")) {
		checked(pipe(fds), "pipe");
		checked(pipe(back), "pipe");
		ends[0] = (struct end){ back[0], fds[1] };
		ends[1] = (struct end){ fds[0], back[1] };
		return;
	}
	if (!strcmp(kind, "unix")) {
		checked(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), "socketpair");
	} else if (!strcmp(kind, "udp")) {
		fds[0] = on_loopback(SOCK_DGRAM, &address[0]);
		fds[1] = on_loopback(SOCK_DGRAM, &address[1]);
		for (int i = 0; i < 2; i++)
			checked(connect(fds[i], (void *)&address[1 - i], sizeof(address[0])),
				"connect");
	} else if (!strcmp(kind, "tcp")) {
		int listener = on_loopback(SOCK_STREAM, &address[0]);

		checked(listen(listener, 1), "listen");
		fds[0] = on_loopback(SOCK_STREAM, &address[1]);
		checked(connect(fds[0], (void *)&address[0], sizeof(address[0])), "connect");
		fds[1] = checked(accept(listener, NULL, NULL), "accept");
		for (int i = 0; i < 2; i++)
			checked(setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)),
				"TCP_NODELAY");
	} else {
		exit(2);
	}
	for (int i = 0; i < 2; i++)
		ends[i] = (struct end){ fds[i], fds[i] };
}

static long *messages;

/* Not inlined, so that both ends of a pair count by the same instruction. */
static __attribute__((noinline)) void count_message(void)
{
	__atomic_add_fetch(messages, 1, __ATOMIC_RELAXED);
}

static void send_one(const struct end *end)
{
	if (messages)
		count_message();
	checked((int)write(end->out, "x", 1), "write");
}

static void receive_one(const struct end *end)
{
	char byte;

	if (checked((int)read(end->in, &byte, 1), "read") == 0)
		exit(1);
}

/* Answers each byte, on a CPU. */
static pid_t start_answering(const struct end *end, int cpu)
{
	pid_t process = checked(fork(), "fork");

	if (process != 0)
		return process;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	on_cpu(cpu);
	for (;;) {
		receive_one(end);
		send_one(end);
	}
}

static void ask(const struct end *end)
{
	send_one(end);
	receive_one(end);
}

static pid_t start_pair(const char *kind, int cpu)
{
	pid_t process = checked(fork(), "fork");
	struct end ends[2];

	if (process != 0)
		return process;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	on_cpu(cpu);
	connect_ends(kind, ends);
	start_answering(&ends[1], cpu + 1);
	for (;;)
		ask(&ends[0]);
}

int main(int argc, char **argv)
{
	struct end ends[2];
	int rounds;
	pid_t other, second = 0;

	if (argc < 4 || argc > 5)
		return 2;
	rounds = atoi(argv[3]);
	on_cpu(0);
	connect_ends(argv[1], ends);
	if (argc == 5) {
		messages = mmap(NULL, sizeof(*messages), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (messages == MAP_FAILED)
			checked(-1, "mmap");
		second = start_pair(argv[1], atoi(argv[4]));
	}
	other = start_answering(&ends[1], atoi(argv[2]));
	for (int i = -rounds; i < rounds; i++) {
		/* nopl 0x52564c01(%rax) and nopl 0x52564c02(%rax) */
		if (i == 0)
			__asm__ volatile(".byte 0x0f, 0x1f, 0x80, 0x01, 'L', 'V', 'R'" ::: "memory");
		ask(&ends[0]);
	}
	__asm__ volatile(".byte 0x0f, 0x1f, 0x80, 0x02, 'L', 'V', 'R'" ::: "memory");
	kill(other, SIGKILL);
	if (second)
		kill(second, SIGKILL);
	return 0;
}
