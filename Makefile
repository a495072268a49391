# `make demo` and `make test` are all that a new user needs; both install what is missing and say so.

PROFILE ?= release
BIN = target/$(if $(filter dev,$(PROFILE)),debug,$(PROFILE))/bulla
INPUT ?=
# All of them have what tests built already; one alone is built anew with fewer features.
PACKAGES ?= --package bulla-cli

.PHONY: torture-failover demo demo-follow demo-proxy demo-c demo-cpp demo-python wheel install header test lint style features size deny advisories bench bench-follow bench-proxy torture simulate sweep fuzz corpus interop interop-follow interop-proxy interop-rekor interop-tools spark vectors setup clean

## The main job, end to end, on a log in ./demo. INPUT=path takes your own access log (combined format).
demo: setup
	cargo build --quiet --profile $(PROFILE) $(PACKAGES)
	@scripts/demo.sh $(BIN) "$(INPUT)"

## The proxy before a server of its own, under load, on a log in ./demo-proxy.
demo-proxy: setup
	cargo build --quiet --profile $(PROFILE) $(PACKAGES)
	@scripts/demo-proxy.sh $(BIN)

## Files followed while they are rotated and the follower is killed, on a log in ./demo-follow.
demo-follow: setup
	cargo build --quiet --profile $(PROFILE) $(PACKAGES)
	@scripts/demo-follow.sh $(BIN)

## A program in C: built against the library as `make install` installs it; it appends, queries, proves and checks.
demo-c: setup
	@scripts/demo-c.sh c

## The same in C++.
demo-cpp: setup
	@scripts/demo-c.sh cpp

## A program in Python, with the wheel as it is installed.
demo-python: setup
	@scripts/demo-python.sh

## The wheel for Python, into target/wheels: `pip install target/wheels/bulla_audit-*.whl`.
wheel: setup
	@rm -f target/wheels/bulla_audit-*.whl
	.venv/bin/maturin build --quiet --release --manifest-path crates/bulla-python/Cargo.toml --interpreter .venv/bin/python --out target/wheels

## The command, its manual pages, and the library for C and C++ with its headers and pkg-config file: into PREFIX.
PREFIX ?= /usr/local
DESTDIR ?=
install:
	cargo build --quiet --release --package bulla-cli --package bulla-c
	@scripts/install.sh target/release "$(DESTDIR)" "$(PREFIX)"

## The header for C, written anew from the crate.
header:
	BULLA_WRITE_HEADER=1 cargo test --quiet --package bulla-c --test all -- header::

## All tests, each with a time limit: a quarter of an hour, or BULLA_TEST_LIMIT seconds.
test: setup
	cargo test --workspace
	@grep -qs ' avx512_vbmi2' /proc/cpuinfo || echo "not tested: the lanes of AVX-512, which this processor has not got; their kernels were, over plain ones"

## What a change must pass besides the tests.
lint: style
	cargo clippy --workspace --all-targets -- --deny warnings
	RUSTDOCFLAGS="--deny warnings" cargo doc --workspace --no-deps

## What of it compiles nothing.
style:
	python3 scripts/layers.py
	cargo fmt --all --check

## What is left out where features are off: the command without Parquet, the library for C that only appends. After a change of them.
features:
	cargo clippy -p bulla-cli --no-default-features --no-deps -- --deny warnings
	cargo clippy -p bulla-c --no-default-features -- --deny warnings
	cargo test --quiet -p bulla-http --no-default-features
	cargo test --quiet -p bulla-crypto --no-default-features --lib ml_dsa

## How large the library for C is that only appends: after a change of its dependencies or of the release profile.
size:
	cargo build --quiet --profile small --package bulla-c --no-default-features
	@scripts/size.sh target/small/libbulla_c.so

## Licences, bans and sources of everything that is linked: after each change of a dependency.
deny: cargo-deny
	cargo deny check licenses bans sources

## What is known of holes in what is linked, and which of it was withdrawn. Fetches the RustSec database from GitHub.
advisories: cargo-deny
	cargo deny check advisories

.PHONY: cargo-deny
cargo-deny:
	@command -v cargo-deny >/dev/null || { echo "installing cargo-deny"; cargo install --locked --debug cargo-deny; }

## A short form of all measurements on this machine, in a table; benchmarks/README.md has the long one.
bench:
	@mkdir -p target
	cargo build --quiet --release $(PACKAGES)
	cargo run --quiet --release -p bulla-bench -- all --short --place target $(if $(INPUT),--access $(INPUT))

## The proxy before a Redis server: beside HAProxy, and by GDPRbench's roles; in short, too. Installs both servers where they are missing.
bench-proxy: setup
	@mkdir -p target
	cargo build --quiet --release $(PACKAGES)
	cargo run --quiet --release -p bulla-bench -- proxy --commands 12000 --seconds 1 --rounds 3 --place target
	cargo run --quiet --release -p bulla-bench -- gdprbench --rounds 1 --place target

## What following files costs: beside a pipe, live, and with ten thousand files. INPUT=path is an access log.
bench-follow:
	cargo build --quiet --release --package bulla-cli
	python3 -B scripts/bench-follow.py target/release/bulla $(or $(INPUT),vectors/access/access.log)

# Of the first six that follow, all but the suites of others are what `make test` has in short. What their last runs found, benchmarks/long-runs.md has.

## The SIGKILL loops: a thousand rounds of the engine's and the vault's, two thousand of following.
torture: setup
	cargo test --workspace --no-run
	BULLA_TORTURE_ROUNDS=2000 BULLA_TEST_LIMIT=86400 scripts/record.sh torture-follow cargo test -p bulla-cli --test all -- follow::killed_anywhere --nocapture
	BULLA_TORTURE_ROUNDS=1000 BULLA_TEST_LIMIT=86400 scripts/record.sh torture cargo test --workspace --test all -- crash::kill kill::what_was_told --nocapture

## A log on several paths, on file systems that fill up, break or go away while it is written. Needs root, or a user namespace for some.
torture-failover:
	cargo build --quiet --release --package bulla-cli
	scripts/record.sh torture-failover python3 -B scripts/failover.py target/release/bulla

## The simulator on so many seeds, from SEED_FROM on, of which `make test` has the first thousand. A night has half a million:
## `make simulate SEEDS=500000 SEED_FROM=10000`. One alone, with all that happens: `BULLA_SIMULATE_SEED=n cargo test -p bulla --test all -- simulate::seeds --nocapture`.
SEEDS ?= 10000
SEED_FROM ?= 0
simulate: setup
	cargo test --package bulla --test all --no-run
	BULLA_SIMULATE_SEEDS=$(SEEDS) BULLA_SIMULATE_FROM=$(SEED_FROM) BULLA_TEST_LIMIT=86400 scripts/record.sh simulate cargo test --package bulla --test all -- simulate:: --nocapture

## All tests, with every damaged byte at every level, and every crash point in every way that a disk may keep it.
sweep: setup
	cargo test --workspace --profile sweep --no-run
	BULLA_SWEEP=full BULLA_TEST_LIMIT=86400 scripts/record.sh sweep cargo test --workspace --profile sweep --no-fail-fast -- --include-ignored --show-output

## Every fuzz target for so many seconds.
SECONDS_EACH ?= 60
fuzz:
	scripts/record.sh fuzz scripts/fuzz.sh $(SECONDS_EACH)

## The seeds of the fuzz targets, made anew from the vectors and from a small log: after a change of the format.
corpus:
	rm -rf target/corpus && mkdir -p target/corpus
	cargo build --quiet --package bulla --example append
	cd target/corpus && ../debug/examples/append > /dev/null
	python3 -B fuzz/make_corpus.py target/corpus/audit

## The command and the second reader (interop/), on logs, proofs and columns that are changed at random, so many rounds; then other people's
## tools on logs and proofs; then the proxy.
ROUNDS ?= 5000
SEED ?= 1
interop: setup
	cargo build --quiet --profile $(PROFILE) $(PACKAGES)
	scripts/record.sh interop .venv/bin/python -B interop/fuzz.py $(BIN) --rounds $(ROUNDS) --seed $(SEED)
	$(MAKE) interop-tools
	$(MAKE) interop-rekor
	$(MAKE) interop-proxy

## Logs and proofs under other people's tools: age, tlog-scales, aics-witness, Go's sumdb, Tessera's fsck; all of them, or those named. Needs Go
## 1.25 or newer, and builds what is in Go into target/interop-tools.
interop-tools: setup
	cargo build --quiet --profile $(PROFILE) $(PACKAGES)
	scripts/record.sh interop-tools .venv/bin/python -B interop/tools/run.py $(BIN) $(SUITES)

## `bulla anchor` with a Rekor v2 of its own, of the release that interop/rekor/go.mod pins. Needs Go and openssl.
interop-rekor:
	cargo build --quiet --profile $(PROFILE) $(PACKAGES)
	scripts/record.sh interop-rekor python3 -B interop/rekor/run.py $(BIN)

## The proxy under suites and clients of other projects, and before Valkey: all of them, or those named. Needs Debian 12, Go, Node.js and
## Maven; what the suites are is installed into target/interop.
SUITES ?=
interop-proxy: setup
	cargo build --quiet --profile $(PROFILE) $(PACKAGES)
	scripts/record.sh interop-proxy python3 -B scripts/interop/run.py $(BIN) $(SUITES)

## Files of other programs, followed while these write and rotate them and the follower is killed: logrotate, rsyslog, PostgreSQL, sshd, nginx,
## dpkg, auditd; all of them, or those named. As root, on Debian 12; installs what is missing.
interop-follow: setup
	cargo build --quiet --profile $(PROFILE) $(PACKAGES)
	scripts/record.sh interop-follow python3 -B interop/follow/run.py $(BIN) $(SUITES)

## Parquet exports as Spark reads them at its defaults. Installs a Java runtime, and Spark into .venv-spark.
spark: setup
	@scripts/spark.sh
	cargo test --package bulla-cli --test all --no-run
	BULLA_SPARK_PYTHON=$(CURDIR)/.venv-spark/bin/python scripts/record.sh spark cargo test --package bulla-cli --test all -- formats:: --nocapture

## The known answers, made anew by their independent scripts.
vectors:
	python3 vectors/access/make.py
	python3 vectors/events/make.py
	python3 vectors/personal/make.py
	python3 vectors/proof/make.py
	python3 vectors/seal/make.py
	python3 vectors/vault/make.py
	.venv/bin/python vectors/witness/make.py

setup:
	@scripts/setup.sh

clean:
	cargo clean
	rm -rf demo demo-follow demo-proxy demo-c demo-cpp demo-python .venv .venv-spark
