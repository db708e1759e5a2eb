# netdelta: build, test, lint and release. `make` alone lists what there is.
#
#   ARGS   words handed to the program:          make run ARGS="throughput --time-budget 10m"
#   PKGS   packages to test, all when not given: make test PKGS=./stats/...
#   WHICH  benchmarks, or tests of guests or clusters, to run, all when not given: make bench WHICH=engine, make guest WHICH=inside
#   CNI, PROXY, POLICY, WORKERS, IPV6, MULTUS  what the cluster shall be: make cluster-up CNI=flannel-vxlan PROXY=nftables WORKERS=3

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

GO     ?= go
ARGS   ?=
PKGS   ?= ./...
WHICH  ?=
FUZZ_TIME ?= 10s

# The program's version is what the Go toolchain reads from version control. In an archive of the sources there is none, and a
# checkout that git refuses to read (owned by somebody else, say) must not break the build either.
VCS := $(shell git rev-parse --verify -q HEAD >/dev/null 2>&1 && git status --porcelain >/dev/null 2>&1 && echo true || echo false)
# Programs go without tables for debuggers, a third of their size: profiles and stack traces need none.
export NETDELTA_BUILD_FLAGS := -trimpath -buildvcs=$(VCS) -ldflags=-s

# What decides whether compiled packages can be shared is the same for the program, its tests and the checkers: all but what
# the race detector needs is compiled once. Tables for debuggers, which nothing built here keeps, take a tenth of the compiler's time, and
# collecting its garbage as often as usual a sixth.
export CGO_ENABLED := 0
export GOFLAGS := $(strip $(shell $(GO) env GOFLAGS) -trimpath -gcflags=all=-dwarf=false '-toolexec=env GOGC=400')

.PHONY: help
help: ## list the targets (the default)
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## install the packages that runs, tests and benchmarks need and this machine lacks
	@scripts/setup.sh all

.PHONY: build
build: ## build bin/netdelta, one static binary, and bin/netdelta-agent, which it sends to pods and guests
	@mkdir -p bin
	$(GO) build $(NETDELTA_BUILD_FLAGS) -o bin/ ./cmd/...

.PHONY: run
run: ## setup, build, and run the default study in the local lab (ARGS: study, flags)
	@scripts/setup.sh run
	@$(MAKE) --no-print-directory build
	bin/netdelta run $(ARGS)

.PHONY: test
test: ## setup, then all tests that need only this machine; at the end what was skipped, and why (PKGS; EVERYTHING=yes: long ones too, all raced)
	@scripts/setup.sh test
	@scripts/test.sh $(if $(EVERYTHING),--everything) $(PKGS)

.PHONY: quick
quick: ## the short tests of packages, and of those that import them and make no namespaces, as far as something changed (PKGS)
	@scripts/quick.sh $(PKGS)

.PHONY: check
check: ## everything: raced tests, lint, services, faults, guests, clusters with flannel, Calico and Cilium, a minute for each fuzz target
	@scripts/check.sh everything

.PHONY: golden
golden: ## write golden files and generated schemas as the tests get them, and list what changed (PKGS)
	@status=0; NETDELTA_UPDATE_GOLDEN=1 $(GO) test -vet=off -count=1 \
		$(or $(filter-out ./...,$(PKGS)),$$(grep -rl --include='*_test.go' '"netdelta/internal/golden"' . | xargs dirname | sort -u)) || status=$$?; \
		git diff --stat; exit $$status

.PHONY: bench
bench: build ## run each program under extras/bench/ in turn (WHICH: names of some)
	@scripts/setup.sh bench
	@scripts/bench.sh $(WHICH)

.PHONY: e2e
e2e: build ## whole runs through the program as users get it; nothing may be left of them
	NETDELTA_PROGRAM=$(CURDIR)/bin/netdelta $(GO) test -count 1 -timeout 60m -v -run TestRuns ./scripts/endtoend

.PHONY: chaos
chaos: ## what may happen to a run (kills, hangs, full disks, short limits), fault by fault: survived, named or lost; nothing may be left of it
	@scripts/setup.sh test >&2
	$(GO) test -count 1 -timeout 20m -v -run '^TestChaosWhenQuiet$$' ./cli

.PHONY: services
services: build ## short forms of the studies with real daemons: storage, database and throughput; nothing may be left of them
	@scripts/setup.sh test
	NETDELTA_PROGRAM=$(CURDIR)/bin/netdelta $(GO) test -count 1 -timeout 60m -v -run TestServices ./scripts/endtoend

.PHONY: guest
guest: ## what boots guests, and in guests with a full kernel the networks and conditions that this machine may lack (WHICH: basic, boots, inside)
	@scripts/setup.sh test
	@scripts/guests.sh $(WHICH)

.PHONY: cluster-up
cluster-up: ## a real Kubernetes cluster in namespaces of this machine (CNI, PROXY, POLICY, WORKERS, IPV6, MULTUS); prints its kubeconfig's path
	@scripts/setup.sh test >&2
	@NETDELTA_KUBERNETES=$$(scripts/kubernetes.sh) $(foreach product,calico cilium,$(if $(filter $(product)-%,$(CNI)),\
		NETDELTA_$(shell tr a-z A-Z <<<$(product))=$$(scripts/kubernetes.sh $(product)))) $(GO) run ./extras/cluster up \
		$(if $(CNI),--cni $(CNI)) $(if $(PROXY),--proxy $(PROXY)) $(if $(POLICY),--policy $(POLICY)) $(if $(WORKERS),--workers $(WORKERS)) $(if $(IPV6),--ipv6) $(if $(MULTUS),--multus $(patsubst yes,on,$(MULTUS)))

.PHONY: cluster-down
cluster-down: ## end the cluster
	@$(GO) run ./extras/cluster down

.PHONY: test-kubernetes
test-kubernetes: ## the tests that need a cluster, on one that is up or that is made for them (PKGS; WHICH=basic: a few)
	@scripts/setup.sh test
	@scripts/test-kubernetes.sh $(if $(filter basic,$(WHICH)),--basic) $(PKGS)

.PHONY: generate
generate: ## compile the eBPF programs and write the Go files that embed them
	$(GO) generate ./...

.PHONY: generated
generated: ## see that what is generated is as its sources say
	@scripts/generated.sh

.PHONY: lint
lint: ## gofmt, go mod tidy, golangci-lint with go vet and staticcheck, govulncheck
	@scripts/lint.sh

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZ_TIME
	@scripts/fuzz.sh $(FUZZ_TIME)

.PHONY: dist
dist: ## the release, in dist/: archives, packages, the image, manifests, checksums, bills of materials, provenance
	@scripts/dist.sh

.PHONY: test-dist
test-dist: ## install each file of dist/ in a root of its own, and run it there
	NETDELTA_DIST=$(CURDIR)/dist $(GO) test -vet=off -count=1 -v -run 'TestInstall|TestRelease$$|TestProcessors' ./scripts/release

.PHONY: changelog
changelog: ## write CHANGELOG.md of the notes in changelog/ (scripts/release.sh VERSION makes a release of the unreleased ones)
	@scripts/changelog.sh >CHANGELOG.md

.PHONY: site
site: ## the documentation as a site, in site/: it opens offline, and every link is checked
	@scripts/site.sh

.PHONY: clean
clean: ## remove what the targets above made here (not the run folders, not the checkers in the cache)
	rm -rf bin dist site
