package upstream_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstream/upstreamtest"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// sleepyPackage is a server with a tool, a prompt and a resource. If it was told so, it says
// something again and again.
const sleepyPackage = `#!/usr/bin/env node
const say = message => console.log(JSON.stringify({jsonrpc: '2.0', ...message}))
require('readline').createInterface({input: process.stdin}).on('line', line => {
  const {id, method} = JSON.parse(line)
  if (id === undefined) return
  const result = {
    initialize: {protocolVersion: '2025-06-18', capabilities: {tools: {}, prompts: {}, resources: {subscribe: true}}, serverInfo: {name: 'sleepy', version: '1'}},
    'tools/list': {tools: [{name: 'first', inputSchema: {type: 'object'}}]},
    'prompts/list': {prompts: [{name: 'greet'}]},
    'resources/list': {resources: [{uri: 'note://one', name: 'one'}]},
    'resources/templates/list': {resourceTemplates: []},
    'tools/call': {content: [{type: 'text', text: 'awake'}]},
  }[method] || {}
  say({id, result})
})
if (process.env.SPEAK) setInterval(() => say({method: 'notifications/message', params: {level: 'info', data: 'still here'}}), 10)
`

// sleepy is an upstream whose program may sleep as soon as nobody uses it.
func sleepy(t *testing.T) upstreamtest.Server {
	t.Helper()
	from, server := packaged(t)
	from.Publish("packed", "1.0.1", map[string]any{"bin": "main.js"}, map[string]string{"main.js": sleepyPackage})
	server.Options.Idle, server.Options.QuickStart = time.Millisecond, clocktest.Timeout
	return server
}

func TestProgramOfAPackageSleepsAndKeepsWhatItOffers(t *testing.T) {
	t.Parallel()
	server := sleepy(t)
	h := upstreamtest.Start(t, server)
	h.Await(t, "upstream.asleep")
	h.Manager.Close()

	h = upstreamtest.Open(t, server)
	h.Await(t, "upstream.asleep")
	if st, _ := h.Manager.Status("test"); st.Stats.Connects != 0 || st.Tools != 1 {
		t.Errorf("with its second start: %+v", st)
	}
	peer, _ := h.Manager.Peer("test")
	for method, want := range map[string]string{wire.MethodPromptsList: "greet", wire.MethodResourcesList: "note://one"} {
		if list := peer.Listed(t.Context(), method); len(list) != 1 || !strings.Contains(string(list[0]), want) {
			t.Errorf("%s: %s", method, list)
		}
	}
	if text := h.Text(t, "first", nil); text != "awake" {
		t.Errorf("the first call: %q", text)
	}
	h.Await(t, "upstream.asleep")
}

func TestProgramThatIsKeptRunning(t *testing.T) {
	t.Parallel()
	server := sleepy(t)
	h := upstreamtest.Start(t, server)
	h.Await(t, "upstream.asleep")
	h.Manager.Close()
	for why, change := range map[string]func(*upstreamtest.Server){
		"eager":       func(s *upstreamtest.Server) { s.Spec.Start = upstream.Eager },
		"never":       func(s *upstreamtest.Server) { s.Options.Idle = 0 },
		"slow":        func(s *upstreamtest.Server) { s.Options.QuickStart = time.Nanosecond },
		"a variable":  func(s *upstreamtest.Server) { s.Spec.Env = map[string]string{"MODE": "other"} },
		"no package":  func(s *upstreamtest.Server) { s.Spec.Install = "off" },
		"for someone": func(s *upstreamtest.Server) { s.Spec.Login = upstream.LoginEach },
	} {
		other := server
		change(&other)
		if h := upstreamtest.Open(t, other); h.Await(t, "upstream.connecting").Type == "" {
			t.Errorf("%s: it does not start", why)
		}
	}
}

func TestProgramThatSpeaksUnaskedDoesNotSleep(t *testing.T) {
	t.Parallel()
	server := sleepy(t)
	server.Spec.Env = map[string]string{"SPEAK": "yes"}
	server.Options.Idle = clocktest.Timeout
	h := upstreamtest.Start(t, server)
	clocktest.Await(t, func() bool {
		text, err := os.ReadFile(filepath.Join(server.Options.CacheDir, "upstream-test.json"))
		return err == nil && strings.Contains(string(text), `"speaks":true`)
	})
	h.Manager.Close()
	upstreamtest.Start(t, server)
}

func TestProgramWithSubscribersDoesNotSleep(t *testing.T) {
	t.Parallel()
	for _, start := range []string{"", upstream.Lazy} {
		t.Run(start, func(t *testing.T) {
			t.Parallel()
			server := sleepy(t)
			server.Spec.Start, server.Spec.Idle = start, duration.Duration(server.Options.Idle)
			withSubscribers(t, upstreamtest.Start(t, server))
		})
	}
}

func withSubscribers(t *testing.T, h *upstreamtest.Harness) {
	h.Text(t, "first", nil)
	h.Await(t, "upstream.asleep")
	before, _ := h.Manager.Status("test")
	peer, _ := h.Manager.Peer("test")
	ask := func(method string) {
		if _, err := peer.Request(t.Context(), method, json.RawMessage(`{"uri":"note://one"}`), nil); err != nil {
			t.Fatal(err)
		}
	}
	ask(wire.MethodSubscribe)
	for range 20 {
		h.Text(t, "first", nil)
	}
	if st, _ := h.Manager.Status("test"); st.Stats.Connects != before.Stats.Connects+1 {
		t.Errorf("with a subscriber it was started %d times", st.Stats.Connects-before.Stats.Connects)
	}
	ask(wire.MethodUnsubscribe)
	h.Await(t, "upstream.asleep")
}
