package attacks

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/luanette/luanette/internal/config"
)

// newAsker starts a tool server that asks for a name; answered counts the answers.
func newAsker(t *testing.T) (url string, answered func() int) {
	var mu sync.Mutex
	count := 0
	tools := mcp.NewServer(&mcp.Implementation{Name: "asker", Version: "1"}, nil)
	type about struct {
		Why string `json:"why"`
	}
	mcp.AddTool(tools, &mcp.Tool{Name: "ask"}, func(ctx context.Context, r *mcp.CallToolRequest, _ about) (*mcp.CallToolResult, any, error) {
		answer, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Who are you?"})
		if err != nil {
			return nil, nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		count++
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "answered " + answer.Action}}}, nil, nil
	})
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, nil))
	t.Cleanup(server.Close)
	return server.URL, func() int {
		mu.Lock()
		defer mu.Unlock()
		return count
	}
}

// round calls the tool that asks, with more members of params after its arguments.
func (h *program) round(who map[string]string, why, more string) string {
	h.t.Helper()
	headers := map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "asker__ask"}
	for name, value := range who {
		headers[name] = value
	}
	_, text := h.ask(http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"asker__ask","arguments":{"why":"`+why+`"}`+more+
		`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}}}`, headers)
	return text
}

// question reads the answer of the first round: its state, and the members of params that
// answer it.
func question(t *testing.T, text string) (state string, retry func(state string) string) {
	t.Helper()
	var answer struct {
		Result struct {
			ResultType    string                     `json:"resultType"`
			RequestState  string                     `json:"requestState"`
			InputRequests map[string]json.RawMessage `json:"inputRequests"`
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.Result.ResultType != "input_required" || len(answer.Result.InputRequests) != 1 {
		t.Fatalf("no question: %s", text)
	}
	key := ""
	for name := range answer.Result.InputRequests {
		key = name
	}
	return answer.Result.RequestState, func(state string) string {
		return `,"requestState":"` + state + `","inputResponses":{"` + key + `":{"action":"accept","content":{}}}`
	}
}

// TestAttackRequestState answers a call that waits for input with its requestState changed
// at every position, with another key, for another request, at another server, twice, and
// several times at once. Only the same request continues, and only once.
func TestAttackRequestState(t *testing.T) {
	t.Parallel()
	asker, answered := newAsker(t)
	text := "mcp.menu = \"full\"\nkeys.ann = { env = \"ANN\", scopes = [\"mcp\"] }\nkeys.bob = { env = \"BOB\", scopes = [\"mcp\"] }\n[upstreams.asker]\nurl = \"" + asker + "\"\nexpose = \"all\"\n"
	env := config.Environment{"ANN": "ann-token", "BOB": "bob-token"}
	ann, bob := bearing("ann-token"), bearing("bob-token")
	h, _ := serve(t, text, env)
	h.awaitAs(ann, "mcp_status", map[string]any{"namespace": "asker"}, `"state":"connected"`)
	state, retry := question(t, h.round(ann, "fun", ""))

	refused := func(what, text string) {
		t.Helper()
		if !strings.Contains(text, "requestState is not valid") {
			t.Errorf("%s: %s", what, text)
		}
	}
	for at := range state {
		changed := []byte(state)
		changed[at] = 'A' + (changed[at]-'A'+1)%26
		refused("changed", h.round(ann, "fun", retry(string(changed))))
	}
	for _, cut := range []string{state[1:], state[:len(state)-1], state + "AAAA", state + state, "AAAA"} {
		refused("cut", h.round(ann, "fun", retry(cut)))
	}
	refused("bob", h.round(bob, "fun", retry(state)))
	refused("other arguments", h.round(ann, "profit", retry(state)))
	other, _ := serve(t, text, env)
	other.awaitAs(ann, "mcp_status", map[string]any{"namespace": "asker"}, `"state":"connected"`)
	refused("another server", other.round(ann, "fun", retry(state)))
	if n := answered(); n != 0 {
		t.Fatalf("%d invalid answers were accepted", n)
	}

	answers := make([]string, 8)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() { answers[i] = h.round(ann, "fun", retry(state)) })
	}
	all.Wait()
	through := 0
	for _, text := range answers {
		if strings.Contains(text, "answered accept") {
			through++
		} else if !strings.Contains(text, "no longer waits") {
			t.Errorf("at once: %s", text)
		}
	}
	if again := h.round(ann, "fun", retry(state)); !strings.Contains(again, "no longer waits") {
		t.Errorf("again: %s", again)
	}
	if through != 1 || answered() != 1 {
		t.Errorf("%d of the same answers were accepted, and the server received %d", through, answered())
	}
}
