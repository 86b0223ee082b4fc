# `make` lists the targets. They need only Go, make and git. They use Postgres
# and a C compiler (for the race detector) if these are installed.
SHELL := /bin/bash
# One set of flags for the program and the tests, so that each package is compiled
# once. Only the race detector needs a C compiler, and a build of its own.
export GOFLAGS := $(filter-out -trimpath,$(GOFLAGS)) -trimpath
export CGO_ENABLED := 0

GOLANGCI_VERSION := v2.15.0
ACTIONLINT_VERSION := v1.7.7
TOOLS := $(CURDIR)/bin/tools
# The packages that take longest come first, so that no core idles at the end.
PACKAGES := ./adapters/storage $(addprefix ./test/suites/,e2e console docspage simulation sandbox scenarios) ./...

# gotestsum runs go test. It prints each package when it ends and the output of each
# failure at once and again at the end. go test ends a package after TIMEOUT, and says
# which tests were running. An hour is for a machine that other programs keep busy.
GOTESTSUM := go run gotest.tools/gotestsum@v1.13.0
TIMEOUT ?= 60m
RESULTS ?= bin
# $(call tests,arguments of go test): run tests. If they pass, name the reasons for
# tests that did not run, and the slowest tests. Tables for debuggers (-s) would take half the
# time of the linker, which runs once for each package.
define tests
@mkdir -p $(RESULTS)
@$(GOTESTSUM) --format pkgname-and-test-fails --format-icons text --hide-summary skipped --jsonfile $(RESULTS)/$@.json -- -ldflags=-s -timeout $(TIMEOUT) $(1)
@$(if $(filter race plain,$@),,go run ./test/tools/skipped $(RESULTS)/$@.json)
@echo "The slowest tests ($(RESULTS)/$@.json has the output of all):"; $(GOTESTSUM) tool slowest --threshold 5s --num 15 --jsonfile $(RESULTS)/$@.json
endef

# make lint vets all packages, and make test does. To vet them takes a third of the time
# of make unit.
UNVETTED := -vet=off
# These packages depend on time, kill processes, measure or build releases. make
# check runs a short form of them, and make prove the long form of test/suites/prove.
LONG := $(addprefix ./test/,suites/prove tools/release tools/bench)
# Many tests of make check wait for time or for Postgres, so one package more than there are
# cores runs at once. But all share the server of TEST_POSTGRES_DSN, which has 100 connections
# unless somebody wants more, and a test has about six. So a machine with many cores runs five
# packages at once, with four tests each.
CORES := $(shell getconf _NPROCESSORS_ONLN)
AT_ONCE = -p $$(( $(CORES) < 4 ? $(CORES) + 1 : 5 )) -parallel $$(( $(CORES) < 4 ? $(CORES) : 4 ))
# The race detector needs a C compiler. Without one, make race says so and runs
# the tests without the detector. SQLite itself is left out, with its C library: their code is
# generated from C, has locks of its own, and takes twice as long under the detector and its check of
# pointers.
UNRACED := $(foreach library,sqlite/lib libc memory,"-gcflags=modernc.org/$(library)=-race=false -d=checkptr=0")
RACE := $(if $(shell command -v $${CC:-cc} 2>/dev/null),-race $(UNRACED))
CGO := $(if $(RACE),1,0)
# Without the detector: packages that start no goroutine, and the tests that start the
# service as a program of its own, which is built as it is released. The detector would
# see nothing but the tests. The longest comes first. BOTH run with and without it: with the
# detector the simulation plays a few banks, and nothing counts allocations.
BOTH := ./test/suites/simulation ./adapters/httpapi
PLAIN := ./test/suites/prove ./test/suites/e2e $(addprefix ./test/suites/,docspage docs architecture compat) $(BOTH) ./test/tools/... \
  ./domain/... ./application/bookfile ./application/backoffice $(addprefix ./adapters/,settings guide httpapi/openapi httpapi/strictjson)

# "make module PATH=..." would replace the PATH of every command. So the value
# becomes MODULE, and PATH leads to the few tools that this target needs.
ifeq ($(origin PATH),command line)
MODULE := $(PATH)
override PATH := /usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin
endif

.DEFAULT_GOAL := help
.PHONY: help
help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/bankingapi, one static file (seconds; the first time minutes)
	@$(if $(wildcard bin/bankingapi),,echo "The first build takes some minutes if Go's caches are empty. It lists each package that it compiles." >&2)
	go build $(if $(wildcard bin/bankingapi),,-v) -o bin/bankingapi ./cmd/bankingapi

.PHONY: run
run: build ## start the service on SQLite with a demo book, in ./data (seconds)
	@exec bin/bankingapi serve --demo

# The requests are those of the README. Each answer gets a line of its own.
CURL := curl() { command curl -sS "$$@" && echo; }

.PHONY: try
try: ## send both requests of the README to the service of make run (seconds)
	@{ echo '$(CURL)'; awk '/^curl /,/}]}.$$/' README.md; } | sh

# It names a day of the next month, so that it never grows old.
.PHONY: try-later
try-later: ## send a sale for a later day to the service of make run (seconds)
	@later=$$(date -d '+30 days' +%F 2>/dev/null || date -v+30d +%F); \
	{ echo '$(CURL)'; awk '/^curl .*BuyFund/,/}]}.$$/' README.md; } | sed -e "s/demo-sale-1/demo-later-$$(date +%s)/" \
	  -e "s/\"FundAmount\":12.5/\"FundAmount\":1,\"SelectedTransactionDate\":\"$$later\"/" | sh

.PHONY: sandbox
sandbox: build ## start a sandbox for partners: own book, clock to move, faults; in ./sandbox (seconds)
	@exec bin/bankingapi serve --sandbox

.PHONY: dev
dev: ## like make run, and start again whenever a source file changes (seconds)
	@mkdir -p bin; trap 'kill $$pid 2>/dev/null; exit 0' INT TERM; while :; do \
	  touch bin/.changed; pid=; if $(MAKE) --no-print-directory build; then bin/bankingapi serve --demo & pid=$$!; fi; \
	  until test -n "$$(find adapters application bootstrap cmd domain go.mod -newer bin/.changed -type f -print -quit)"; do sleep 1; done; \
	  test -z "$$pid" || { kill $$pid; wait $$pid; }; done

# The longest come first. Some tests of the sandbox wait for slow answers, so four run at
# once. Left to make test are postgres, which needs a server, and tables, which has one
# test and takes long to compile.
UNIT = $(addprefix ./test/suites/,sandbox console scenarios) ./adapters/storage ./domain/... ./application/... \
  $$(go list ./adapters/... | grep -vE '/storage/(postgres|tables)$$')

# The times in this list are those of two quiet cores with warm caches.
.PHONY: unit
unit: ## run the fast tests on SQLite, without a browser (30 seconds)
	$(call tests,-short -parallel 4 $(UNVETTED) $(UNIT))

.PHONY: test
test: ## run the tests that everybody needs (5 minutes; Postgres: TEST_POSTGRES_DSN, or server binaries on this machine)
	$(call tests,$(if $(TEST_POSTGRES_DSN),$(AT_ONCE)) $$(go list $(PACKAGES) | grep -vxF "$$(go list $(LONG))"))

.PHONY: check
check: ## run everything that CI runs; fail if make generate changes a file (15 minutes)
	@set -e; state() { git status --porcelain --untracked-files=all; git diff; }; before=$$(state); \
	$(MAKE) --no-print-directory lint race plain executed benchmarks host fuzz FUZZTIME=3000x; \
	$(MAKE) --no-print-directory generate; test "$$before" = "$$(state)" || { \
	  git status --short; echo "make check changed files. If make generate wrote them, commit them."; exit 1; }

# make race and make plain leave out different tests. This is what both leave out.
.PHONY: executed
executed:
	@go run ./test/tools/skipped $(RESULTS)/race.json $(RESULTS)/plain.json

.PHONY: race
race: export CGO_ENABLED := $(CGO)
race: export GOGC := 400 # the detector makes pools forget, so the tests make much garbage
race: ## run the tests in which the service runs inside the tests, with the race detector (6 minutes)
	@$(if $(RACE),,echo "make race: no C compiler, so the tests run without the race detector")
	$(call tests,$(AT_ONCE) $(RACE) $(UNVETTED) $$(go list $(PACKAGES) | grep -vxF "$$(go list $(filter-out $(BOTH),$(PLAIN)))"))

.PHONY: plain
plain: ## run the tests that make race leaves out, in their short forms (7 minutes)
	$(call tests,$(AT_ONCE) $(UNVETTED) $(PLAIN))

# Tests write the files that they compare: golden files, documents, examples, help
# texts. The OpenAPI document comes first, because other packages embed it. A second
# pass writes what follows from the first one. In the suites only the files with
# such tests run.
GOLDEN = git grep -l '/test/kit/golden"' -- '*_test.go'
.PHONY: generate
generate: ## write every generated file (1 minute)
	@update() { go test -short -count=1 -timeout $(TIMEOUT) "$$@" -update; }; \
	tests=$$($(GOLDEN) | grep ^test/ | xargs grep -ho '^func Test[A-Za-z0-9_]*' | cut -c6- | paste -sd '|'); \
	pass() { update ./adapters/httpapi/openapi; update ./adapters/httpapi/docs && \
	  update $$($(GOLDEN) | grep -v ^test/ | xargs -n1 dirname | sort -u | sed s,^,./,) && \
	  update -run "^($$tests)$$" $$($(GOLDEN) | grep ^test/ | xargs -n1 dirname | sort -u | sed s,^,./,); }; \
	pass >/dev/null 2>&1 || pass

# What this version writes, so that later ones are tested with it: a book of each engine, its
# trail, receipts and settings. After the release of a version its fixtures never change.
.PHONY: fixtures
fixtures: ## write the fixtures of this version, before its release; needs Postgres and pg_dump (1 minute)
	REQUIRE_POSTGRES=1 go test -count=1 ./test/suites/compat -run '^TestWriteFixtures$$' -args -fixtures

.PHONY: lint
lint: $(TOOLS)/golangci-lint ## format, vet, lint, tidy (1 minute)
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo "run: gofmt -w"; exit 1; }
	$(TOOLS)/golangci-lint run --allow-parallel-runners
	go mod tidy -diff
	GOFLAGS= go run github.com/rhysd/actionlint/cmd/actionlint@$(ACTIONLINT_VERSION)

$(TOOLS)/golangci-lint:
	GOBIN=$(TOOLS) GOFLAGS= go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)

.PHONY: bench
BENCH ?= -out bench-results
bench: ## compare the service with its database alone; BENCH="-engine sqlite" passes options (10 minutes)
	go run ./test/tools/bench $(BENCH)

.PHONY: host
host: ## build and run programs of another module that embed the service (30 seconds)
	cd test/suites/host && export GOFLAGS=-trimpath && go run . && go run ./memory

# A number of inputs (FUZZTIME=3000x, as in make check) depends on no clock. With a time, a
# target sometimes fails with nothing but "context deadline exceeded" when the time
# ends: a race of the go command (golang.org/issue/75804). That is no failure.
# To make an input smaller takes at most 100 runs: a minute, as is usual, would leave
# no time for other inputs.
.PHONY: fuzz
FUZZTIME ?= 10s
fuzz: ## run every fuzz target for FUZZTIME, 10s (7 minutes)
	@set -e; grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do \
	  for f in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]*' $$dir/*_test.go | cut -c6-); do \
	    echo "fuzz $$dir $$f"; if out=$$(go test $$dir -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x 2>&1); then echo "$$out" | tail -n 1; else \
	      echo "$$out"; test "$$(echo "$$out" | grep -A1 -e '^--- FAIL' | tail -n 1 | tr -d ' ')" = contextdeadlineexceeded; fi; done; done

.PHONY: simulate
SEED ?= 1
RUNS ?= 1000
simulate: ## run RUNS (1000) simulated banks from SEED (1); TRACE=1 prints the first one (1 minute)
	go test ./test/suites/simulation -run '^TestSeeds$$' -count 1 -timeout 0 -v -args -seed $(SEED) -runs $(RUNS) $(if $(TRACE),-trace)

# The number of faults of each kind, of sales due on one day, of idle connections,
# of hostile bodies at the same time, and of fail-overs of each kind (Patroni,
# pg_auto_failover). PROVE_SEED=n repeats the random choices of a run.
PROVE_ROUNDS ?= 300
PROVE_DUE ?= 100000
PROVE_IDLE ?= 5000
PROVE_BODIES ?= 400
PROVE_FAILOVERS ?= 20
# The number of rows that are changed behind the service's back on each engine.
PROVE_CHANGES ?= 1000
# A pattern of tests: make prove PROVE=KilledAtAnyMoment PROVE_ROUNDS=200 (20 minutes)
PROVE ?=
.PHONY: prove
prove: ## try to break the service and show the results; all output is in bin/prove.log (1 to 2 hours)
	@mkdir -p bin
	@set -o pipefail; export PROVE_ROUNDS=$(PROVE_ROUNDS) PROVE_DUE=$(PROVE_DUE) PROVE_IDLE=$(PROVE_IDLE) PROVE_BODIES=$(PROVE_BODIES) PROVE_FAILOVERS=$(PROVE_FAILOVERS); \
	go test -count=1 -timeout 6h -v ./test/suites/prove -run '$(PROVE)' 2>&1 | tee bin/prove.log | grep -aE 'figure:|^(--- |ok|FAIL|PASS|panic)'
	$(if $(PROVE),,PROVE_CHANGES=$(PROVE_CHANGES) PROVE_SUITES=1 go test -count=1 -timeout 1h ./adapters/storage -run '^(TestEveryChangeOfARowIsFound|TestOtherProxies|TestPgBouncer|TestHashPartitions)$$')

.PHONY: clients
clients: ## generate clients, run all recipes, check the accessibility of all pages; downloads tools (10 minutes)
	WITH_DOWNLOADS=1 go test -count=1 -timeout 20m -v ./test/suites/docspage
	WITH_DOWNLOADS=1 go test -count=1 -v ./test/suites/console -run EveryPage

# CI has a job for each version. Each test of a server starts its own here.
POSTGRES_SERVERS ?= $(dir $(wildcard /usr/lib/postgresql/*/bin/postgres))
.PHONY: matrix
matrix: ## run the storage suites on each version of Postgres that is installed (4 minutes each)
	@test -n "$(strip $(POSTGRES_SERVERS))" || { echo "matrix: no Postgres server in /usr/lib/postgresql: install one, or set POSTGRES_SERVERS"; exit 1; }
	@for server in $(POSTGRES_SERVERS); do test -x "$$server/postgres" || { echo "matrix: no Postgres server in $$server"; exit 1; }; done
	@for server in $(POSTGRES_SERVERS); do echo "matrix: $$server"; env -u TEST_POSTGRES_DSN PATH="$$server:$$PATH" REQUIRE_POSTGRES=1 \
	  go test -count=1 -timeout 30m ./adapters/storage/... || failed="$$failed $$server"; done; test -z "$$failed" || { echo "matrix: failed on$$failed"; exit 1; }

# The tests of a package run once for each change, then those of the suites that make
# unit runs too. SEED decides the sample.
MUTATE ?= ./adapters/storage ./adapters/httpapi ./bootstrap
COUNT ?= 40
.PHONY: mutants
mutants: ## change one thing at a time in MUTATE, COUNT (40) times each, and see whether fast tests fail (1 hour)
	go run ./test/tools/mutants -seed $(SEED) -count $(COUNT) -suites "./test/suites/scenarios ./test/suites/sandbox ./test/suites/console" $(MUTATE)

.PHONY: module-test
module-test: ## check that "make module" gives a copy that builds (3 minutes)
	WITH_MODULE_BUILD=1 go test -count=1 -timeout 20m ./test/suites/docs -run MakeModule

.PHONY: screenshots
screenshots: ## make pictures of the guide and the console, two for the README; needs Chromium (2 minutes)
	@mkdir -p bin/screenshots
	go test -count=1 ./test/suites/docspage -run GuideInChromium -args -screenshots $(CURDIR)/bin/screenshots
	go test -count=1 ./test/suites/console -run EveryPage -args -screenshots $(CURDIR)/bin/screenshots
	cp bin/screenshots/guide.png .github/docs.png
	cp bin/screenshots/console-sale-1280-light.png .github/console.png

.PHONY: benchmarks
benchmarks:
	go build ./...
	go test -short -run '^$$' -bench . -benchtime 1x $$(grep -rl --include='*_test.go' '^func Benchmark' . | xargs -n1 dirname | sort -u) >/dev/null

# The compiler is pinned, because another version produces other bytes.
RELEASE_GO ?= go1.26.8
.PHONY: release
release: ## build a release of the last commit into dist/: archives, deb, rpm, image, bills of materials, checksums (4 minutes)
	GOTOOLCHAIN=$(RELEASE_GO) go run ./test/tools/release

# Text between the old path and one of the module's folders; a version or a
# replacement behind it; and the lines of a go.mod.
IMPORT := (^|[^A-Za-z0-9_./-])$$old(/(domain|application|adapters|bootstrap|cmd|test)|@v0|=\.\.)
.PHONY: module
module: ## rename the module everywhere: make module PATH=git.example.com/team/bankingapi (seconds)
	@[[ "$(MODULE)" =~ ^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+(/[A-Za-z0-9._~-]+)+$$ ]] || { \
	  echo 'usage: make module PATH=git.example.com/team/bankingapi'; exit 2; }
	@old=$$(sed -n 's/^module //p' go.mod | sed 's/[.]/\\./g'); \
	git grep -lzIE "$(IMPORT)" | xargs -0 sed -E -i.bak "s#$(IMPORT)#\1$(MODULE)\2#g"; \
	git ls-files -z '*go.mod' | xargs -0 sed -E -i.bak "s#(^|[[:space:]])$$old([[:space:]]|$$)#\1$(MODULE)\2#"; \
	git ls-files -z | xargs -0 -I{} rm -f {}.bak
	@echo "The module is $(MODULE) now. Run make test, then commit."

.PHONY: clean
clean: ## remove everything that the targets created, except ./data and ./sandbox
	rm -rf bin dist bench-results
