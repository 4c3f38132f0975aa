#!/usr/bin/env bash
# Checks that the tools named as arguments are there: cargo cc gcc clang rustfmt clippy
# python3 lstopo valgrind; strip qemu busybox bpftool zstd for tests/vm; bpf-clang libelf for
# crates/scx. As root with apt-get it installs a missing tool, says so, and never asks.
# Otherwise it prints the command that installs it, and exits 1.
set -u

CARGO_AT_LEAST=1.89
# Older ones crash guests of many CPUs: tests/vm/boot.py says why.
QEMU_AT_LEAST=8.1

say() { printf '%s\n' "need: $*" >&2; }

# A tool's Debian package, if there is one.
package_of() {
    case $1 in
        cc | gcc) echo gcc libc6-dev ;;
        clang) newest_clang ;;
        python3) echo python3 ;;
        lstopo) echo hwloc ;;
        bpf-clang) echo clang-19 ;;
        libelf) echo libelf-dev zlib1g-dev ;;
        strip) echo binutils ;;
        qemu) echo qemu-system-x86 ;;
        busybox) echo busybox-static ;;
        bpftool) echo bpftool ;;
        zstd | valgrind) echo "$1" ;;
        *) return 1 ;;
    esac
}

# `clang` is the distribution's choice; without one, the newest with a version in its name.
newest_clang() {
    if apt-cache show clang >/dev/null 2>&1; then
        echo clang
    else
        apt-cache pkgnames clang- | grep -E '^clang-[0-9]+$' | sort -t- -k2n | tail -n 1
    fi
}

cargo_version() { cargo --version 2>/dev/null | awk '{ print $2 }'; }

qemu_version() { qemu-system-x86_64 --version 2>/dev/null | sed -n '1s/.*version \([0-9.]*\).*/\1/p'; }

# Is version $1 at least $2?
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

# Does the compiler find lib$1.a? Then it prints a path.
static_library() { [ -e "$("${CC:-cc}" -print-file-name="lib$1.a" 2>/dev/null)" ]; }

is_there() {
    case $1 in
        cargo) local v && v=$(cargo_version) && [ -n "$v" ] && at_least "$v" "$CARGO_AT_LEAST" ;;
        # A compiler without a C library does not count.
        cc) printf '#include <stddef.h>\nint main(void) { return 0; }\n' |
            "${CC:-cc}" -x c - -o /dev/null 2>/dev/null ;;
        clang) [ -n "${CLANG:-}" ] || compgen -c | grep -qE '^clang(-(1[4-9]|2[0-2]))?$' ;;
        # crates/scx/build.rs looks for the same.
        bpf-clang) [ -n "${SCX_CLANG:-}" ] || compgen -c | grep -qE '^clang-(19|2[0-2])$' ;;
        # Headers and static libraries: scx_reveille links them statically.
        libelf) static_library elf && static_library z &&
            printf '#include <gelf.h>\n#include <zlib.h>\n' | "${CC:-cc}" -x c -E - >/dev/null 2>&1 ;;
        rustfmt) cargo fmt --version >/dev/null 2>&1 ;;
        clippy) cargo clippy --version >/dev/null 2>&1 ;;
        qemu) local v && v=$(qemu_version) && [ -n "$v" ] && at_least "$v" "$QEMU_AT_LEAST" ;;
        # Debian has it in /usr/sbin.
        bpftool) PATH=$PATH:/usr/sbin:/sbin command -v bpftool >/dev/null 2>&1 ;;
        *) command -v "$1" >/dev/null 2>&1 ;;
    esac
}

how_to_get() {
    case $1 in
        cargo)
            local v && v=$(cargo_version)
            say "cargo ${v:+$v is too old: }version $CARGO_AT_LEAST or newer is needed;" \
                "install Rust as https://rustup.rs says, or run: rustup update stable"
            ;;
        cc) say "a C compiler with libc headers is missing; on Debian: apt-get install gcc libc6-dev" ;;
        gcc) say "gcc is missing; on Debian: apt-get install gcc" ;;
        clang) say "clang (14 to 22) is missing; on Debian: apt-get install clang" ;;
        rustfmt) say "rustfmt is missing; run: rustup component add rustfmt" ;;
        clippy) say "clippy is missing; run: rustup component add clippy" ;;
        python3) say "python3 is missing; on Debian: apt-get install python3" ;;
        lstopo) say "lstopo is missing; on Debian: apt-get install hwloc" ;;
        bpf-clang) say "clang-19 or newer is missing; on Debian: apt-get install clang-19" ;;
        libelf) say "libelf and zlib with headers are missing; on Debian: apt-get install libelf-dev zlib1g-dev" ;;
        strip) say "strip is missing; on Debian: apt-get install binutils" ;;
        qemu)
            local v && v=$(qemu_version)
            say "qemu-system-x86_64 ${v:+$v is too old: }version $QEMU_AT_LEAST or newer is needed;" \
                "on Debian: apt-get install qemu-system-x86, on Debian 12 from bookworm-backports"
            ;;
        busybox) say "busybox is missing; on Debian: apt-get install busybox-static" ;;
        bpftool | zstd) say "$1 is missing; on Debian: apt-get install $1" ;;
        *) say "$1 is missing" ;;
    esac
}

updated=no

install() {
    command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" -eq 0 ] || return 1
    package_of "$1" >/dev/null || return 1
    export DEBIAN_FRONTEND=noninteractive
    if [ "$updated" = no ]; then
        updated=yes
        apt-get update -qq </dev/null >&2 || say "apt-get update failed; using the package lists already here"
    fi
    local packages
    packages=$(package_of "$1")
    [ -n "$packages" ] || return 1
    if in_backports_only "$1"; then
        from_backports "$packages"
        return
    fi
    say "$1 is missing: installing $packages"
    # shellcheck disable=SC2086 # several packages are several words
    apt-get install -y -qq --no-install-recommends $packages </dev/null >&2
}

# Debian 12 has a QEMU that is too old, and a newer one in its backports.
in_backports_only() {
    [ "$1" = qemu ] || return 1
    local candidate
    candidate=$(apt-cache policy qemu-system-x86 | awk '$1 == "Candidate:" { print $2 }')
    ! at_least "${candidate#*:}" "$QEMU_AT_LEAST"
}

from_backports() {
    local codename
    codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    say "$1 of ${codename:-this system} is too old: installing from $codename-backports"
    "$(dirname "${BASH_SOURCE[0]}")/debian.py" install "$codename-backports" "$1" >&2
}

missing=0
for tool in "$@"; do
    if is_there "$tool"; then
        continue
    fi
    if install "$tool" && hash -r && is_there "$tool"; then
        continue
    fi
    how_to_get "$tool"
    missing=1
done
exit "$missing"
