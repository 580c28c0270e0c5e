# `make` alone lists the targets. Each installs what it needs beyond Go, Node and
# make.
SHELL := /bin/bash
.DEFAULT_GOAL := help
export CGO_ENABLED ?= 0
# The same flags everywhere: what one target has compiled, the others use.
export GOFLAGS ?= -trimpath

VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo 0.1.0-dev)
CACHE    := $(CURDIR)/.cache
BIN      := $(CURDIR)/bin/luanette
LINT_VERSION := $(shell sed -n '1s/^\# *//p' .golangci.yml)
LINT     := $(CACHE)/golangci-lint-$(LINT_VERSION)
SOURCES  := $(shell find cmd internal lua -name node_modules -prune -o -path internal/ui/web/dist -prune -o -name '*.go' -o -name '*.md' -path '*internal*' -o -name '*.sql' -o -name '*.js' -path '*internal*' -o -name '*.lua' -path '*internal*' 2>/dev/null) go.mod

# Real servers and clients from npm that tests use, pinned in test/servers.
SERVERS := $(CURDIR)/test/servers/node_modules
export LUANETTE_TEST_SERVERS = $(SERVERS)

# Stripe's mock server, and the document that it embeds.
STRIPE_VERSION := v0.203.0
STRIPE := $(CACHE)/stripe-mock

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-18s %s\n", $$1, $$2}'

.PHONY: run
run: build ## Start the server on 127.0.0.1:8081
	@echo "luanette is $(BIN)"
	@echo "In another terminal, for example:"
	@echo "  export PATH=\"$(dir $(BIN)):\$$PATH\""
	@echo "  luanette upstream add everything -- npx -y @modelcontextprotocol/server-everything stdio"
	@echo "  luanette tools add two numbers"
	@echo "  luanette call everything.get-sum a=2 b=40"
	@echo
	$(BIN) serve

.PHONY: build
build: $(BIN) ## Build bin/luanette

# The web page is committed as built: `go install` runs no build of it.
WEB := internal/ui/web
# A registry that fails once does not fail a build.
export npm_config_fetch_retries := 6
NPM_INSTALL := npm install --no-save --no-audit --no-fund --ignore-scripts
.PHONY: web
web: $(WEB)/dist/index.html ## Build the web page that the server shows; commit what changes

$(WEB)/dist/index.html: $(shell find $(WEB)/src $(WEB)/public $(WEB)/*.json $(WEB)/*.ts $(WEB)/index.html -type f 2>/dev/null)
	cd $(WEB) && $(NPM_INSTALL) && npm run build
	rm -f $(BIN) # it embeds the page

.PHONY: web-check
web-check: ## Fail when the committed web page is not what its sources give
	cd $(WEB) && $(NPM_INSTALL) && npm run build -- --outDir $(CACHE)/page --emptyOutDir
	@rm -rf $(CACHE)/committed && cp -r $(WEB)/dist $(CACHE)/committed && gunzip -r $(CACHE)/page $(CACHE)/committed # other versions compress otherwise
	@diff -rq $(CACHE)/committed $(CACHE)/page || { echo "the committed page is not what its sources give: run make web, and commit $(WEB)/dist"; exit 1; }

# No symbols, and no gaps of up to 31 bytes between functions. packaging/release has the same.
LINK := -s -w -funcalign=16

# Not dist/index.html: a checkout's times say nothing, and would build the page again.
$(BIN): $(SOURCES) $(wildcard $(WEB)/dist/assets/*)
	@echo "go build: bin/luanette (the first time compiles everything: four minutes on two cores; after a change 15 seconds)"
	@go build -ldflags "$(LINK) -X main.version=$(VERSION)" -o $@ ./cmd/luanette

# The slowest package takes a minute; on a busy machine that can exceed Go's limit of ten.
# `make test` ends a single test that hangs long before.
LONG := 30m

.PHONY: test
# Under the race detector tests would starve beside a browser.
test: ## Install what tests need and run all of them; ARGS="./PACKAGE -run=NAME" runs some of one package
	@$(MAKE) --no-print-directory -j3 servers system build # two of them wait for the network
	$(if $(ARGS),go test -timeout $(LONG) $(ARGS),go run ./tools/testrun $(if $(RACE),-limit 15m -race "$(RACED)" -then,-also) "$(MAKE) browser" -- -vet=off -timeout=$(LONG) ./...)

# The headless shell takes a third less processor time than all of Chromium.
CHROMIUM = $(shell command -v chromium-headless-shell || command -v chromium)
PLAYWRIGHT = cd test/web && PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 $(NPM_INSTALL) && LUANETTE=$(BIN) CHROMIUM=$(CHROMIUM) npx playwright test

# Tests import modules of the page, which import its packages.
$(WEB)/node_modules:
	cd $(WEB) && $(NPM_INSTALL)

.PHONY: browser
browser: build servers $(WEB)/node_modules ## Test the web page in a real browser, all of it or one file or test: make browser [ONLY=FILE[:LINE]]; screenshots in .cache/web/screenshots
	@if [ -z "$(CHROMIUM)" ]; then echo "chromium is not installed: the web page was not tested"; exit 0; fi; \
	$(PLAYWRIGHT) $(if $(ONLY),--no-deps $(ONLY)) || { echo "one test alone: make browser ONLY=FILE:LINE"; exit 1; }

.PHONY: pictures
pictures: build servers $(WEB)/node_modules ## Make the pictures of docs/hud.md in a real browser
	$(PLAYWRIGHT) --no-deps every.spec.ts -g accessibility
	mkdir -p docs/pictures && cp .cache/web/pictures/*.webp docs/pictures/

.PHONY: check
check: lint floors web-check ## Everything that must hold before a change lands
	$(MAKE) test RACE=1

.PHONY: lint
lint: $(LINT) ## Formatting, the rules of .golangci.yml, and the size of functions
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	$(LINT) run ./... # go vet is among its rules
	@go run ./tools/fitness

$(LINT): .golangci.yml
	@mkdir -p $(CACHE)
	GOBIN=$(CACHE)/lint go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	mv $(CACHE)/lint/golangci-lint $@

VULN_VERSION := v1.9.0
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

# Packages with concurrency of their own. `make test RACE=1` runs these under the race detector.
RACED := ./internal/jobs/... ./internal/server ./internal/mcp/... ./internal/tools/catalog ./internal/tools/results \
  ./internal/scripting/script/... ./internal/chat/turn ./internal/zmq/... ./internal/cluster/... ./internal/access/... ./internal/credentials/... ./internal/govern/... \
  ./internal/store/... ./internal/observe/... ./internal/core/... ./internal/base/... ./internal/sandbox/... ./internal/apis/...
.PHONY: race
race: servers ## Run the race detector on packages with concurrency
	go run ./tools/testrun -limit 15m -race "$(RACED)" -- -vet=off -timeout=$(LONG)

.PHONY: servers
servers: $(SERVERS)/.installed $(STRIPE)/.installed-$(STRIPE_VERSION) ## Install the real servers and clients that tests use

# Node 22 is a package for each platform; npm takes the right one, and ignores it in silence
# when it cannot be fetched. Hence the look at it, and another try.
INSTALL_SERVERS := $(NPM_INSTALL) && node_modules/.bin/node --version
$(SERVERS)/.installed: test/servers/package.json test/servers/package-lock.json
	cd test/servers && { $(INSTALL_SERVERS) || { sleep 10; $(INSTALL_SERVERS); }; }
	touch $@

$(STRIPE)/.installed-$(STRIPE_VERSION):
	@mkdir -p $(STRIPE)
	GOBIN=$(STRIPE) go install github.com/stripe/stripe-mock@$(STRIPE_VERSION)
	install -m 644 $$(go env GOMODCACHE)/github.com/stripe/stripe-mock@$(STRIPE_VERSION)/embedded/openapi/spec3.json $(STRIPE)/spec3.json
	touch $@

# Real MCP clients from npm that tests connect to Luanette, pinned in test/clients.
CLIENTS := $(CACHE)/clients/node_modules
.PHONY: clients
clients: servers $(CLIENTS)/.installed ## Real clients from npm call a tool through Luanette, and use its agent as a model (1.2 GB)
	LUANETTE_TEST_CLIENTS=$(CLIENTS) go test -count=1 -v -timeout $(LONG) ./test/clients

$(CLIENTS)/.installed: test/clients/package.json
	@mkdir -p $(CACHE)/clients && cp test/clients/package.json $(CACHE)/clients/
	cd $(CACHE)/clients && $(NPM_INSTALL) && npm rebuild opencode-ai
	touch $@

.PHONY: conformance
conformance: ## The official MCP suite against the hub and through it; writes docs/conformance.md
	go run ./test/conformance
	LUANETTE_TEST_CONFORMANCE=$(CACHE)/conformance/node_modules go test -count=1 -timeout $(LONG) -run Conformance ./internal/mcp/upstream ./internal/access/identity

.PHONY: conformance-tasks
conformance-tasks: ## The suite's scenarios of tasks, against the hub and through it
	go run ./test/conformance -tasks

.PHONY: test-lua-suite
test-lua-suite: ## The official Lua 5.4 suite: make test-lua-suite LUA_TESTES=DIR
	@test -d "$(LUA_TESTES)" || { echo "LUA_TESTES must name the testes folder of a Lua 5.4 source tree"; exit 2; }
	LUA_TESTES=$(LUA_TESTES) go test -count=1 -run TestSuite ./lua

.PHONY: test-apis
test-apis: ## Reads OpenAPI documents of large services and checks every tool: make test-apis DOCS=DIR
	@test -d "$(DOCS)" || { echo "DOCS must name a folder with OpenAPI documents"; exit 2; }
	DOCS=$(abspath $(DOCS)) go test -count=1 -timeout 20m -run TestDocuments -v ./internal/apis/openapi

.PHONY: bench-apis
bench-apis: ## Time and memory of large OpenAPI documents, search among their tools, CPU of a call: make bench-apis DOCS=DIR
	@test -d "$(DOCS)" || { echo "DOCS must name a folder with github.json and stripe.json"; exit 2; }
	go run ./bench/apis -docs $(abspath $(DOCS))
	go test ./internal/apis/openapi ./internal/apis/command -run xxx -bench Call -benchtime 20x

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
SYSTEM := postgresql systemd chromium chromium-headless-shell lua5.4 abcmidi python3-zmq python3-msgpack timgm6mb-soundfont fluidsynth dbus gnome-keyring libsecret-tools curl nginx caddy haproxy
.PHONY: system
system: ## Install the Debian packages that tests need, where possible
	@missing=; for p in $(SYSTEM); do dpkg -s $$p >/dev/null 2>&1 || missing="$$missing $$p"; done; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then apt-get update -qq && apt-get install -y -qq $$missing >/dev/null; \
	else echo "not installed, comparisons with them are skipped:$$missing"; fi

.PHONY: monitoring
monitoring: ## Check and test the alert rules with promtool, and that a server has every metric they and the dashboard name
	@$(MAKE) system SYSTEM=prometheus
	cd packaging/monitoring && promtool check rules alerts.yml && promtool test rules alerts_test.yml
	go test -count=1 -run TestDashboardAndAlertsNameMetrics ./internal/server

.PHONY: bench-script
bench-script: ## What a run and a tool call of a script cost
	go run ./bench/script

.PHONY: bench-chat
bench-chat: ## Time to the first token at the client and in the agent, and the cost of a turn
	go test ./internal/server -run xxx -bench FirstWord -benchtime 500x
	go test ./internal/chat/agent -run xxx -bench FirstToken -benchtime 500x

.PHONY: bench-search
bench-search: ## Quality and speed of tool search, over our sets of questions and those in SETS=DIR
	go run ./bench/search $(if $(SETS),-sets $(abspath $(SETS)))

.PHONY: bench-job
bench-job: ## Durable jobs per second and the journal's share of an effect, compared with DBOS alone
	go run ./bench/job

.PHONY: bench-hub
bench-hub: ## CPU and latency of a call through the hub, compared with a reverse proxy and a direct call
	go run ./bench/hub

.PHONY: bench-load
bench-load: ## Throughput of one, two and three nodes on one Postgres, and the cost of checks per call
	go run ./bench/load

.PHONY: music-compare
music-compare: ## Ten pieces with two SoundFonts, rendered here and by FluidSynth; writes the table of docs/rendering.md
	@$(MAKE) system SYSTEM="fluidsynth timgm6mb-soundfont fluid-soundfont-gm"
	UPDATE=1 go test -count=1 -v -timeout 20m -run TestLikeFluidSynth ./internal/music/synth
	GOMAXPROCS=1 go test -run xxx -bench Pieces ./internal/music/synth

.PHONY: bench-zmq
bench-zmq: ## Calls over ZeroMQ compared with HTTP, as ratios
	go run ./bench/zmq

.PHONY: freeze
FREEZES ?= 50
freeze: ## Stop and resume ZeroMQ backends FREEZES times (default 50) for 3 to 20 s; afterwards all are idle
	LUANETTE_TEST_FREEZES=$(FREEZES) go test -count=1 -v -timeout 60m -run TestFrozen ./test/backends

.PHONY: crash
KILLS ?= 200
crash: ## Kill the server KILLS times (default 200) while jobs run, and during an erasure, and check that nothing is lost
	LUANETTE_TEST_KILLS=$(KILLS) go test -count=1 -v -timeout 60m -run 'TestServerKilled|TestKilledDuringAnErasure' ./test/processes

.PHONY: kill-installs
INSTALL_KILLS ?= 50
kill-installs: ## Kill npm, and the process that runs it, INSTALL_KILLS times (default 50) while packages are installed; nothing may be left
	LUANETTE_TEST_KILLS=$(INSTALL_KILLS) go test ./internal/mcp/packages -run TestKillsLeaveNothing -count=1 -v -timeout=30m

.PHONY: soak
MINUTES ?= 30
soak: build ## 200 clients and 30 upstreams for MINUTES (default 30): memory, goroutines and files must not grow
	go run ./bench/soak -minutes $(MINUTES) $(BIN)

.PHONY: chat-load
chat-load: ## 200 users send 20 messages each while the server is killed; each is answered once, in order
	LUANETTE_TEST_USERS=200 LUANETTE_TEST_MESSAGES=20 go test -count=1 -v -timeout 20m -run TestChatUnderLoad ./test/processes

.PHONY: chat-kill
chat-kill: ## Kill the server at each step of an answer, interrupt answers in the terminal, restart server and gateway 20 times (3 minutes)
	LUANETTE_TEST_RESTARTS=20 go test -count=1 -v -timeout 10m -run 'TestKilledDuringAChatCall|TestChatInterrupted|TestCallbacksArrive' ./test/processes ./cmd/luanette

.PHONY: chat-order
chat-order: ## Users send 50 messages each, at a load of 10 per core: 200 to one server, 200 to three nodes; each is answered once, in order
	LUANETTE_TEST_LOAD=10 LUANETTE_TEST_USERS=200 LUANETTE_TEST_MESSAGES=50 go test -count=1 -v -timeout 20m -run 'TestChatOrder$$' ./test/processes
	LUANETTE_TEST_LOAD=10 LUANETTE_TEST_USERS=200 LUANETTE_TEST_MESSAGES=50 go test -count=1 -v -timeout 20m -run 'TestChatOrderOnNodes$$' ./test/processes

.PHONY: nodes
SECONDS ?= 180
nodes: servers system ## Three nodes on one Postgres under load: killed at random for SECONDS (default 180), frozen, restarted one by one, also behind nginx
	LUANETTE_TEST_NODES=$(SECONDS) go test -count=1 -v -timeout 30m -run 'TestNodesKilledAtRandom|TestFrozenNode|TestRollingRestart|TestBehindNginx' ./test/processes

.PHONY: drill
drill: servers system ## What a team does in its first year, with two nodes behind nginx: people, rolling restart, kill, new password, lost database, backup, restore, erasure
	LUANETTE_TEST_NODES=1 go test -count=1 -v -timeout 10m -run 'TestDrill$$' ./test/processes

# Everything of a release that needs no account, by plain `go build` (packaging/release). On a
# tag .github/workflows/release.yml runs it, signs the files and publishes them.
.PHONY: release-snapshot
release-snapshot: ## Build a whole release into dist/: make release-snapshot [ONLY=linux/amd64,…]
	cd packaging && go build -o $(CACHE)/release ./release
	$(CACHE)/release -version $(RELEASE_VERSION) -out dist -only "$(ONLY)"

# npm and the registry take semantic versions only.
RELEASE_VERSION ?= $(shell git describe --tags --exact-match 2>/dev/null || echo 0.0.0-snapshot)

.PHONY: package-test
package-test: ## Install what release-snapshot builds for this machine, and run it; also by go install
	$(MAKE) release-snapshot ONLY=linux/$(shell go env GOARCH)
	LUANETTE_TEST_RELEASE=$(CURDIR)/dist go test -count=1 -timeout $(LONG) ./test/package

.PHONY: cross
cross: ## Build for macOS and Windows, which the tests do not run on
	GOOS=darwin GOARCH=arm64 go build -o /dev/null ./cmd/luanette
	GOOS=windows GOARCH=amd64 go build -o /dev/null ./cmd/luanette

.PHONY: size
size: build ## What each dependency adds to the binary; fails over the limit
	go run ./tools/size $(BIN)

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
	rm -rf bin dist .cache cover.out
