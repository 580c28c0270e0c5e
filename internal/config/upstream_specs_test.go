package config

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/mcp/faultinject"
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

// A recording replaces the server, is found beside the configuration, and needs no trust;
// writing one does.
func TestRecordedUpstreams(t *testing.T) {
	t.Parallel()
	file := configtest.WriteFile(t, `[upstreams.both]
command = "sh"
transport = "stdio"
mock = "a.json"
[upstreams.only]
mock = "/far/b.json"
faults = { delay = "200ms", fail = 0.1, drop = 0.01, seed = 7 }
[upstreams.recorded]
url = "https://example.org/mcp"
record = "c.json"
`)
	loaded, err := Load(Sources{File: file})
	if err != nil {
		t.Fatal(err)
	}
	specs, _, err := loaded.UpstreamSpecs(nil)
	if err != nil {
		t.Fatal(err)
	}
	both, only, recorded := specs[0], specs[1], specs[2]
	if both.Mock != filepath.Join(filepath.Dir(file), "a.json") || both.Command != "" {
		t.Errorf("both = %+v", both)
	}
	if want := (faultinject.Faults{Delay: Duration(200 * time.Millisecond), Fail: 0.1, Drop: 0.01, Seed: 7}); only.Mock != "/far/b.json" || only.Faults != want {
		t.Errorf("only = %+v", only)
	}
	if recorded.Record != filepath.Join(filepath.Dir(file), "c.json") || recorded.URL == "" {
		t.Errorf("recorded = %+v", recorded)
	}
	if items := loaded.NeedingTrust(); len(items) != 1 || items[0].Key != "upstreams.recorded" || items[0].Does != "writes to c.json" {
		t.Errorf("trust is needed for %+v", items)
	}
	loaded.Isolate()
	if names := slices.Sorted(maps.Keys(loaded.Upstreams)); !slices.Equal(names, []string{"both", "only"}) {
		t.Errorf("isolated, there are %q", names)
	}
	for _, wrong := range []string{"[upstreams.a]\nmock = \"x\"\nurl = \"http://a\"\ncommand = \"b\"\n", "[upstreams.a]\nrecord = \"x\"\n", "[upstreams.a]\nmock = \"x\"\nfaults = { fail = 2.0 }\n"} {
		l, err := Load(Sources{File: configtest.WriteFile(t, wrong)})
		if err == nil {
			_, _, err = l.UpstreamSpecs(nil)
		}
		if fault.CodeOf(err) != fault.Config {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
