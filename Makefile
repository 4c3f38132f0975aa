# make demo      build Reveille and run the SIS_SHORT study
# make install   install commands, man pages, completions and, after make scx, scx_reveille with
#                its systemd unit: PREFIX=/usr/local, DESTDIR= for packagers
# make uninstall remove them, given the same PREFIX
# make test      run everything that must pass before a change is merged
# make test-ray  sweep and plan on a local Ray cluster, and run the notebooks; needs a package index
# make test-vm   boot a kernel with sched_ext in QEMU and run tests/vm in it
# make bench     measure the simulator's speed
# make count     count its instructions per activation; fails if they have become 3% more
# make scx       build scx_reveille, the scheduler for kernels with sched_ext
# make test-scx  its lints, and its tests that need no such kernel
# make cost-vm   count a wakeup's instructions: scx_reveille, and others for comparison
# make wheel     build the Python package with the command in it, in target/wheels
# make test-python  test it in fresh environments of the Pythons here
# make clean     remove what was built
#
# As root on Debian these install missing tools with apt-get; otherwise they print what to
# install (scripts/need.sh). Everything is built in ./target.

export CARGO_TARGET_DIR := $(CURDIR)/target
# Where rustup puts cargo, for shells without a profile.
export PATH := $(HOME)/.cargo/bin:$(PATH)

reveille := target/release/reveille
scx_reveille := target/release/scx_reveille

PREFIX ?= /usr/local
DESTDIR ?=
root := $(DESTDIR)$(PREFIX)
service := lib/systemd/system/scx_reveille.service

.PHONY: demo install uninstall test test-vm bench count clean wheel test-python test-ray build format lint msrv dependencies unit study hwloc prometheus scx test-scx cost-vm
.NOTPARALLEL:

demo: build
	$(reveille) study sis-short --html report.html
	@printf '\nplots of the same runs: %s\n' '$(CURDIR)/report.html'

build:
	@scripts/need.sh cargo cc
	cargo build --release --locked --bin reveille

# Under sudo nothing is built: what is there is installed, so that ./target stays its owner's.
install:
	@[ -n "$$SUDO_USER" ] && [ -x $(reveille) ] || $(MAKE) --no-print-directory build
	install -D -m 755 $(reveille) '$(root)/bin/reveille'
	rm -f '$(root)'/share/man/man1/reveille-*.1
	umask 022; $(reveille) generate '$(root)/share'
	@if [ -x $(scx_reveille) ]; then $(MAKE) --no-print-directory install-scx; fi

.PHONY: install-scx
install-scx:
	@[ -x $(scx_reveille) ] || { echo '$(scx_reveille) is missing; build it with: make scx' >&2; exit 1; }
	install -D -m 755 $(scx_reveille) '$(root)/bin/scx_reveille'
	umask 022; $(scx_reveille) generate '$(root)/share'
	install -D -m 644 crates/scx/README.md '$(root)/share/doc/scx_reveille/README.md'
	install -D -m 644 LICENSE '$(root)/share/doc/scx_reveille/LICENSE'
	sed -i -E 's|\[([^]]*)\]\(\.\./[^)]*\)|\1|g' '$(root)/share/doc/scx_reveille/README.md'
	install -D -m 644 crates/scx/scx_reveille.service '$(root)/$(service)'
	sed -i 's|/usr/local/|$(PREFIX)/|' '$(root)/$(service)'

uninstall:
	cd '$(root)' && rm -f bin/reveille bin/scx_reveille $(service) \
		share/man/man1/reveille.1 share/man/man1/reveille-*.1 \
		share/man/man1/scx_reveille.1 share/man/man1/scx_reveille-*.1 \
		$(foreach name,reveille scx_reveille,share/bash-completion/completions/$(name) \
		share/zsh/site-functions/_$(name) share/fish/vendor_completions.d/$(name).fish) \
		share/doc/scx_reveille/README.md share/doc/scx_reveille/LICENSE
	@rmdir '$(root)/share/doc/scx_reveille' 2>/dev/null || true

test: format lint msrv dependencies unit study count hwloc prometheus test-python test-ray
	@printf '\nall tests passed\n'

format:
	@scripts/need.sh cargo rustfmt
	cargo fmt --all --check

lint:
	@scripts/need.sh cargo cc clippy
	cargo clippy --workspace --exclude scx_reveille --all-targets --locked -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --workspace --exclude scx_reveille --no-deps --locked

msrv:
	@scripts/need.sh cargo cc
	scripts/check-msrv.sh

dependencies:
	@scripts/need.sh cargo cc
	scripts/check-dependencies.sh

# The dev profile has debug assertions: the simulator's invariants are checked. gcc and
# clang compile policy/ with all warnings as errors, and clang compiles it for BPF.
# Properties are tested on the same random cases each time, so that a new failure comes from a
# change; PROPTEST_RNG_SEED=N tries others.
unit: export PROPTEST_RNG_SEED ?= 1
unit: export INSTA_UPDATE := no
unit:
	@scripts/need.sh cargo cc gcc clang
	cargo test --workspace --exclude scx_reveille --locked --no-fail-fast

study: build
	@scripts/need.sh python3
	scripts/check-study.sh $(reveille)
	scripts/check-docs.sh $(reveille)

hwloc: build
	@scripts/need.sh python3
	scripts/e2e-hwloc.sh $(reveille)

prometheus: build
	@scripts/need.sh python3
	scripts/e2e-prometheus.sh $(reveille)

wheel:
	@scripts/need.sh cargo cc python3
	scripts/wheel.sh

test-python:
	@scripts/need.sh cargo cc python3
	scripts/test-python.sh

# VM=--if-possible: without QEMU or a kernel, say so and succeed. The script makes scx and
# test-scx itself, once it knows that their tools are there.
test-vm: build
	tests/vm/run.sh $(VM) $(reveille) $(scx_reveille)

bench:
	@scripts/need.sh cargo cc
	cargo bench --locked -p reveille-sim --bench activations
	@printf '\nas JSON: %s\n\n' '$(CURDIR)/target/bench.json'
	@$(MAKE) --no-print-directory count

# Instructions are counted by valgrind, which takes minutes. COUNT=--write commits to them, and
# COUNT=--table prints them by mechanism, which takes the line numbers that builds otherwise lack.
COUNT ?= --check
count: export CARGO_PROFILE_BENCH_DEBUG := $(if $(filter --table,$(COUNT)),line-tables-only,none)
count:
	@scripts/need.sh cargo cc valgrind
	cargo bench --locked -p reveille-sim --bench activations --no-run
	scripts/count-instructions.sh \
		"$$(ls -t target/release/deps/activations-* | grep -v '\.d$$' | head -n 1)" $(COUNT)

# Built separately: only this crate needs clang for BPF and libelf.
scx:
	@scripts/need.sh cargo cc bpf-clang libelf
	cargo build --release --locked -p scx_reveille

test-scx:
	@scripts/need.sh cargo cc bpf-clang libelf clippy
	cargo clippy -p scx_reveille --all-targets --locked -- -D warnings
	cargo test -p scx_reveille --locked --no-fail-fast

test-ray:
	@scripts/need.sh cargo cc python3
	scripts/test-ray.sh

# Takes half an hour; COST= takes options of tests/vm/cost.sh, such as --only v6.4,scx_bpfland.
# --peers builds other projects' schedulers from the crate registry.
COST ?= --peers --json target/vm/cost.json
cost-vm: scx
	tests/vm/cost.sh $(COST) $(scx_reveille)

clean:
	cargo clean
	rm -f report.html
