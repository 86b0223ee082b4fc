# `make` lists the targets. Only Go, make and git are needed; Postgres and a C
# compiler (for the race detector) are used where they are.
SHELL := /bin/bash
export GOFLAGS ?= -mod=readonly

GOLANGCI_VERSION := v2.15.0
TOOLS := $(CURDIR)/bin/tools
PACKAGES := ./...
# The race detector needs a C compiler; without one the tests run without it,
# and say so.
RACE := $(shell command -v $${CC:-cc} >/dev/null 2>&1 && echo -race)
CGO := $(if $(RACE),1,0)

.DEFAULT_GOAL := help
.PHONY: help
help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/bankingapi: one static file
	CGO_ENABLED=0 go build -trimpath -o bin/bankingapi ./cmd/bankingapi

.PHONY: run
run: build ## start the service on SQLite with a demo book, in ./data
	@exec bin/bankingapi serve --demo

.PHONY: test
test: ## run the tests (Postgres: TEST_POSTGRES_DSN, or server binaries that are found)
	CGO_ENABLED=0 go test $(PACKAGES)

.PHONY: race
race: ## run the tests with the race detector
	@$(if $(RACE),,echo "make race: no C compiler, so no race detector: the tests run without it")
	CGO_ENABLED=$(CGO) go test $(RACE) -timeout 9m $(PACKAGES)

.PHONY: lint
lint: $(TOOLS)/golangci-lint ## format, vet, lint, tidy
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo "run: gofmt -w"; exit 1; }
	go vet $(PACKAGES)
	$(TOOLS)/golangci-lint run
	go mod tidy -diff

$(TOOLS)/golangci-lint:
	GOBIN=$(TOOLS) GOFLAGS= go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)

.PHONY: bench
BENCH ?= -out bench-results
bench: ## compare the service with its database driven alone (Postgres, SQLite); BENCH="-engine sqlite"
	go run ./test/bench $(BENCH)

.PHONY: host
host: ## build and run a program of another module that embeds the service
	cd test/host && CGO_ENABLED=0 GOFLAGS= go run .

.PHONY: fuzz
FUZZTIME ?= 10s
fuzz: ## run every fuzz target for FUZZTIME (10s)
	@set -e; grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do \
	  for f in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]*' $$dir/*_test.go | cut -c6-); do \
	    echo "fuzz $$dir $$f"; CGO_ENABLED=0 go test $$dir -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) | tail -n 1; done; done

.PHONY: simulate
SEED ?= 1
RUNS ?= 1000
simulate: ## play RUNS (1000) simulated banks from SEED (1); TRACE=1 prints the first one
	CGO_ENABLED=0 go test ./test/simulation -run '^TestSeeds$$' -count 1 -timeout 0 -v -args -seed $(SEED) -runs $(RUNS) $(if $(TRACE),-trace)

# How often each kind of fault is tried, how many sales are due on one day, how
# many connections idle, how many hostile bodies come at once. PROVE_SEED=n
# repeats the random choices of a run.
PROVE_ROUNDS ?= 300
PROVE_DUE ?= 100000
PROVE_IDLE ?= 10000
PROVE_BODIES ?= 400
.PHONY: prove
prove: ## try to break the service for an hour or two, and show what came of it; all of it in bin/prove.log
	@mkdir -p bin
	@set -o pipefail; export PROVE_ROUNDS=$(PROVE_ROUNDS) PROVE_DUE=$(PROVE_DUE) PROVE_IDLE=$(PROVE_IDLE) PROVE_BODIES=$(PROVE_BODIES); \
	CGO_ENABLED=0 go test -count=1 -timeout 6h -v ./test/prove 2>&1 | tee bin/prove.log | grep -aE 'figure:|^(--- |ok|FAIL|PASS|panic)'

.PHONY: check
check: lint race ## all that CI runs
	CGO_ENABLED=0 go build $(PACKAGES)
	CGO_ENABLED=0 go test -run '^$$' -bench . -benchtime 1x $(PACKAGES) >/dev/null
	$(MAKE) --no-print-directory host
	$(MAKE) --no-print-directory fuzz FUZZTIME=2s

# The compiler is pinned: another one gives other bytes.
RELEASE_GO ?= go1.26.8
.PHONY: release
release: ## build a release of the last commit into dist/: archives, checksums, bills of materials
	GOTOOLCHAIN=$(RELEASE_GO) go run ./test/release

.PHONY: clean
clean: ## remove what the targets made, but not ./data
	rm -rf bin dist
