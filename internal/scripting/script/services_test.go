package script

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/module/workspace"
)

// lost is an event of the server.
type lost struct {
	Name  string `json:"name"`
	Tools int    `json:"tool_count"`
}

func (lost) EventType() string { return "upstream.lost" }

// TestHandlersReceiveEvents checks that a handler receives events of the server until
// it unsubscribes.
func TestHandlersReceiveEvents(t *testing.T) {
	t.Parallel()
	bus := event.New(event.BusOptions{})
	r := newRunner(t, func(o *Options) { o.Events = bus })
	source := `
		local received = {}
		on("upstream.*", function(e)
			received[#received + 1] = { e.type, e.data.name, e.data.tool_count }
			if #received == 2 then events.stop() end
		end)
		print("listening")
		events.run()
		return received`
	listening := func(host.OutputLine) {
		bus.Publish(lost{"holler", 3})
		go bus.Publish(lost{"git", 0})
	}
	got, err := r.Run(t.Context(), Request{Source: source, Watch: listening})
	if err != nil || string(got.Result) != `[["upstream.lost","holler",3],["upstream.lost","git",0]]` {
		t.Errorf("got %s, %v", got.Result, err)
	}
}

// anyEvent is an event of any type.
type anyEvent string

func (e anyEvent) EventType() string { return string(e) }

// TestEveryTypeOfEventFires subscribes to each type that on accepts, as events are
// written and as scripts may write them, and publishes it.
func TestEveryTypeOfEventFires(t *testing.T) {
	t.Parallel()
	sources := map[string]string{
		Lua: `
			local received = {}
			for _, name in ipairs(names) do on(name, function(e) received[#received + 1] = e.type end) end
			print("listening")
			while #received < #names do events.wait() end
			return received`,
		JavaScript: `
			const received = [];
			for (const name of names) on(name, (e) => { received.push(e.type); });
			print("listening");
			while (received.length < names.length) await events.wait();
			return received;`,
	}
	for language, source := range sources {
		bus := event.New(event.BusOptions{})
		r := newRunner(t, func(o *Options) { o.Events = bus })
		var names []string
		for _, kind := range event.Types() {
			names = append(names, kind, strings.Replace(kind, ".", "_", 1))
		}
		list := encode(names)
		prefix := "local names = json.decode([=[" + string(list) + "]=])"
		if language == JavaScript {
			prefix = "const names = " + string(list) + ";"
		}
		publish := func(host.OutputLine) {
			for _, kind := range event.Types() {
				bus.Publish(anyEvent(kind))
			}
		}
		got, err := r.Run(t.Context(), Request{Source: prefix + source, Language: language, Watch: publish})
		var received []string
		if err != nil || json.Unmarshal(got.Result, &received) != nil {
			t.Fatalf("%s: %s, %v", language, got.Result, err)
		}
		want := slices.Sorted(slices.Values(append(event.Types(), event.Types()...)))
		if slices.Sort(received); !slices.Equal(received, want) {
			t.Errorf("%s: received %q", language, received)
		}
	}
}

func TestWaitingForEventsEnds(t *testing.T) {
	t.Parallel()
	bus := event.New(event.BusOptions{})
	r := newRunner(t, func(o *Options) { o.Events = bus })
	const source = `on("script.never", print) print("waiting") events.run()`

	ctx, cancel := context.WithCancel(t.Context())
	_, err := r.Run(ctx, Request{Source: source, Watch: func(host.OutputLine) { cancel() }})
	var failure *Error
	if !errors.As(err, &failure) || failure.Kind != Cancelled {
		t.Errorf("cancelled: %v", err)
	}
	_, err = r.Run(t.Context(), Request{Source: source, Watch: func(host.OutputLine) { bus.Close() }})
	if !errors.As(err, &failure) || failure.Message != "no more events will come" {
		t.Errorf("after the last event: %v", err)
	}
}

// TestMissingServices checks the errors of services that a run does not have.
func TestMissingServices(t *testing.T) {
	t.Parallel()
	r := newRunner(t, func(o *Options) { o.Tools, o.Events = nil, nil })
	for source, want := range map[string]string{
		`http.get("https://example.com")`:         "http: this run may not use the network",
		`run_command("ls")`:                       "run_command: this run may not run programs",
		`git_status()`:                            "git_status: this run may not run programs",
		`on("script.x", print)`:                   "events are not available in this run",
		`tools.mcp_add("x", "http://x")`:          "tools.mcp_add: this run cannot change upstreams",
		`mcp.call("a", "b", {})`:                  "a.b: this run has no tools",
		`tools.search("x")`:                       "tools.search: this run has no tools",
		`tools.mcp_remove("x")`:                   "tools.mcp_remove: this run cannot change upstreams",
		`results.get("$r1")`:                      "results.get: results are not available here",
		`results.list()`:                          "results.list: results are not available here",
		`results.keep(1)`:                         "results.keep: results are not available here",
		`cas.store("x")`:                          "this run has no content store",
		`artifact.content_hash("artifact_1")`:     "this run has no content store",
		`if mcp.calc == nil then error("no") end`: "no",
	} {
		_, err := r.Run(t.Context(), Request{Source: source})
		var failure *Error
		if !errors.As(err, &failure) {
			t.Errorf("%s: %v", source, err)
		} else if got := failure.Message; got != want && got != "script:1: "+want {
			t.Errorf("%s: %q, want %q", source, got, want)
		}
	}
	if _, err := r.Run(t.Context(), Request{Source: `emit("script.x", 1) return os.getenv("HOME"), tools.mcp_list()`}); err != nil {
		t.Error(err)
	}
}

func TestProgramsAreBounded(t *testing.T) {
	t.Parallel()
	allowing := func(options workspace.CommandOptions) *Runner {
		options.Allow = []string{"sh"}
		return newRunner(t, func(o *Options) { o.Commands = workspace.NewPrograms(options) })
	}
	r := allowing(workspace.CommandOptions{Env: []string{"NAME=ada"}, Limit: 5})
	got, err := r.Run(t.Context(), Request{Source: `return run_command("sh", { "-c", "printf 1234567; printf $NAME$HOME >&2" })`})
	if err != nil || string(got.Result) != `{"status":0,"stdout":"12345","stderr":"ada"}` {
		t.Errorf("got %s, %v", got.Result, err)
	}
	r = allowing(workspace.CommandOptions{Timeout: 50 * time.Millisecond})
	_, err = r.Run(t.Context(), Request{Source: `run_command("sh", { "-c", "while :; do :; done" })`})
	var failure *Error
	if !errors.As(err, &failure) || failure.Message != "run sh: it took longer than 50ms" {
		t.Errorf("endless: %v", err)
	}
}

// failingGit is a git that is not in a repository.
type failingGit struct{}

func (failingGit) Run(_ context.Context, name string, _ []string) (host.CommandResult, error) {
	return host.CommandResult{Status: 128, Stderr: name + ": not a git repository"}, nil
}

func TestGitStatusFails(t *testing.T) {
	t.Parallel()
	r := newRunner(t, func(o *Options) { o.Commands = failingGit{} })
	_, err := r.Run(t.Context(), Request{Source: `return git_status()`})
	var failure *Error
	if !errors.As(err, &failure) || failure.Message != "git_status: git: not a git repository" {
		t.Errorf("err = %v", err)
	}
}

func TestOnlyStartupStartsPrograms(t *testing.T) {
	t.Parallel()
	r := newRunner(t, func(o *Options) { o.Upstreams = &upstreamManager{} })
	_, err := r.Run(t.Context(), Request{Source: `tools.mcp_add("git", { command = "mcp-git" })`})
	if err == nil || !strings.Contains(err.Error(), "only startup.lua may add programs") {
		t.Errorf("err = %v", err)
	}
}

func TestHooksAreForStartupOnly(t *testing.T) {
	t.Parallel()
	_, err := newRunner(t, nil).Run(t.Context(), Request{Source: "on('tool_call', function() end)"})
	if err == nil || !strings.Contains(err.Error(), "startup.lua only") {
		t.Errorf("err = %v", err)
	}
}
