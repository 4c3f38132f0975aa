/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One byte back and forth between two processes: exchange KIND CPU ROUNDS. This process is on CPU 0,
 * the other on CPU. ROUNDS rounds warm both up, then count.c counts as many.
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

static void send_one(const struct end *end)
{
	checked((int)write(end->out, "x", 1), "write");
}

static void receive_one(const struct end *end)
{
	char byte;

	if (checked((int)read(end->in, &byte, 1), "read") == 0)
		exit(1);
}

int main(int argc, char **argv)
{
	struct end ends[2];
	int rounds;
	pid_t other;

	if (argc != 4)
		return 2;
	rounds = atoi(argv[3]);
	connect_ends(argv[1], ends);
	other = checked(fork(), "fork");
	if (other == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		on_cpu(atoi(argv[2]));
		for (;;) {
			receive_one(&ends[1]);
			send_one(&ends[1]);
		}
	}
	on_cpu(0);
	for (int i = -rounds; i < rounds; i++) {
		/* nopl 0x52564c01(%rax) and nopl 0x52564c02(%rax) */
		if (i == 0)
			__asm__ volatile(".byte 0x0f, 0x1f, 0x80, 0x01, 'L', 'V', 'R'" ::: "memory");
		send_one(&ends[0]);
		receive_one(&ends[0]);
	}
	__asm__ volatile(".byte 0x0f, 0x1f, 0x80, 0x02, 'L', 'V', 'R'" ::: "memory");
	kill(other, SIGKILL);
	return 0;
}
