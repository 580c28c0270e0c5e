package server

import (
	"os"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
)

// Every piece of configuration on docs/backends.md is read as it stands there.
func TestBackendsPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/backends.md")
	if err != nil {
		t.Fatal(err)
	}
	files := configtest.CodeBlocks(string(page), "toml")
	if len(files) != 2 {
		t.Fatalf("the page shows %d files", len(files))
	}
	for _, text := range files {
		loaded, err := config.Load(config.Sources{File: configtest.WriteFile(t, text)})
		if err != nil {
			t.Errorf("%s\n%v", text, err)
			continue
		}
		if _, warnings, err := loaded.UpstreamSpecs(nil); err != nil || len(warnings) > 0 {
			t.Errorf("%s\n%v %q", text, err, warnings)
		}
	}
}

func TestPrefixesLeadToOneUpstream(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"[upstreams.a]\nurl = \"zmq+tcp://127.0.0.1:1\"\nprefixes = [\"x_\"]\n[upstreams.b]\nurl = \"zmq+tcp://127.0.0.1:2\"\nprefixes = [\"x_\"]\n",
		"[upstreams.a]\nurl = \"zmq+tcp://127.0.0.1:1\"\nprefixes = [\"\"]\n",
	} {
		_, err := config.Load(config.Sources{File: configtest.WriteFile(t, text)})
		if fault.CodeOf(err) != fault.Config || !strings.Contains(err.Error(), "prefixes") || fault.HintOf(err) == "" {
			t.Errorf("%s: %v", text, err)
		}
	}
}
