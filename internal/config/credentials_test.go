package config

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
)

const withSecret = `
[secrets.gh]
value = "${env:TOKEN}"
hosts = ["api.github.com"]
[secrets.local]
value = "${env:TOKEN}"
[upstreams.github]
command = "server"
env = { GITHUB_TOKEN = "secret:gh", SIGNING_KEY = "secret:local", MODE = "fast" }
`

func TestSecretsOfPrograms(t *testing.T) {
	t.Parallel()
	sources := sourcesWith(t, withSecret)
	l := load(t, sources)
	specs, _, err := l.UpstreamSpecs(Environment{"TOKEN": "s3cret-value"})
	if err != nil || len(specs) != 1 {
		t.Fatal(specs, err)
	}
	spec := specs[0]
	if _, has := spec.Env["GITHUB_TOKEN"]; has || spec.Env["SIGNING_KEY"] != "s3cret-value" || spec.Env["MODE"] != "fast" {
		t.Errorf("%v", spec.Env)
	}
	if c := spec.Credentials; len(c) != 1 || c[0].Name != "gh" || c[0].Variable != "GITHUB_TOKEN" || c[0].Value.Reveal() != "${env:TOKEN}" || c[0].Hosts[0] != "api.github.com" {
		t.Errorf("%+v", c)
	}
	if l.Upstreams["github"].Env["GITHUB_TOKEN"] != "secret:gh" {
		t.Error("the configuration itself was changed")
	}
	var shown strings.Builder
	if err := l.Show(&shown); err != nil || !strings.Contains(shown.String(), "[secrets.gh]\nvalue = '${env:TOKEN}'") || !strings.Contains(shown.String(), "secret:gh") {
		t.Errorf("%v\n%s", err, shown.String())
	}
}

func TestSecretsThatAreWrong(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[secrets.gh]\nhosts = [\"a.example\"]\n":                                                         "secrets.gh: value is missing",
		"[secrets.gh]\nvalue = \"x\"\nhosts = [\"*.example\"]\n":                                          "secrets.gh: hosts of secret gh",
		"[secrets.gh]\nvalue = \"x\"\n[upstreams.a]\ncommand = \"x\"\nenv = { TOKEN = \"secret:ghh\" }\n": `upstreams.a.env.TOKEN: there is no secret "ghh"`,
	} {
		_, err := Load(sourcesWith(t, text))
		if err == nil || !strings.Contains(err.Error(), want) || fault.HintOf(err) == "" {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// Who trusts a program trusts where its secrets go: another host needs new trust.
func TestTrustCoversHostsOfSecrets(t *testing.T) {
	t.Parallel()
	before, after := load(t, sourcesWith(t, withSecret)), load(t, sourcesWith(t, strings.Replace(withSecret, "api.github.com", "evil.example", 1)))
	first, _ := before.trustItem("github")
	second, _ := after.trustItem("github")
	if first == second {
		t.Error("the hosts of a secret do not count")
	}
}

// sourcesWith is a configuration file with a text.
func sourcesWith(t *testing.T, text string) Sources {
	t.Helper()
	file := filepath.Join(t.TempDir(), "luanette.toml")
	writeFile(t, file, text)
	return Sources{File: file, Env: Environment{"HOME": t.TempDir(), "TOKEN": "s3cret-value"}}
}
