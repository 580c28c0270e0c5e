package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/credentials/oauth"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/store/db"
)

// conformanceScenarios are the login scenarios of the official client suite.
var conformanceScenarios = []string{
	"initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry", "request-metadata",
	"sep-2322-client-request-state", "http-standard-headers", "http-custom-headers", "http-invalid-tool-headers",
	"json-schema-ref-no-deref", "json-schema-2020-12-preservation",
	"auth/metadata-default", "auth/metadata-var1", "auth/metadata-var2", "auth/metadata-var3", "auth/basic-cimd",
	"auth/scope-from-www-authenticate", "auth/scope-from-scopes-supported", "auth/scope-omitted-when-undefined",
	"auth/scope-step-up", "auth/scope-retry-limit",
	"auth/token-endpoint-auth-basic", "auth/token-endpoint-auth-post", "auth/token-endpoint-auth-none",
	"auth/pre-registration", "auth/2025-03-26-oauth-metadata-backcompat", "auth/2025-03-26-oauth-endpoint-fallback",
	"auth/resource-mismatch", "auth/offline-access-scope", "auth/offline-access-not-supported",
	"auth/authorization-server-migration", "auth/iss-supported", "auth/iss-not-advertised", "auth/iss-supported-missing",
	"auth/iss-wrong-issuer", "auth/iss-unexpected", "auth/iss-normalized", "auth/metadata-issuer-mismatch",
	"auth/client-credentials-jwt", "auth/client-credentials-basic",
}

// conformanceLogin is Options.Login as the server package implements it.
type conformanceLogin struct{ *oauth.Logins }

func conformanceServer(s upstream.Spec) oauth.Server {
	return oauth.Server{Name: s.Name, URL: s.URL, Trusted: s.Trusted, Settings: oauth.Settings{
		ClientID: s.OAuth.ClientID, ClientSecret: s.OAuth.ClientSecret, ClientKey: s.OAuth.ClientKey, Grant: s.OAuth.Grant,
	}}
}

func (l conformanceLogin) Token(ctx context.Context, s upstream.Spec) (string, error) {
	return l.Logins.Token(ctx, conformanceServer(s))
}

func (l conformanceLogin) Refused(ctx context.Context, s upstream.Spec, status int, challenge, token string) (string, error) {
	return l.Logins.Refused(ctx, conformanceServer(s), oauth.Refusal{Status: status, Challenge: oauth.ParseChallenge(challenge), Token: token})
}

// playLogin is a client whose user agrees to every login.
func playLogin(ctx context.Context, o upstream.Options, spec upstream.Spec) int {
	folder, err := os.MkdirTemp("", "conformance")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	if err := logsIn(ctx, o, spec, folder); err != nil {
		fmt.Fprintln(os.Stderr, err, fault.HintOf(err))
		return 1
	}
	return 0
}

func logsIn(ctx context.Context, o upstream.Options, spec upstream.Spec, folder string) error {
	store, err := db.Open(ctx, "sqlite:"+folder+"/test.db", db.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	logins, err := oauth.Open(ctx, store, oauth.Options{
		Key:         func() (secret.Text, error) { return secret.New("a key for this test only"), nil },
		MetadataURL: "https://conformance-test.local/client-metadata.json",
	})
	if err != nil {
		return err
	}
	spec.OAuth = conformanceSettings()
	o.Login = conformanceLogin{logins}
	m := upstream.New(o)
	defer m.Close()
	changes := o.Events.Subscribe(event.Options{Types: []string{"upstream.connected", "upstream.needs_auth"}})
	if err := m.Add(spec); err != nil {
		return err
	}
	for range 3 { // the user gives up after three logins
		e, err := changes.Next(ctx)
		if err != nil {
			return err
		}
		if _, wants := e.Data.(upstream.NeedsAuth); wants {
			if err := agree(ctx, logins, conformanceServer(spec)); err != nil {
				return err
			}
			m.Retry(spec.Name)
			continue
		}
		if again, err := callsAll(ctx, m, logins, spec); !again {
			return err
		}
	}
	return nil
}

// callsAll calls every tool, and agrees when one needs another scope. It reports
// whether the server requires a login again.
func callsAll(ctx context.Context, m *upstream.Manager, logins *oauth.Logins, spec upstream.Spec) (again bool, err error) {
	for _, call := range conformanceCalls(ctx, m) {
		call.Caller = &tool.Caller{}
		for range 2 {
			_, err = m.Call(ctx, call)
			if fault.CodeOf(err) != fault.NeedsAuth {
				break
			}
			if st, _ := m.Status(spec.Name); st.State != upstream.StateConnected {
				return true, nil
			}
			if err := agree(ctx, logins, conformanceServer(spec)); err != nil {
				return false, err
			}
		}
	}
	return false, err
}

// agree acts as the user: it opens the URL, and the browser returns at once.
func agree(ctx context.Context, logins *oauth.Logins, s oauth.Server) error {
	begun, err := logins.Begin(ctx, s, oauth.Return{URL: "http://127.0.0.1:3000/callback"})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, begun.URL, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return err
	}
	response.Body.Close()
	back, err := url.Parse(response.Header.Get("Location"))
	if err != nil {
		return err
	}
	_, err = logins.Finish(ctx, back.Query())
	return err
}

func conformanceSettings() upstream.OAuth {
	var given struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
		Key    string `json:"private_key_pem"`
	}
	_ = json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &given)
	s := upstream.OAuth{ClientID: given.ID, ClientSecret: given.Secret, ClientKey: given.Key}
	switch os.Getenv("MCP_CONFORMANCE_SCENARIO") {
	case "auth/client-credentials-jwt", "auth/client-credentials-basic":
		s.Grant = oauth.GrantCredentials
	}
	return s
}
