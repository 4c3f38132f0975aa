/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A plugin of QEMU that counts cache lines which move to CPUs 0 and 1, of emulated CPUs with caches of
 * unlimited size: reads and writes of a line whose newest version the other of the two has, and those
 * whose newest version only further CPUs have. Counts begin and end where the guest executes the two
 * no-ops of exchange.c; each such window is written to out=FILE as `window` and a line per
 * instruction that moved any: address, both counts. A write to a line that both CPUs have moves
 * nothing, and is not counted.
 *
 * QEMU's emulated CPUs must be threads of their own (tcg,thread=multi): otherwise callbacks are told
 * the CPU for which an instruction was translated, not the one that executes it. Debian does not
 * package qemu-plugin.h; what is declared here is documented in QEMU's "TCG Plugins", API version 4.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;
enum { NO_REGISTERS = 0, READS_AND_WRITES = 3 };

int qemu_plugin_version = 4;
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id,
					   void (*cb)(uint64_t, struct qemu_plugin_tb *));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to, size_t len);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
				      void (*cb)(unsigned, uint32_t, uint64_t, void *), int flags,
				      int accesses, void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    void (*cb)(unsigned, void *), int flags, void *data);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(uint32_t info, uint64_t address);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *hw);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *hw);
bool qemu_plugin_mem_is_store(uint32_t info);

enum { LINE_SHIFT = 6, PLACES = 1 << 20 };
/* 4 GiB of guest memory. */
#define LINES (UINT64_C(4) << (30 - LINE_SHIFT))

/* For each line, the CPUs that have its newest version, as bits. */
static uint8_t *holders;

enum { PAIR = 3 };

struct place {
	uint64_t address, moved, from_further;
};
static struct place *places;
static bool counting;
static char lock;
static FILE *out;

static struct place *place(uint64_t address)
{
	uint32_t i = (uint32_t)(address * UINT64_C(0x9E3779B97F4A7C15) >> 44) % PLACES;

	while (places[i].address && places[i].address != address)
		i = (i + 1) % PLACES;
	places[i].address = address;
	return &places[i];
}

static void access_line(unsigned cpu, uint32_t info, uint64_t virtual, void *instruction)
{
	struct qemu_plugin_hwaddr *hw = qemu_plugin_get_hwaddr(info, virtual);
	uint8_t me = (uint8_t)(1u << cpu), *held;
	bool store = qemu_plugin_mem_is_store(info);
	uint64_t line;

	if (!hw || qemu_plugin_hwaddr_is_io(hw) || cpu > 7)
		return;
	line = qemu_plugin_hwaddr_phys_addr(hw) >> LINE_SHIFT;
	if (line >= LINES)
		return;
	held = &holders[line];
	if (store ? *held == me : *held & me)
		return;
	while (__atomic_test_and_set(&lock, __ATOMIC_ACQUIRE))
		;
	if (counting && me & PAIR && *held && !(*held & me)) {
		struct place *at = place((uint64_t)(uintptr_t)instruction);

		(*held & PAIR ? at->moved++ : at->from_further++);
	}
	*held = store ? me : *held | me;
	__atomic_clear(&lock, __ATOMIC_RELEASE);
}

static void begin(unsigned cpu, void *unused)
{
	(void)cpu, (void)unused;
	memset(places, 0, PLACES * sizeof(*places));
	counting = true;
}

static void end(unsigned cpu, void *unused)
{
	(void)cpu, (void)unused;
	counting = false;
	fputs("window\n", out);
	for (size_t i = 0; i < PLACES; i++)
		if (places[i].address)
			fprintf(out, "%llx %llu %llu\n", (unsigned long long)places[i].address,
				(unsigned long long)places[i].moved,
				(unsigned long long)places[i].from_further);
	fflush(out);
}

static void translate(uint64_t id, struct qemu_plugin_tb *tb)
{
	(void)id;
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		void *address = (void *)(uintptr_t)qemu_plugin_insn_vaddr(insn);
		unsigned char code[7];
		bool mark = qemu_plugin_insn_data(insn, code, sizeof(code)) == sizeof(code) &&
			    !memcmp(code, "\x0f\x1f\x80", 3) && !memcmp(code + 4, "LVR", 3);

		if (mark)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, code[3] == 1 ? begin : end,
							       NO_REGISTERS, NULL);
		qemu_plugin_register_vcpu_mem_cb(insn, access_line, NO_REGISTERS,
						 READS_AND_WRITES, address);
	}
}

int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv)
{
	(void)info;
	if (argc != 1 || strncmp(argv[0], "out=", 4) != 0)
		return 1;
	out = fopen(argv[0] + 4, "w");
	holders = calloc(LINES, 1);
	places = calloc(PLACES, sizeof(*places));
	if (!out || !holders || !places)
		return 1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	return 0;
}
