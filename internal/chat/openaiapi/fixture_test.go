package openaiapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/httpauth"
	"github.com/luanette/luanette/internal/access/owner"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/completion"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
	"github.com/luanette/luanette/internal/chat/openaiapi"
	"github.com/luanette/luanette/internal/chat/spending"
	"github.com/luanette/luanette/internal/chat/turn"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(clocktest.Settled(m)) }

// clockTool are the agent's own tools: clock.now and clock.face, which returns an image.
type clockTool struct{}

// face is the image of clock.face, in base64.
const face = "iVBORw0KGgo="

func (clockTool) Tools(context.Context) ([]tool.Info, error) {
	return []tool.Info{
		{Ref: tool.Ref{Space: "clock", Name: "now"}, Description: "Tells the time.", Input: json.RawMessage(`{"type":"object"}`)},
		{Ref: tool.Ref{Space: "clock", Name: "face"}, Description: "Shows the time.", Input: json.RawMessage(`{"type":"object"}`)},
	}, nil
}

func (clockTool) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	if call.Ref.Name == "face" {
		return tool.Result{Raw: json.RawMessage(`{"content":[{"type":"image","mimeType":"image/png","data":"` + face + `"}]}`)}, nil
	}
	return tool.Output("noon", nil)
}

// dailyTokens is the budget of each person.
const dailyTokens = 1_000_000

// fixture is the API over an agent, with a fake model.
type fixture struct {
	url     string
	model   *llmtest.Server
	service *turn.Service
	usage   *spending.Store
}

// play returns a fixture in which the model of a provider answers as the scenario says.
func play(t *testing.T, provider, scenario string, keys ...apikey.Key) fixture {
	t.Helper()
	steps, err := llmtest.Parse(scenario)
	if err != nil {
		t.Fatal(err)
	}
	return playModel(t, provider, llmtest.Play(t, steps...), openaiapi.Options{}, keys...)
}

func playModel(t *testing.T, provider string, server *llmtest.Server, o openaiapi.Options, fixed ...apikey.Key) fixture {
	t.Helper()
	model, err := llm.Open(llm.Options{
		Provider: provider, Model: "claude-sonnet-5-5", BaseURL: server.URL, Key: secret.New(llmtest.Key),
		Retry: llm.Retry{Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }},
	})
	if err != nil {
		t.Fatal(err)
	}
	database := dbtest.OpenWith(t, dbtest.Fresh(t), db.Options{})
	counted, err := spending.Open(t.Context(), database, spending.Options{
		Budgets: spending.Budgets{PersonDailyTokens: dailyTokens}, Clock: clock.NewVirtual(time.Unix(1_800_000_000, 0)),
	})
	if err != nil {
		t.Fatal(err)
	}
	answerer, err := agent.New(agent.Options{Model: model, Tools: clockTool{}, Budget: counted})
	if err != nil {
		t.Fatal(err)
	}
	service, err := turn.Open(t.Context(), database, answerer, turn.Options{})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := apikey.Open(t.Context(), database, apikey.Options{Fixed: fixed})
	if err != nil {
		t.Fatal(err)
	}
	auth := httpauth.New(httpauth.Options{Keys: keys, Peers: &owner.Peers{Local: owner.AsOwner}})
	api := httptest.NewServer(auth.Mux(openaiapi.New(completion.New(service, database), o).Routes()))
	t.Cleanup(func() {
		api.CloseClientConnections()
		api.Close()
		auth.Close()
		service.Close()
	})
	return fixture{api.URL, server, service, counted}
}

// post sends a request and returns its status, headers and body.
func (f fixture) post(t *testing.T, body string, header ...string) (*http.Response, string) {
	t.Helper()
	return httpjsontest.Read(t, http.MethodPost, f.url+"/v1/chat/completions", body, header...)
}

// answer sends a request that succeeds.
func (f fixture) answer(t *testing.T, body string) string {
	t.Helper()
	response, text := f.post(t, body)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", response.StatusCode, text)
	}
	return text
}

// has fails the test if a text lacks a part.
func has(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s\nlacks %s", text, part)
		}
	}
}

// chunks returns the data of a stream's events.
func chunks(t *testing.T, body io.Reader) (list []string) {
	t.Helper()
	all, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	for part := range bytes.SplitSeq(bytes.TrimSpace(all), []byte("\n\n")) {
		list = append(list, strings.TrimPrefix(string(part), "data: "))
	}
	return list
}
