/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The yardstick: a sched_ext scheduler whose two callbacks have a known length, everything
 * else being the kernel's default. What it costs is what the statistics themselves count
 * (`running`, empty), and how far an instruction is a nanosecond (`stopping`, a loop).
 */
#define SEC(name) __attribute__((section(name), used))

char LICENSE[] SEC("license") = "GPL";

/* Those members of the kernel's structure that are used: found by name. */
struct sched_ext_ops {
	void (*running)(void *task);
	void (*stopping)(void *task, _Bool runnable);
	char name[128];
};

SEC("struct_ops/empty")
int empty(void *context)
{
	return 0;
}

/* x86: 333 times a subtraction, a test and a jump; 1000 instructions with what is around. */
SEC("struct_ops/thousand")
int thousand(void *context)
{
	unsigned long turns = 333;

	asm volatile("1: %0 += -1; if %0 != 0 goto 1b" : "+r"(turns));
	return 0;
}

SEC(".struct_ops")
struct sched_ext_ops calibration = {
	.running = (void *)empty,
	.stopping = (void *)thousand,
	.name = "calibration",
};
