/* SPDX-License-Identifier: GPL-2.0-or-later */
#define bpf_core_enum_value(type, name) (name)
#define bpf_core_field_exists(field) 1
