package config

import (
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config/configtest"
)

// planted contains secrets that must not be shown.
const planted = `
[upstreams.zz-planted]
url = "https://user:PLANTED@host.example/mcp?key=PLANTED"
headers = { A = "PLANTED" }
`

// FuzzConfig reads any text as a configuration. Every error must be an invalid_config
// fault, and a valid configuration must be shown without its secrets.
func FuzzConfig(f *testing.F) {
	for _, seed := range []string{
		"listen = \"127.0.0.1:0\"\n[upstreams.a]\nurl = \"https://user:x@h/mcp\"\nheaders = { A = \"x\" }\n",
		"[upstreams.a]\ncommand = \"x\"\nargs = [\"x\"]\nenv = { A = \"x\" }\nexpose = [\"a\"]\n", "keys.a = { env = \"A\", scopes = [\"mcp\"] }\n",
		"[[policy.rules]]\ntools = [\"a.*\"]\nthen = \"deny\"\n", "mcp = 1\n", "listen = [\n", "\x00", "a.b.c = 1e400", "chat.key = \"x\"", "[issuers.x]\nissuer = \"https://h\"\n",
		"[limits.default]\nrate = -1\n", "log.level = \"loud\"", "upstreams = { \"\" = {} }",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file := configtest.WriteFile(t, text+planted)
		loaded, err := Load(Sources{File: file, Env: Environment{}})
		if err != nil {
			if fault.CodeOf(err) != fault.Config {
				t.Errorf("%q: %v is a %s", text, err, fault.CodeOf(err))
			}
			return
		}
		var shown strings.Builder
		if err := loaded.Show(&shown); err != nil || strings.Contains(shown.String(), "PLANTED") {
			t.Errorf("%q shows %s (%v)", text, shown.String(), err)
		}
	})
}
