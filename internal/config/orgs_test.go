package config_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
)

// TestUpstreamsOfOrganisations checks that two organisations may have upstreams of the
// same name, and one for several organisations is one each.
func TestUpstreamsOfOrganisations(t *testing.T) {
	t.Parallel()
	loaded, err := config.Load(config.Sources{File: configtest.WriteFile(t, `
[upstreams.github]
url = "https://a.example/mcp"
[upstreams.wiki]
url = "https://b.example/mcp"
org = ["acme", "beta"]
[upstreams.books]
url = "https://c.example/mcp"
org = "beta"
[orgs.acme.upstreams.github]
url = "https://d.example/mcp"
headers = { Authorization = "Bearer of acme" }
`)})
	if err != nil {
		t.Fatal(err)
	}
	if names := slices.Sorted(maps.Keys(loaded.Upstreams)); strings.Join(names, " ") != "books@beta github github@acme wiki@acme wiki@beta" {
		t.Error(names)
	}
	specs, _, err := loaded.UpstreamSpecs(nil)
	if err != nil || len(specs) != 5 || specs[2].Name != "github@acme" || specs[2].URL != "https://d.example/mcp" {
		t.Errorf("%+v, %v", specs, err)
	}
	var out strings.Builder
	if err := loaded.Show(&out); err != nil || strings.Contains(out.String(), "of acme") || !strings.Contains(out.String(), `[upstreams.'github@acme']`) {
		t.Errorf("%v: %s", err, out.String())
	}
}

// TestOrganisationsThatCannotBe checks what is refused.
func TestOrganisationsThatCannotBe(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[upstreams.a]\nurl = \"https://a.example\"\norg = \"ac me\"\n":                                                "name of an organisation",
		"[upstreams.a]\nurl = \"https://a.example\"\norg = [5]\n":                                                      "upstreams.a.org",
		"[upstreams.a]\nurl = \"https://a.example\"\norg = \"x\"\nprefixes = [\"a_\"]\n":                               "prefixes",
		"[upstreams.a]\nurl = \"https://a.example\"\norg = \"x\"\n[orgs.x.upstreams.a]\nurl = \"https://b.example\"\n": "two of this name",
		"[orgs.x.upstreams.a]\nurl = \"https://b.example\"\ncommand = \"b\"\n":                                         "a@x",
		"[[orgs.x.policy]]\ndo = \"deny\"\n":                                                                           "orgs.x.policy 1: tool is missing",
		"[[orgs.x.policy]]\ntool = \"*\"\ndo = \"perhaps\"\n":                                                          "orgs.x.policy 1.do",
		"[upstreams.\"a@b_c\"]\nurl = \"https://a.example\"\n":                                                         "a@b_c",
	} {
		loaded, err := config.Load(config.Sources{File: configtest.WriteFile(t, text)})
		if err == nil {
			_, _, err = loaded.UpstreamSpecs(nil)
		}
		if fault.CodeOf(err) != fault.Config || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
