# The face of the build: Meson does the work. Every target can be the first command after a clone
# on a bare Debian 12; what it needs is installed by name (root or sudo). `make help` lists them.
PREFIX ?= /usr/local
LIBDIR ?= lib
DESTDIR ?=
DEPS ?= tools/install-deps # `make DEPS=true` installs nothing
MESON ?= meson
MINUTES ?= 60

all: ## build the program: build/sluice
	@$(DEPS) build
	@test -f build/build.ninja || $(MESON) setup build
	@ninja -C build

demo: ## build it and watch it work
	@$(DEPS) demo
	@$(MAKE) --no-print-directory all
	@demo/demo

check: ## all tests, with sanitizers and valgrind; tests/run-all --help for parts of it
	@$(DEPS) check
	@tests/run-all

valgrind: ## every test, C and end-to-end, under valgrind
	@$(DEPS) check
	@tests/run-all --only valgrind --full

bench: ## measure against bare loops of SQL; bench/run --save keeps the result
	@$(DEPS) bench
	@$(MAKE) --no-print-directory all
	@bench/run

bench-peers: ## measure against other queues on PostgreSQL, which it installs; PEERS="--only pg-boss --rounds 1"
	@$(DEPS) peers
	@$(MAKE) --no-print-directory all
	@bench/peers/run $(PEERS)

bench-peers-kafka: ## against Debezium, from one table into one Kafka; PEERS="--rounds 1 --save"
	@$(DEPS) bench-peers-kafka
	@$(MAKE) --no-print-directory all
	@bench/peers/kafka $(PEERS)

torture: ## an hour of kills, pauses and restarts; MINUTES=60 SEED=1 ONLY=lanes/ring,guard
	@$(DEPS) check
	@tests/torture/torture.py --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only $(ONLY))

torture-once: ## at most once: 200,000 messages, 100 kills, 20 shutdowns of the database; ONCE="--strategy guard"
	@$(DEPS) check
	@$(MAKE) --no-print-directory all
	@tests/torture/once.py $(ONCE)

torture-kafka: ## to three Kafka brokers: 200,000 messages, 50 kills, 20 pauses, 10 brokers killed; KAFKA="--fence kafka"
	@$(DEPS) check
	@tests/torture/kafka.py $(KAFKA)

# LIBDIR is said because Meson's guess depends on what else is installed: without dpkg-dev it is
# lib64, where nothing on Debian looks.
install: all ## to DESTDIR/PREFIX
	@$(MESON) configure build -Dprefix=$(PREFIX) -Dlibdir=$(LIBDIR)
	@DESTDIR=$(DESTDIR) $(MESON) install -C build
	@test -n "$(DESTDIR)" || ldconfig 2>/dev/null || true

fmt: ## format all C files
	@$(DEPS) fmt
	@git ls-files -z '*.c' '*.h' | xargs -0 clang-format -i

clean: ## remove every build folder
	@rm -rf build build-*

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

.PHONY: all demo check valgrind bench bench-peers bench-peers-kafka torture torture-once torture-kafka install fmt clean help
