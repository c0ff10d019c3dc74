# Each task of a contributor is a target. `make` alone lists them.

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

# A source tree without git, or without a commit, still builds.
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

# All that is compiled here (programs, tests, linters, what vet and linters read of dependencies) is compiled in one
# way, so that each package is compiled once: static, the same bytes wherever it is built, and without tables for
# debuggers, which take an eighth of the compilers' time. scripts/test.sh turns cgo on for the race detector alone.
export CGO_ENABLED := 0
export GOFLAGS := $(strip $(GOFLAGS) -trimpath -gcflags=all=-dwarf=false)

# The version comes from the linker flag alone, so that a checkout that git refuses to read (another owner's, say)
# builds too.
GOBUILD := go build -buildvcs=false -ldflags '-s -w -X main.version=$(VERSION)'

# Tools are pinned in modules of their own: what they need never mixes with what the product needs.
# The first use of each builds it, which takes some minutes; after that it comes from Go's cache.
LINT := go tool -modfile=scripts/tools/lint/go.mod golangci-lint
BUF  := go tool -modfile=scripts/tools/proto/go.mod buf

# What `make test` tests, and for how long one package may take.
PACKAGES     ?= ./...
TEST_TIMEOUT ?= 20m

# Packages without I/O: what they test takes seconds.
FAST := ./store ./provider ./store/memstore/... ./provider/fake/... ./agent/session/... ./coordinator/plan/...

.PHONY: help
help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/leasehold, bin/leasehold-agent and bin/leasehold-bench (static)
	$(GOBUILD) -o bin/leasehold ./cmd/leasehold
	$(GOBUILD) -o bin/leasehold-agent ./cmd/leasehold-agent
	$(GOBUILD) -o bin/leasehold-bench ./cmd/leasehold-bench

.PHONY: run
run: build ## build, then everything on this machine: etcd, coordinator, a demo group (ARGS=…)
	exec bin/leasehold dev $(ARGS)

.PHONY: test
test: ## run the everyday tests, which prove each promise: some ten minutes (PACKAGES=… for some); installs what they need
	scripts/test-needs.sh
	TEST_TIMEOUT=$(TEST_TIMEOUT) scripts/test.sh $(PACKAGES)

.PHONY: test-fast
test-fast: ## test the packages without I/O, and the rules about imports: seconds
	go test $(FAST)
	go test -run 'TestImports|TestRules' ./tests

.PHONY: nightly
nightly: ## run all tests, before a release: hours (PHASES='worlds faults' for some)
	scripts/test-needs.sh
	scripts/nightly.sh $(PHASES)

.PHONY: agents
agents: ## build the agent for each architecture into bin/, for coordinators that serve it (--downloads)
	GOARCH=amd64 $(GOBUILD) -o bin/leasehold-agent-linux-amd64 ./cmd/leasehold-agent
	GOARCH=arm64 $(GOBUILD) -o bin/leasehold-agent-linux-arm64 ./cmd/leasehold-agent

.PHONY: packages
packages: ## build deb, rpm, archive, SBOM and container image for amd64 and arm64 into dist/
	VERSION=$(VERSION) scripts/packages.sh

.PHONY: site
site: ## render README.md and docs as a site of static files into bin/site/; a dead link fails
	go run ./tests/site

.PHONY: check
check: check-format check-vet check-lint check-generated check-protocol check-tidy check-rules ## run all checks except the tests: format, vet, lint, generated code, protocol, tidy, import rules
	@echo "check: all clean"

.PHONY: check-format
check-format: ## show what `make fix` would format differently
	$(LINT) fmt --diff

.PHONY: check-vet
check-vet:
	go vet -tags nightly ./...

.PHONY: check-lint
check-lint: ## run the linters of .golangci.yml
	$(LINT) run

.PHONY: check-generated
check-generated: ## compare generated code with its source
	$(BUF) lint
	scripts/check-generated.sh

.PHONY: check-protocol
check-protocol: ## check that the protocol is compatible with the previous release
	$(BUF) breaking --against "$$(ls tests/faults/previous/leasehold-*.tar.gz)#strip_components=1"

.PHONY: check-tidy
check-tidy: ## compare the go.mod files with what `go mod tidy` would write
	scripts/tidy.sh -diff

.PHONY: check-rules
check-rules:
	go test -run 'TestImports|TestRules' ./tests

.PHONY: rules
rules: ## show which promise of docs/rules.md has a test that proves it
	@go test -count=1 -v -run 'TestRulesCoverage' ./tests | grep -E '^ +rules_test.go|^(ok|FAIL|---)' | sed 's/^ *rules_test.go:[0-9]*: //'

.PHONY: fix
fix: generate ## format, tidy and generate
	scripts/tidy.sh
	$(LINT) fmt

.PHONY: generate
generate: ## regenerate the protocol's Go code
	$(BUF) generate

.PHONY: bench
bench: ## run Go benchmarks (BENCH=regexp, PACKAGES=…)
	go test -run '^$$' -bench '$(or $(BENCH),.)' -benchmem $(PACKAGES)

.PHONY: bench-replay
bench-replay: ## replay a month of 500 instances in groups of fixed size, and in groups that follow load: minutes (SPAN=72h)
	go test ./coordinator/replay -run '^$$' -bench Month -benchtime 1x -timeout 60m -span $(or $(SPAN),720h)

.PHONY: page-shots
page-shots: ## take pictures of every page at 1440 and 390 pixels, light and dark, into SHOTS=bin/shots; those of docs/images into docs in it
	scripts/test-needs.sh
	go test -tags nightly ./coordinator/web -count=1 -run '^TestShots$$' -shots '$(abspath $(or $(SHOTS),bin/shots))'

.PHONY: bench-detect
bench-detect: ## measure how soon faults of real machines are noticed and a replacement is requested: minutes (ARGS="-trials 5 -o json")
	scripts/test-needs.sh
	go run ./tests/detect $(ARGS)

.PHONY: bench-compare
bench-compare: build ## compare Leasehold with agents that are etcd clients, on this machine: about ten minutes (ARGS="--agents 5000 -o json")
	bin/leasehold-bench compare $(ARGS)

.PHONY: fuzz
fuzz: ## fuzz all parsers of external input, each for a while (FUZZTIME=30s, PACKAGES=…)
	FUZZTIME=$(or $(FUZZTIME),30s) scripts/fuzz.sh $(PACKAGES)

.PHONY: sim
sim: ## run many simulated worlds (SEEDS=10000 FIRST=1), or show one (SEED=…)
	go test ./tests/sim -count=1 -timeout 0 -v -run '^TestWorlds$$' $(if $(SEED),-seed $(SEED) -show,-worlds $(or $(SEEDS),10000) -first $(or $(FIRST),1))

.PHONY: senses
senses: ## check that faults of Leasehold, etcd or providers replace no machine: tests/senses with AGENTS=1000 (RUN=regexp)
	scripts/test-needs.sh
	go test ./tests/senses -tags nightly -count=1 -timeout 60m -parallel 1 -v -run '$(or $(RUN),.)' -agents $(or $(AGENTS),1000)

.PHONY: faults
faults: ## cause faults in whole clusters of real processes, by seed, and judge the results (SEEDS=200 FIRST=1, or one: SEED=…; SERVERS=1: on hosts of leasehold server)
	scripts/test-needs.sh
	go test ./tests/faults -tags nightly -count=1 -timeout 0 -v -run '^TestSeeds$$' $(if $(SERVERS),-servers -parallel $(or $(PARALLEL),3)) $(if $(SEED),-seed $(SEED),-seeds $(or $(SEEDS),200) -first $(or $(FIRST),1))

.PHONY: promises
promises: ## run the contract suite against every provider, or some (ONLY='lxd libvirt'), and write docs/providers/promises.md; goes on where it was cut short (FRESH=1: anew)
	FRESH=$(FRESH) scripts/promises.sh $(ONLY)

.PHONY: containers
containers: ## cause faults in groups of containers of a real LXD, by seed (SEEDS=10 FIRST=1, or one: SEED=…)
	scripts/test-needs.sh
	go test ./tests/e2e -tags nightly -count=1 -timeout 0 -v -run '^TestContainersUnderRandomHarm$$' $(if $(SEED),-container-seed $(SEED),-container-seeds $(or $(SEEDS),10) -container-first $(or $(FIRST),1))

.PHONY: failover
failover: ## kill the leader repeatedly under load, and measure how soon another one acts: ten minutes and more (KILLS=30 RESIGNS=10 AGENTS=1000 OPERATIONS=50 SESSION=3s STILL=200ms FIGURES=file)
	scripts/test-needs.sh
	go test ./tests/faults -tags nightly -count=1 -timeout 0 -v -run '^TestLeaderIsKilledUnderLoad$$' -kills $(or $(KILLS),30) -resigns $(or $(RESIGNS),10) -agents $(or $(AGENTS),1000) -operations $(or $(OPERATIONS),50) -session $(or $(SESSION),3s) -still $(or $(STILL),0s) -figures '$(abspath $(FIGURES))'

.PHONY: soak
soak: ## run an hour of faults, edits and rest, after which no resource usage may have grown (FOR=1h FIRST=1)
	scripts/test-needs.sh
	go test ./tests/faults -tags nightly -count=1 -timeout 0 -v -run '^TestSoak$$' -soak $(or $(FOR),1h) -first $(or $(FIRST),1)

.PHONY: soak-servers
soak-servers: ## run an hour of edits and backups on three hosts of leasehold server, after which no resource usage may have grown (FOR=1h)
	scripts/test-needs.sh
	go test ./tests/e2e -tags nightly -count=1 -timeout 0 -v -run '^TestServersSoak$$' -server-soak $(or $(FOR),1h)

.PHONY: servers
servers: ## kill, freeze, stop and replace hosts of leasehold server, and parts of them, by seed (SEEDS=10 FIRST=1, or one: SEED=…)
	scripts/test-needs.sh
	go test ./tests/e2e -tags nightly -count=1 -timeout 0 -v -parallel 3 -run '^TestServersUnderRandomHarm$$' $(if $(SEED),-server-seed $(SEED),-server-seeds $(or $(SEEDS),10) -server-first $(or $(FIRST),1))

.PHONY: mutants
mutants: ## put deliberate bugs into the product, one at a time, and check that tests/faults catches each: hours (MUTANT=no-fence RUNS=12 SERVERS=1)
	scripts/test-needs.sh
	go test ./tests/faults -tags nightly -count=1 -timeout 0 -v -parallel $(or $(PARALLEL),3) -run '^TestMutants$$' $(if $(SERVERS),-servers) -mutants $(or $(MUTANT),all) -most $(or $(RUNS),12)

.PHONY: mutate
mutate: ## put small mistakes into one package, and check that its own tests catch each: up to hours (PACKAGE=store EVERY=5 ONLY=regexp TESTS=regexp FROM=coordinator CHEAP=2s LISTED=true)
	go run ./tests/mutate -package $(or $(PACKAGE),agent/session) $(if $(EVERY),-every $(EVERY)) $(if $(ONLY),-only '$(ONLY)') $(if $(TESTS),-tests '$(TESTS)') $(if $(FROM),-from $(FROM)) $(if $(CHEAP),-cheap $(CHEAP)) $(if $(LISTED),-listed)

.PHONY: vuln
vuln: ## look for known vulnerabilities in linked code; needs https://vuln.go.dev (or GOVULNDB=…), so not part of `make check`
	scripts/vuln.sh

.PHONY: clean
clean: ## remove what was built
	rm -rf bin dist
