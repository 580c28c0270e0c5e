# `make` alone lists the targets. Each installs what it needs beyond Go, Node and
# make.
SHELL := /bin/bash
.DEFAULT_GOAL := help
export CGO_ENABLED ?= 0

VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo 0.1.0-dev)
CACHE    := $(CURDIR)/.cache
BIN      := $(CURDIR)/bin/luanette
LINT_VERSION := $(shell sed -n '1s/^\# *//p' .golangci.yml)
LINT     := $(CACHE)/golangci-lint-$(LINT_VERSION)
SOURCES  := $(shell find cmd internal lua -name node_modules -prune -o -path internal/ui/web/dist -prune -o -name '*.go' -o -name '*.md' -path '*internal*' -o -name '*.sql' -o -name '*.js' -path '*internal*' -o -name '*.lua' -path '*internal*' 2>/dev/null) go.mod

# Real MCP servers and clients from npm that tests use, pinned in test/servers.
SERVERS := $(CURDIR)/test/servers/node_modules
export LUANETTE_TEST_SERVERS = $(SERVERS)

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-18s %s\n", $$1, $$2}'

.PHONY: run
run: web build ## Start the server on 127.0.0.1:8081
	$(BIN) serve

.PHONY: build
build: $(BIN) ## Build bin/luanette

# The web page. A program built without it works, and says how to get it.
WEB := internal/ui/web
.PHONY: web
web: $(WEB)/dist/index.html ## Build the web page that the server shows

$(WEB)/dist/index.html: $(shell find $(WEB)/src $(WEB)/public $(WEB)/*.json $(WEB)/*.ts $(WEB)/index.html -type f 2>/dev/null)
	cd $(WEB) && npm install --no-save --no-audit --no-fund --ignore-scripts && npm run build
	rm -f $(BIN) # it embeds the page

$(BIN): $(SOURCES) $(wildcard $(WEB)/dist/index.html)
	go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o $@ ./cmd/luanette

# The slowest package takes two minutes; on a busy machine that can exceed Go's
# limit of ten.
LONG := 40m

.PHONY: test
test: servers system ## Install what tests need and run all of them
	go test -timeout $(LONG) ./...
	$(MAKE) browser

.PHONY: browser
browser: web build ## Test the web page in a real browser; screenshots in .cache/web/screenshots
	@if command -v chromium >/dev/null; then cd test/web && \
	  PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm install --no-save --no-audit --no-fund --ignore-scripts && \
	  LUANETTE=$(BIN) CHROMIUM=$$(command -v chromium) npx playwright test; \
	else echo "chromium is not installed: the web page was not tested"; fi

.PHONY: check
check: lint floors test race ## Everything that must hold before a change lands

.PHONY: lint
lint: $(LINT) ## Formatting, vet, the rules of .golangci.yml, and the size of functions
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	$(LINT) run ./...
	@go run ./tools/fitness

$(LINT): .golangci.yml
	@mkdir -p $(CACHE)
	GOBIN=$(CACHE)/lint go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	mv $(CACHE)/lint/golangci-lint $@

VULN_VERSION := v1.8.0
.PHONY: vuln
vuln: ## Known vulnerabilities in dependencies, from VULNDB=URL if given; reports when the database is unreachable
	@mkdir -p $(CACHE); GOBIN=$(CACHE)/vuln go install golang.org/x/vuln/cmd/govulncheck@$(VULN_VERSION)
	@$(CACHE)/vuln/govulncheck $(if $(VULNDB),-db $(VULNDB)) ./... > $(CACHE)/vuln.log 2>&1; status=$$?; cat $(CACHE)/vuln.log; \
	if [ $$status -eq 0 ] || [ $$status -eq 3 ] || [ -n "$$CI" ]; then exit $$status; fi; \
	if grep -q 'vuln.go.dev\|fetching vulnerabilities' $(CACHE)/vuln.log; then echo "not checked: the vulnerability database cannot be reached from here; CI does it"; exit 0; fi; exit $$status

.PHONY: licences
licences: ## Licences of all dependencies; writes docs/licences.md, fails on one that is not allowed
	go run ./tools/licences

.PHONY: floors
floors: ## Print the map of the packages; fail when an import is against the order of the groups
	@go run ./tools/floors

# Packages with concurrency of their own. The race detector needs cgo.
RACED := ./internal/jobs/... ./internal/server ./internal/mcp/... ./internal/tools/catalog ./internal/tools/results \
  ./internal/scripting/script ./internal/chat/conversation ./internal/zmq/... ./internal/cluster/... ./internal/access/... \
  ./internal/store/... ./internal/observe/... ./internal/core/... ./internal/base/...
.PHONY: race
race: servers ## Run the race detector on packages with concurrency
	CGO_ENABLED=1 go test -race -short -timeout $(LONG) $(RACED)

.PHONY: servers
servers: $(SERVERS)/.installed ## Install the real MCP servers and clients that tests use

$(SERVERS)/.installed: test/servers/package.json test/servers/package-lock.json
	cd test/servers && npm install --no-save --no-audit --no-fund --ignore-scripts && npm rebuild node
	touch $@

.PHONY: conformance
conformance: ## The official MCP suite against the hub and through it; writes docs/conformance.md
	go run ./test/conformance
	LUANETTE_TEST_CONFORMANCE=$(CACHE)/conformance/node_modules go test -count=1 -timeout $(LONG) -run Conformance ./internal/mcp/upstream

.PHONY: test-lua-suite
test-lua-suite: ## The official Lua 5.4 suite: make test-lua-suite LUA_TESTES=DIR
	@test -d "$(LUA_TESTES)" || { echo "LUA_TESTES must name the testes folder of a Lua 5.4 source tree"; exit 2; }
	LUA_TESTES=$(LUA_TESTES) go test -count=1 -run TestSuite ./lua

.PHONY: bench-lua
bench-lua: ## Our Lua compared with lua5.4 and gopher-lua, in one run
	@command -v lua5.4 >/dev/null || { echo "install lua5.4 first (Debian: apt-get install lua5.4)"; exit 2; }
	cd bench/lua && go run .

.PHONY: test262
test262: ## A sample of the ECMAScript suite: make test262 TEST262=DIR
	@test -d "$(TEST262)/harness" || { echo "TEST262 must name a checkout of github.com/tc39/test262"; exit 2; }
	@mkdir -p $(CACHE)
	@TEST262=$(abspath $(TEST262)) go test -count=1 -v -timeout 30m -run TestConformance ./internal/scripting/js > $(CACHE)/test262.log 2>&1; \
	status=$$?; grep -e ' pass: ' -e ' want ' -e 'broke the engine' $(CACHE)/test262.log; echo "all of it: $(CACHE)/test262.log"; exit $$status

.PHONY: bench-js
bench-js: ## Our JavaScript compared with goja, in one run
	cd bench/js && go run .

.PHONY: bench
bench: ## All benchmarks
	go test -run '^$$' -bench . -benchmem ./...

# Programs that tests compare with. Where they cannot be installed, those tests are
# skipped with a message.
SYSTEM := postgresql systemd chromium lua5.4 abcmidi python3-zmq python3-msgpack timgm6mb-soundfont dbus gnome-keyring libsecret-tools
.PHONY: system
system: ## Install the Debian packages that tests need, where possible
	@missing=; for p in $(SYSTEM); do dpkg -s $$p >/dev/null 2>&1 || missing="$$missing $$p"; done; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then apt-get update -qq && apt-get install -y -qq $$missing >/dev/null; \
	else echo "not installed, comparisons with them are skipped:$$missing"; fi

.PHONY: bench-script
bench-script: ## What a run and a tool call of a script cost
	go run ./bench/script

.PHONY: bench-chat
bench-chat: ## Time to the first token at the client and in the agent, and the cost of a turn
	go test ./internal/server -run xxx -bench FirstWord -benchtime 500x
	go test ./internal/chat/agent -run xxx -bench FirstToken -benchtime 500x

.PHONY: bench-search
bench-search: ## Quality and speed of tool search, over two sets of questions
	go run ./bench/search

.PHONY: bench-job
bench-job: ## Durable jobs per second and the journal's share of an effect, compared with DBOS alone
	go run ./bench/job

.PHONY: bench-hub
bench-hub: ## CPU and latency of a call through the hub, compared with a reverse proxy and a direct call
	go run ./bench/hub

.PHONY: bench-load
bench-load: ## Throughput of one, two and three nodes on one Postgres, and the cost of checks per call
	go run ./bench/load

.PHONY: bench-scale
bench-scale: ## Simulates how far nodes on one Postgres scale, from the numbers of bench-load
	go run ./bench/scale

.PHONY: bench-zmq
bench-zmq: ## Calls over ZeroMQ compared with HTTP, as ratios
	go run ./bench/zmq

.PHONY: crash
KILLS ?= 200
crash: ## Kill the server KILLS times (default 200) while jobs run, and check that nothing is lost
	LUANETTE_TEST_KILLS=$(KILLS) go test -count=1 -v -timeout 60m -run 'TestServerKilled' ./cmd/luanette

.PHONY: chat-load
chat-load: ## 200 users send 20 messages each while the server is killed; each is answered once, in order
	LUANETTE_TEST_USERS=200 LUANETTE_TEST_MESSAGES=20 go test -count=1 -v -timeout 20m -run TestChatUnderLoad ./cmd/luanette

.PHONY: nodes
SECONDS ?= 180
nodes: servers system ## Three nodes on one Postgres under load: killed at random for SECONDS (default 180), frozen, restarted one by one
	LUANETTE_TEST_NODES=$(SECONDS) go test -count=1 -v -timeout 30m -run 'TestNodesKilledAtRandom|TestFrozenNode|TestRollingRestart|TestWorkOnTwoNodes' ./cmd/luanette

.PHONY: cover
cover: servers ## Coverage by package, and cover.out
	go test -coverprofile cover.out ./...
	@go tool cover -func cover.out | tail -1

.PHONY: fuzz
FUZZTIME ?= 20s
fuzz: ## Run every fuzz target for FUZZTIME (default 20s)
	@set -e; for package in $$(go list ./...); do \
	  for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
	    echo "$$package $$target"; go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x $$package; \
	  done; done

.PHONY: golden
golden: ## Rewrite golden files and generated docs from the current output
	UPDATE=1 go test ./...

.PHONY: hooks
hooks: ## Install the pre-commit hook
	git config core.hooksPath .githooks

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin .cache cover.out
