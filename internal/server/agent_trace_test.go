package server

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/observe/telemetry/otlptest"
)

// TestChatTrace checks that the spans of a chat, its scripts and the upstream form one
// trace, and that spans and logs contain neither messages nor keys.
func TestChatTrace(t *testing.T) {
	t.Parallel()
	sink := otlptest.Start(t)
	steps, err := llmtest.Parse(`
		use lua_eval {"code":"return mcp.left.echo{ text = 'my secret' }"}
		use left__echo {"text":"my secret"}
		use lua_eval {"code":"return pcall(tools.mcp_remove, 'left')"}
		---
		expect may not add or remove servers
		say "it said my secret"
	`)
	if err != nil {
		t.Fatal(err)
	}
	model := llmtest.Play(t, steps...)
	file := configtest.WriteFile(t, "[chat]\nbase_url = \""+model.URL+"\"\n[upstreams.left]\nurl = \""+echoServer(t, "left", sink)+"/mcp\"\n")
	env := config.Environment{"HOME": t.TempDir(), "ANTHROPIC_API_KEY": llmtest.Key}
	loaded, err := config.Load(config.Sources{File: file, Env: env, Flags: map[string]string{"telemetry.otlp_endpoint": sink.HTTP}})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := Build(t.Context(), loaded, Options{Version: "test", Stderr: io.Discard, Env: env})
	if err != nil {
		t.Fatal(err)
	}
	srv.upstreams.AwaitAttempts(t.Context(), clocktest.Timeout)
	assistant, err := srv.NewAgent()
	if err != nil {
		t.Fatal(err)
	}
	reply, err := assistant.Turn(t.Context(), agent.Request{Client: "terminal", User: "anna", Conversation: "terminal", Message: "what is my secret?"}, func(agent.Event) {})
	if err != nil || reply.Text() != "it said my secret" || reply.ToolCalls != 4 {
		t.Fatalf("%+v, %v", reply, err)
	}
	parents := func() [][]string {
		var all [][]string
		for _, span := range sink.Spans() {
			if span.Name == "tools/call echo" && span.Resource["service.name"] == "left" {
				all = append(all, ancestors(sink, span))
			}
		}
		return all
	}
	agents := []string{"iteration", "invoke_agent luanette"}
	call := []string{"tools/call echo", "luanette.mcp.left.echo"}
	direct := slices.Concat(call, []string{"execute_tool left.echo"}, agents)
	script := slices.Concat(call, []string{"luanette.script.execute", "luanette.tool.lua_eval", "execute_tool lua_eval"}, agents)
	clocktest.Await(t, func() bool {
		seen := parents()
		return slices.ContainsFunc(seen, func(a []string) bool { return slices.Equal(a, direct) }) &&
			slices.ContainsFunc(seen, func(a []string) bool { return slices.Equal(a, script) })
	})
	if err := srv.Close(t.Context()); err != nil { // it sends the remaining spans
		t.Error(err)
	}
	for _, span := range sink.Spans() {
		if text := fmt.Sprintf("%+v", span); strings.Contains(text, "my secret") || strings.Contains(text, llmtest.Key) {
			t.Errorf("it contains a secret: %s", text)
		}
	}
	for _, record := range sink.Logs() {
		if text := fmt.Sprintf("%+v", record); strings.Contains(text, "my secret") || strings.Contains(text, llmtest.Key) {
			t.Errorf("it contains a secret: %s", text)
		}
	}
}
