/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What bpf/ takes of libbpf, for programs of the host. The test has the functions. */
#ifndef REVEILLE_HOST_BPF_HELPERS_H
#define REVEILLE_HOST_BPF_HELPERS_H

#define SEC(name)
#define __ksym
#define __arg_nonnull
#define __weak __attribute__((weak))
#define __noinline __attribute__((noinline))
#define __always_inline inline __attribute__((always_inline))
#define __uint(name, value) int(*name)[value]
#define __type(name, type) typeof(type) *name

#define bpf_ksym_exists(symbol) ((const void *)(symbol) != NULL)
#define bpf_for(i, from, to) for (i = (from); i < (to); i++)
/* Every queue of tasks is empty. */
#define bpf_for_each(type, item, ...) \
	for (struct bpf_iter_##type ___it = {}; (void)&___it, (item) = NULL, 0;)

void *bpf_map_lookup_elem(void *map, const void *key);
long bpf_map_update_elem(void *map, const void *key, const void *value, u64 flags);
void *bpf_task_storage_get(void *map, void *task, void *value, u64 flags);
void bpf_spin_lock(struct bpf_spin_lock *lock);
void bpf_spin_unlock(struct bpf_spin_lock *lock);
long bpf_timer_start(struct bpf_timer *timer, u64 in_ns, u64 flags);
u64 bpf_ktime_get_ns(void);
u64 bpf_jiffies64(void);
long bpf_probe_read_kernel(void *to, u32 size, const void *from);
u32 bpf_get_smp_processor_id(void);
struct task_struct *bpf_get_current_task_btf(void);
long bpf_task_pt_regs(struct task_struct *task);
void *bpf_per_cpu_ptr(const void *of, u32 cpu);
void *bpf_this_cpu_ptr(const void *of);
long bpf_ringbuf_output(void *ring, const void *data, u64 size, u64 flags);

#endif
