package identitytest

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/access/oauthtest"
	"github.com/luanette/luanette/internal/base/npmtest"
)

//go:embed provider.mjs
var providerScript []byte

// Provider is oidc-provider of npm, at which anybody logs in with a name. Its client is
// oauthtest.ClientID.
type Provider struct {
	URL string // the issuer

	in  io.Writer
	out *bufio.Reader
}

// NewProvider starts a provider with a client for the hub at an address. It ends with the
// test.
func NewProvider(t testing.TB, hubURL string) *Provider {
	t.Helper()
	modules := npmtest.Modules(t)
	if _, err := os.Stat(filepath.Join(modules, "oidc-provider")); err != nil {
		t.Fatalf("`make servers` installs oidc-provider: %v", err)
	}
	file := filepath.Join(t.TempDir(), "provider.mjs")
	if err := os.WriteFile(file, providerScript, 0o600); err != nil {
		t.Fatal(err)
	}
	program := exec.CommandContext(t.Context(), npmtest.Program(t, "node"), file)
	program.Env = []string{"MODULES=" + modules, "HUB=" + hubURL, "CLIENT_ID=" + oauthtest.ClientID, "CLIENT_SECRET=" + oauthtest.ClientSecret}
	var problems strings.Builder
	program.Stderr = &problems
	in, err := program.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = program.Wait() // it ends with its input, or with the test
		if t.Failed() {
			t.Log(problems.String())
		}
	})
	p := &Provider{in: in, out: bufio.NewReader(out)}
	p.URL = p.line(t)
	return p
}

// line reads the next line that the program prints.
func (p *Provider) line(t testing.TB) string {
	t.Helper()
	text, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatalf("read from oidc-provider: %v", err)
	}
	return strings.TrimSpace(text)
}

// SetGroups sets the groups of somebody, who has them from the next login on.
func (p *Provider) SetGroups(t testing.TB, login string, groups ...string) {
	t.Helper()
	change, err := json.Marshal(map[string]any{"login": login, "groups": groups})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.in.Write(append(change, '\n')); err != nil {
		t.Fatal(err)
	}
	for p.line(t) != string(change) { // what oidc-provider says by itself
	}
}

// LogIn types a name into the provider's page, and consents.
func (b *Browser) LogIn(t testing.TB, p Page, name string) Page {
	t.Helper()
	p = b.Submit(t, p, map[string]string{"login": name, "password": "any"})
	if strings.Contains(p.Body, `value="consent"`) {
		p = b.Submit(t, p, nil)
	}
	return p
}
