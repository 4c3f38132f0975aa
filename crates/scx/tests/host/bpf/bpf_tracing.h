/* SPDX-License-Identifier: GPL-2.0-or-later */
#define BPF_PROG(name, args...) name(unsigned long long *ctx, ##args)
