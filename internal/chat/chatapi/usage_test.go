package chatapi_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/chatapi"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/chat/spending"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// countedUsage is a store in which ann and bob of acme have used something.
func countedUsage(t *testing.T, now clock.Clock) *spending.Store {
	t.Helper()
	store, err := spending.Open(t.Context(), dbtest.OpenWith(t, dbtest.Fresh(t), db.Options{}), spending.Options{Budgets: spending.Budgets{PersonDaily: 2, OrgDaily: 9}, Clock: now})
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"ann", "bob"} {
		err := store.Spend(t.Context(), agent.Spender{Turn: "req_" + user, Org: "acme", User: user}, "m", llm.Usage{Input: 10, Output: 2, CacheRead: 5, Cost: 0.5})
		if err != nil {
			t.Fatal(err)
		}
	}
	return store
}

func TestUsageReport(t *testing.T) {
	t.Parallel()
	key := func(name, user string, scope principal.Scope) apikey.Key {
		return apikey.Key{Name: name, Hash: apikey.HashOf(name), Fixed: true, Rights: apikey.Rights{Scopes: []principal.Scope{scope}, Org: "acme", User: user}}
	}
	now := clock.NewVirtual(time.Date(2026, 11, 17, 12, 0, 0, 0, time.UTC))
	p := open(t, assistant, chatapi.Options{Usage: countedUsage(t, now), Clock: now},
		key("org-key", "", principal.Org), key("chat-key", "", principal.Chat), key("ann-key", "ann", principal.Chat))
	const one = `"turns":1,"input_tokens":10,"output_tokens":2,"cache_read_input_tokens":5,"cache_creation_input_tokens":0,"cost_usd":0.5}`
	annOnly := `{"org":"acme","user_id":"ann","total":{` + one + `,"days":[{"day":"2026-11-17",` + one + `],"people":[{"user_id":"ann",` + one + `],` +
		`"turns":[{"request_id":"req_ann","user_id":"ann","began":"2026-11-17T12:00:00Z","model":"m","requests":1,` + one[len(`"turns":1,`):] + `],` +
		`"budgets":[{"setting":"person_daily_usd","limit":2,"used":0.5},{"setting":"org_daily_usd","limit":9,"used":1}]}`
	for _, tt := range []struct {
		name, key, path string
		status          int
		want            string
	}{
		{"one's own", "ann-key", "", 200, annOnly},
		{"of a named person", "chat-key", "?user_id=ann", 200, annOnly},
		{"of another", "ann-key", "?user_id=bob", 403, "as ann only"},
		{"of all", "chat-key", "", 400, "may not see the usage of all users of acme"},
		{"of all, with the scope", "org-key", "?turns=1&days=1", 200, `"total":{"turns":2,"input_tokens":20,`},
		{"of another organisation", "org-key", "?org=other", 403, "may not see the usage of other"},
		{"too many days", "org-key", "?days=0", 400, "days must be"},
	} {
		response, body := httpjsontest.Read(t, http.MethodGet, p.url+"/api/v1/usage"+tt.path, "", "Authorization", "Bearer "+tt.key)
		if response.StatusCode != tt.status || !strings.Contains(body, tt.want) {
			t.Errorf("%s: %d %s\nwant %s", tt.name, response.StatusCode, body, tt.want)
		}
	}
	_, body := httpjsontest.Read(t, http.MethodGet, p.url+"/api/v1/admin/orgs/acme/usage?days=1", "", "Authorization", "Bearer org-key")
	if strings.TrimSpace(body) != `{"org":"acme","days":1,"users":[{"user_id":"ann",`+one+`,{"user_id":"bob",`+one+`]}` {
		t.Error(body)
	}
}

// TestBudgetIsA429 checks what a client gets whose budget is used up.
func TestBudgetIsA429(t *testing.T) {
	t.Parallel()
	now := clock.NewVirtual(time.Date(2026, 11, 17, 12, 0, 0, 0, time.UTC))
	store := countedUsage(t, now)
	if err := store.Spend(t.Context(), agent.Spender{Turn: "req", User: "u"}, "m", llm.Usage{Cost: 2}); err != nil {
		t.Fatal(err)
	}
	p := open(t, func(ctx context.Context, r agent.Request, _ func(agent.Event)) (agent.Reply, error) {
		return agent.Reply{}, store.Check(ctx, agent.Spender{Turn: r.ID, Org: r.Org, User: r.User})
	}, chatapi.Options{})
	for range 2 { // the second time from the stored outcome of the first, which is tried again
		response, body := httpjsontest.Read(t, http.MethodPost, p.url+"/api/v1/chat", `{"client_id":"c","user_id":"u","message":"hi","message_key":"k"}`)
		if response.StatusCode != http.StatusTooManyRequests || response.Header.Get("Retry-After") != "43200" ||
			!strings.Contains(body, `"code":"BUDGET_EXCEEDED"`) || !strings.Contains(body, `"retry_after_ms":43200000`) {
			t.Errorf("%d %v %s", response.StatusCode, response.Header, body)
		}
	}
}
