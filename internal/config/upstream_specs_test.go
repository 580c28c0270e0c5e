package config

import (
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config/configtest"
)

func TestPrefixesBelongToOneUpstream(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"[upstreams.a]\nurl = \"zmq+tcp://127.0.0.1:1\"\nprefixes = [\"x_\"]\n[upstreams.b]\nurl = \"zmq+tcp://127.0.0.1:2\"\nprefixes = [\"x_\"]\n",
		"[upstreams.a]\nurl = \"zmq+tcp://127.0.0.1:1\"\nprefixes = [\"\"]\n",
	} {
		_, err := Load(Sources{File: configtest.WriteFile(t, text)})
		if fault.CodeOf(err) != fault.Config || !strings.Contains(err.Error(), "prefixes") || fault.HintOf(err) == "" {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestVariablesInUpstreamsAreReplaced(t *testing.T) {
	t.Parallel()
	file := configtest.WriteFile(t, `[upstreams.a]
command = "${HOME}/bin/server"
args = ["--level", "${LEVEL:-low}"]
env = { TOKEN = "${env:A_TOKEN}", OTHER = "${NOT_SET}" }
[upstreams.b]
url = "${BASE}/mcp"
headers = { X-Key = "${A_TOKEN}" }
`)
	loaded, err := Load(Sources{File: file})
	if err != nil {
		t.Fatal(err)
	}
	env := Environment{"HOME": "/home/ann", "A_TOKEN": "s3cret", "BASE": "https://example.org"}
	specs, warnings, err := loaded.UpstreamSpecs(env)
	if err != nil {
		t.Fatal(err)
	}
	a, b := specs[0], specs[1]
	if a.Command != "/home/ann/bin/server" || a.Args[1] != "low" || a.Env["TOKEN"] != "s3cret" || a.Env["OTHER"] != "${NOT_SET}" {
		t.Errorf("a = %#v", a)
	}
	if b.URL != "https://example.org/mcp" || b.Headers["X-Key"] != "s3cret" {
		t.Errorf("b = %#v", b)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "NOT_SET") {
		t.Errorf("warnings = %q", warnings)
	}
	if loaded.Upstreams["a"].Env["TOKEN"] != "${env:A_TOKEN}" {
		t.Error("the configuration itself was changed")
	}
}
