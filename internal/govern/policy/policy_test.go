package policy_test

import (
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/govern/policy"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

func open(t *testing.T, d *db.DB, s policy.Settings) *policy.Policy {
	t.Helper()
	p, err := policy.Open(t.Context(), d, s, func(name string) bool { return name == "lua_eval" })
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func about(name string, hints tool.Hints) *tool.Info {
	space, rest, dotted := strings.Cut(name, ".")
	if !dotted {
		space, rest = "", name
	}
	return &tool.Info{Ref: tool.Ref{Space: space, Name: rest}, Hints: hints}
}

func TestFirstRuleThatFits(t *testing.T) {
	t.Parallel()
	p := open(t, dbtest.Open(t, dbtest.SQLite(t)), policy.Settings{Rules: []policy.Rule{
		{Key: "ci*", Tool: "git.*", Do: policy.Allow},
		{Tool: "git.push", Do: policy.Approve},
		{Key: "guest", Tool: "*", Do: policy.ReadOnly},
		{Tool: "git.*_force", Do: policy.Deny, Reason: "too dangerous"},
	}})
	reads := tool.Hints{ReadOnly: true}
	for _, tt := range []struct {
		key, tool string
		hints     tool.Hints
		want      policy.Verdict
		rule      string
	}{
		{"ci-1", "git.push", tool.Hints{}, policy.Allow, "policy 1 (key ci*, allow git.*)"},
		{"ann", "git.push", tool.Hints{}, policy.Approve, "policy 2 (approve git.push)"},
		{"ann", "git.reset_force", tool.Hints{}, policy.Deny, "policy 4 (deny git.*_force)"},
		{"ann", "git.log", tool.Hints{}, policy.Allow, ""},
		{"guest", "git.log", reads, policy.Allow, "policy 3 (key guest, read_only *)"},
		{"guest", "git.commit", tool.Hints{}, policy.Deny, "policy 3 (key guest, read_only *)"},
		{"guest", "lua_eval", tool.Hints{}, policy.Allow, "policy 3 (key guest, read_only *)"},
		{"guest2", "git.commit", tool.Hints{}, policy.Allow, ""},
	} {
		if got := p.Decide(principal.Principal{Name: tt.key}, about(tt.tool, tt.hints)); got.Verdict != tt.want || got.Rule != tt.rule {
			t.Errorf("%s for %s: %+v", tt.tool, tt.key, got)
		}
	}
	guest := principal.With(t.Context(), principal.Principal{ID: "key:guest", Name: "guest"})
	if _, _, err := p.Admit(guest, about("git.commit", tool.Hints{}), tool.Call{}); fault.CodeOf(err) != fault.Denied || fault.HintOf(err) == "" {
		t.Errorf("%v", err)
	}
	p.Set(policy.Settings{ReadOnly: true, Rules: []policy.Rule{{Tool: "*", Do: policy.Allow}}})
	if got := p.Decide(principal.Principal{Name: "ann"}, about("git.commit", tool.Hints{})); got.Verdict != policy.Deny || got.Rule != "read_only" {
		t.Errorf("a rule overrides read-only mode: %+v", got)
	}
}

// Labels are remembered under names, and only added to.
func TestRemembered(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		p := open(t, d, policy.Settings{Labels: map[string][]string{"crm": {"secret", "personal"}}, Accepts: map[string][]string{"mail": {"personal"}}})
		first, _, err := p.Admit(t.Context(), about("crm.get", tool.Hints{}), tool.Call{})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Remember(first, "job:1"); err != nil {
			t.Fatal(err)
		}
		if err := p.Remember(p.Begin(t.Context()), "job:1"); err != nil { // a run that read nothing
			t.Fatal(err)
		}
		send := func(recalled, to string, args string) error {
			ctx := p.Begin(t.Context())
			if recalled != "" {
				if err := p.Recall(ctx, recalled); err != nil {
					t.Fatal(err)
				}
			}
			if args != "" {
				if _, _, err := p.Admit(ctx, about("job_status", tool.Hints{ReadOnly: true}), tool.Call{Args: []byte(args)}); err != nil {
					t.Fatal(err)
				}
			}
			_, _, err := p.Admit(ctx, about(to, tool.Hints{}), tool.Call{})
			return err
		}
		for _, tt := range []struct {
			recalled, to, args string
			refused            bool
		}{
			{"", "web.post", "", false},
			{"job:2", "web.post", "", false},
			{"job:1", "web.post", "", true},
			{"job:1", "mail.post", "", true},
			{"job:1", "crm.post", "", false},
			{"", "web.post", `{"job_id":"1"}`, true},
			{"", "web.post", `{"job_id":"2"}`, false},
			{"", "web.post", `{}`, true},
			{"job:1", "script_store", "", true},
			{"job:1", "lua_eval", "", false},
		} {
			if err := send(tt.recalled, tt.to, tt.args); (err != nil) != tt.refused {
				t.Errorf("%+v: %v", tt, err)
			}
		}
	})
}

// Effects of scripts that are not tool calls have sinks too.
func TestSinks(t *testing.T) {
	t.Parallel()
	p := open(t, dbtest.Open(t, dbtest.SQLite(t)), policy.Settings{Labels: map[string][]string{"crm": {"secret"}}, Accepts: map[string][]string{"contents": {"*"}}})
	ctx, _, err := p.Admit(t.Context(), about("crm.get", tool.Hints{}), tool.Call{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		effect  host.Effect
		refused bool
	}{
		{host.Effect{Name: "http.request", Kind: host.Read}, true},
		{host.Effect{Name: "fs.write", Kind: host.Idempotent}, true},
		{host.Effect{Name: "fs.write", Kind: host.Idempotent, TempOnly: true}, false},
		{host.Effect{Name: "fs.read", Kind: host.Read}, false},
		{host.Effect{Name: "__run", Kind: host.Write}, true},
		{host.Effect{Name: "git_status", Kind: host.Read}, true},
		{host.Effect{Name: "emit", Kind: host.Write}, true},
		{host.Effect{Name: "tools.mcp_add", Kind: host.Idempotent}, true},
		{host.Effect{Name: "cas.store", Kind: host.Idempotent}, false}, // accepted
		{host.Effect{Name: "results.keep", Kind: host.Write}, false},
		{host.Effect{Name: "midi.write", Kind: host.Idempotent}, true},
		{host.Effect{Name: "log.info", Kind: host.Observe}, false},
		{host.Effect{Name: "clock.now", Kind: host.Nondeterministic}, false},
		{host.Effect{Name: "new.thing", Kind: host.Write}, true},
	} {
		if err := p.Check(ctx, tt.effect); (err != nil) != tt.refused {
			t.Errorf("%+v: %v", tt.effect, err)
		}
	}
	fresh := p.Begin(t.Context())
	p.Answered(fresh, host.Effect{Name: "__next", Kind: host.Nondeterministic}) // others' logs are among events
	if err := p.Check(fresh, host.Effect{Name: "http.request", Kind: host.Read}); err == nil {
		t.Error("data from events goes out")
	}
}
