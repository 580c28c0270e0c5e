package login_test

import (
	"context"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/access/signin"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/credentials/exchange"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// providerFake exchanges every token, and records whose.
type providerFake struct{ people []string }

func (p *providerFake) Subject(_ context.Context, person, org string, _ func(signin.Subject) string) (signin.Subject, error) {
	p.people = append(p.people, person+" of "+org)
	return signin.Subject{Access: "theirs"}, nil
}

func (p *providerFake) Ask(context.Context, signin.Subject, url.Values) (signin.Issued, error) {
	return signin.Issued{Token: "exchanged", Expires: time.Now().Add(time.Hour)}, nil
}

// TestExchangedTokens checks which connections use tokens that are exchanged: those of
// people, and not the one that lists the tools.
func TestExchangedTokens(t *testing.T) {
	t.Parallel()
	f := setup(t)
	fake := &providerFake{}
	spec := upstream.Spec{Name: "wiki", Trusted: true, Settings: upstream.Settings{URL: "https://wiki.example/mcp", Login: upstream.LoginExchange}}
	owned := spec
	owned.Owner = "person:ada/acme"
	if _, err := f.upstreams.Token(t.Context(), owned); fault.CodeOf(err) != fault.Config {
		t.Errorf("nobody signs in: %v", err)
	}
	f.upstreams.WithExchange(exchange.Options{Providers: fake})
	if got, err := f.upstreams.Token(t.Context(), spec); got != "" || err != nil {
		t.Errorf("the connection that lists the tools: %q %v", got, err)
	}
	if got, err := f.upstreams.Token(t.Context(), owned); got != "exchanged" || err != nil {
		t.Errorf("the connection of a person: %q %v", got, err)
	}
	owned.Owner = "person:bob"
	if got, err := f.upstreams.Refused(t.Context(), owned, http.StatusUnauthorized, "", "another"); got != "exchanged" || err != nil {
		t.Errorf("after a refusal: %q %v", got, err)
	}
	owned.Owner = "key:web"
	if got, err := f.upstreams.Token(t.Context(), owned); got != "" || fault.CodeOf(err) != fault.NeedsAuth {
		t.Errorf("a key of nobody: %q %v", got, err)
	}
	if len(fake.people) != 2 || fake.people[0] != "ada of acme" || fake.people[1] != "bob of " {
		t.Errorf("exchanged for %q", fake.people)
	}
}
