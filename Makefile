# Lakeweir. `make help` lists the targets.

GO            ?= go
GOLANGCI_LINT ?= v2.15.0
TEMPL         ?= v0.3.1118
VERSION       ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS       := -s -w -X main.version=$(VERSION)
TEST_TIMEOUT  ?= 25m
FUZZTIME      ?= 60s
# Tests mostly wait for events, so that more of them than cores run at once.
PARALLEL      ?= 6
LINTER        := .cache/bin/golangci-lint-$(GOLANGCI_LINT)

export CGO_ENABLED ?= 0

.PHONY: help build test reconcile-long e2e e2e-long race fuzz fault-long golden generate verify lint check demo bench-build bench-memory clean

help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## Build bin/lakeweir
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/lakeweir ./cmd/lakeweir

demo: build ## Run the demo: a live Postgres shop replicated into a local lake, with a page
	bin/lakeweir demo $(ARGS)

test: ## Run every test: unit, property, real Postgres, PyIceberg as an independent reader
	LAKEWEIR_REQUIRE=1 LAKEWEIR_FAULT_RUNS=$${LAKEWEIR_FAULT_RUNS:-50} $(GO) test -parallel $(PARALLEL) -timeout $(TEST_TIMEOUT) ./...

e2e: ## Run the program against real services and read the lake by PyIceberg and Spark (Java 17, Maven); RUN=name for one test
	LAKEWEIR_E2E=1 LAKEWEIR_REQUIRE=1 $(GO) test -p 1 -count=1 -v -timeout 20m -run '(?i)$(RUN)' ./e2e/...

e2e-long: ## The shop through Debezium with 20 kills of the program; RUN=name for another test
	LAKEWEIR_E2E=1 LAKEWEIR_E2E_LONG=1 LAKEWEIR_REQUIRE=1 $(GO) test -count=1 -v -timeout 60m -run '(?i)$(or $(RUN),ShopThroughDebezium)' ./e2e

reconcile-long: ## 20 reconciliations at 2,000 changes a second, then planted differences, found and repaired
	LAKEWEIR_REQUIRE=1 LAKEWEIR_RECONCILE_LONG=1 $(GO) test ./worker -run '^TestReconcileUnderLoad$$' -v -count 1 -timeout 90m

race: ## Run the tests with the race detector (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -race -parallel $(PARALLEL) -timeout $(TEST_TIMEOUT) ./...

fuzz: ## Run each fuzz target for a minute (FUZZTIME)
	@for pkg in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "$$pkg $$target"; $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
	  done; \
	done

fault-long: ## Run 1,000 seeded fault runs; one line sums them up
	LAKEWEIR_FAULT_RUNS=$${LAKEWEIR_FAULT_RUNS:-1000} $(GO) test -count=1 -timeout 4h -v -run '^TestFaultsLoseDoubleAndReviveNothing$$' ./worker

golden: ## Rewrite golden files and generated docs from what the code says now
	$(GO) test ./catalog/... ./policies ./cmd/... ./orchestrator/dashboard/... -update

generate: ## Regenerate the pages' Go code
	$(GO) run github.com/a-h/templ/cmd/templ@$(TEMPL) generate -path orchestrator/dashboard

verify: generate ## Check that generated code is committed
	git diff --exit-code -- '*_templ.go'

lint: $(LINTER) ## Run the linters; the first time builds them
	$(LINTER) run ./...

$(LINTER):
	GOBIN=$(CURDIR)/$(@D) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT)
	mv $(@D)/golangci-lint $@

check: ## What CI runs
	.ci/run

bench-build: ## Measure a cold build in CPU-seconds; fails above 360
	$(GO) run ./bench/build

bench-memory: build ## Measure the worker's memory for what is large; fails above 512 MiB (ARGS="-format 2")
	$(GO) run ./bench/memory $(ARGS)

clean: ## Remove what make made
	rm -rf bin bench/out
