# Everything a person needs to do with Hotspan. `make help` lists it.

CARGO ?= cargo
STORE ?= .hotspan
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

.PHONY: help run build test test-rust test-ui test-clients test-clients-quick check bench bench-profiler stress test-aarch64 fuzz clean ui test-page chromium python screenshots

help: ## List the commands
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## Build Hotspan, start it with the demo shop and print its address
	@$${CARGO_TARGET_DIR:-target}/quick/hotspan demo --store $(STORE)

build: ui ## Build the optimised binary with the web page inside
	$(CARGO) build --profile quick -p hotspan

ui: ui/dist/index.html ## Build the web page

ui/dist/index.html: ui/package-lock.json $(shell find ui/src ui/index.html ui/vite.config.ts 2>/dev/null)
	cd ui && npm ci --no-audit --no-fund --loglevel=error && npm run build

test: test-ui test-rust test-page test-clients-quick ## Install what the tests need and run them all

test-ui: ui
	cd ui && npm run typecheck && npm run lint && npm test

test-rust: ui python
	$(CARGO) test --workspace --quiet

test-page: test-rust chromium
	cd ui && HOTSPAN_BIN=$${CARGO_TARGET_DIR:-$(CURDIR)/target}/debug/hotspan npm run e2e

chromium:
	@ui/scripts/chromium

python:
	@tests/python

screenshots: build chromium ## Make the pictures in docs/screenshots anew, from the demo
	cd ui && HOTSPAN_BIN=$${CARGO_TARGET_DIR:-$(CURDIR)/target}/quick/hotspan npm run screenshots

NODE_TEST := node --test --test-concurrency=1
CLIENT_TESTS := $(wildcard tests/deploy/*.test.mjs tests/runbooks/*.test.mjs tests/clients/*.test.mjs)

test-clients-quick: test-rust
	cd tests && npm ci --no-audit --no-fund --loglevel=error
	HOTSPAN=$${CARGO_TARGET_DIR:-$(CURDIR)/target}/debug/hotspan $(NODE_TEST) $(CLIENT_TESTS)

test-clients: ui ## Run real services in every language and write the matrix in docs/clients.md
	$(CARGO) build -p hotspan
	CLIENTS=all HOTSPAN=$${CARGO_TARGET_DIR:-$(CURDIR)/target}/debug/hotspan $(NODE_TEST) $(wildcard tests/clients/*.test.mjs)

check: ui ## Format, lint and type-check everything, warnings denied
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) check --manifest-path fuzz/Cargo.toml
	cd ui && npm run typecheck && npm run lint

bench: build ## Run the benchmarks; figures are kept in benches/README.md
	$(CARGO) run --profile quick -p hotspan-bench -- --server $${CARGO_TARGET_DIR:-target}/quick/hotspan

bench-profiler: ## Measure what the Rust profiler costs, beside pprof and pyroscope; needs valgrind
	$(CARGO) build --release -p hotspan-profiler --features opentelemetry,tracing --example span_cost
	crates/hotspan-profiler/benches/span_cost.sh
	crates/hotspan-profiler/overhead/run

STRESS_SECONDS ?= 600
stress: ## Run the Rust profiler through a storm of signals, forks, panics and loaded libraries, for STRESS_SECONDS
	STRESS_SECONDS=$(STRESS_SECONDS) $(CARGO) test -p hotspan-profiler --test hostile a_signal_storm -- --nocapture

# The emulator has no process_vm_readv: what needs it is left out.
test-aarch64: ## Run the Rust profiler's tests for aarch64; needs that Rust target, gcc-aarch64-linux-gnu and qemu-user
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc \
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu" \
	$(CARGO) test -p hotspan-profiler --target aarch64-unknown-linux-gnu --lib --test cpu --test spans -- \
	--skip read_through_the_kernel --skip read_around_what_is_missing --skip threads_without_work

fuzz: ## Fuzz decoders and readers of queries for a bounded time
	fuzz/run

clean: ## Remove everything that was built
	$(CARGO) clean
	rm -rf ui/dist ui/node_modules
