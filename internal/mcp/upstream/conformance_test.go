package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/skills"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// The official suite tests our client: it is the server, and this binary, in the
// role below, is the client. LUANETTE_TEST_CONFORMANCE is the node_modules folder
// with the suite, which has a node of its own.
func TestClientConformance(t *testing.T) {
	t.Parallel()
	modules := os.Getenv("LUANETTE_TEST_CONFORMANCE")
	if modules == "" {
		t.Skip("make conformance runs it, with the official suite that it installs")
	}
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, scenario := range conformanceScenarios {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			judge := exec.CommandContext(t.Context(), filepath.Join(modules, ".bin", "conformance"), "client", "--command", binary, "--scenario", scenario)
			judge.Dir = t.TempDir()
			judge.Env = append(os.Environ(), roleVariable+"=conformance", "PATH="+filepath.Join(modules, ".bin")+":"+os.Getenv("PATH"))
			if out, err := judge.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// playConformance is a client that does what a scenario expects.
func playConformance() int {
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()
	bus := event.New(event.BusOptions{})
	connected := bus.Subscribe(event.Options{Types: []string{"upstream.connected"}})
	spec := upstream.Spec{Name: "test", Settings: upstream.Settings{URL: os.Args[len(os.Args)-1], Wait: duration.Duration(10 * time.Second)}, Trusted: true}
	o := upstream.Options{Events: bus, Getenv: os.LookupEnv, Environ: os.Environ}
	if strings.HasPrefix(os.Getenv("MCP_CONFORMANCE_SCENARIO"), "auth/") {
		return playLogin(ctx, o, spec)
	}
	m := upstream.New(o)
	defer m.Close()
	if err := m.Add(spec); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if _, err := connected.Next(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "not connected: %+v\n", m.List())
		return 1
	}
	for _, call := range conformanceCalls(ctx, m) {
		call.Caller = &tool.Caller{Capabilities: json.RawMessage(`{"elicitation":{"form":{"applyDefaults":true}}}`), Ask: acceptAll}
		if result, err := m.Call(ctx, call); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %s %v\n", call.Ref, result.Raw, err)
		}
	}
	peer, _ := m.Peer("test")
	if strings.HasPrefix(os.Getenv("MCP_CONFORMANCE_SCENARIO"), "sep-2640-client-") {
		return playSkills(ctx, bus, peer)
	}
	readFirst(ctx, peer, wire.MethodResourcesList, "resources", wire.MethodResourcesRead, "uri")
	readFirst(ctx, peer, wire.MethodPromptsList, "prompts", wire.MethodPromptsGet, "name")
	return 0
}

// playSkills lists skills, as the manager does when it is connected, and reads the files of each
// until one is refused. One scenario is about a client that reads none.
func playSkills(ctx context.Context, bus *event.Bus, peer *upstream.Peer) int {
	listed := bus.Subscribe(event.Options{Types: []string{"upstream.lists_refreshed"}})
	entries := peer.Listed(ctx, wire.MethodSkillsList)
	for len(entries) == 0 {
		if _, err := listed.Next(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "no skills were listed:", err)
			return 1
		}
		entries = peer.Listed(ctx, wire.MethodSkillsList)
	}
	if os.Getenv("MCP_CONFORMANCE_SCENARIO") == "sep-2640-client-no-prefetch" {
		return 0
	}
	for _, entry := range entries {
		skill, err := skills.Read(entry)
		for _, file := range skill.Files {
			if err == nil {
				_, err = peer.Request(ctx, wire.MethodResourcesRead, rawjson.SetText(nil, "uri", file.URI), nil)
			}
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return 0
}

// conformanceCalls are the calls that the scenario names, or one of each tool.
func conformanceCalls(ctx context.Context, m *upstream.Manager) (calls []tool.Call) {
	var wanted struct {
		ToolCalls []struct {
			Name      string
			Arguments json.RawMessage
		}
	}
	_ = json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &wanted)
	for _, c := range wanted.ToolCalls {
		calls = append(calls, tool.Call{Ref: ref(c.Name), Args: c.Arguments})
	}
	if calls != nil {
		return calls
	}
	infos, _ := m.Tools(ctx)
	for _, info := range infos {
		args := json.RawMessage(`{}`)
		switch {
		case info.Name == "add_numbers":
			args = json.RawMessage(`{"a":5,"b":3}`)
		case info.Name == "json_schema_echo":
			for _, other := range infos {
				if other.Name == "json_schema_2020_12_tool" {
					args = rawjson.Set(nil, "schema", other.Input)
				}
			}
		case strings.Contains(string(info.Input), `"region"`):
			args = json.RawMessage(`{"region":"us-west1"}`)
		}
		calls = append(calls, tool.Call{Ref: info.Ref, Args: args})
	}
	return calls
}

// acceptAll agrees to every question with the values its form proposes.
func acceptAll(_ context.Context, questions []tool.Question) ([]json.RawMessage, error) {
	replies := make([]json.RawMessage, len(questions))
	for i, q := range questions {
		content := json.RawMessage(`{}`)
		schema, _ := rawjson.Get(q.Params, "requestedSchema")
		properties, _ := rawjson.Get(schema, "properties")
		rawjson.Each(properties, func(name string, property json.RawMessage) bool {
			value, proposed := rawjson.Get(property, "default")
			if kind, _ := rawjson.GetText(property, "type"); !proposed && kind == "boolean" {
				value, proposed = json.RawMessage("true"), true
			}
			if proposed {
				content = rawjson.Set(content, name, value)
			}
			return true
		})
		replies[i] = rawjson.Set(json.RawMessage(`{"action":"accept"}`), "content", content)
	}
	return replies, nil
}

// readFirst reads the first item of a list.
func readFirst(ctx context.Context, peer *upstream.Peer, list, key, read, by string) {
	result, err := peer.Request(ctx, list, nil, nil)
	if err != nil {
		return
	}
	raw, _ := rawjson.Get(result, key)
	if items, _ := rawjson.Items(raw); len(items) > 0 {
		id, _ := rawjson.Get(items[0], by)
		_, _ = peer.Request(ctx, read, rawjson.Set(nil, by, id), nil)
	}
}
