package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config"
)

func TestAPIUpstream(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	load := func(text string) (*config.Loaded, error) {
		file := filepath.Join(folder, "luanette.toml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return config.Load(config.Sources{File: file})
	}
	loaded, err := load(`
[upstreams.shop]
openapi = "shop.yaml"
headers = { X-Key = "${KEY}" }
[upstreams.shop.api]
base_url = "https://shop.example/v1"
include = ["tag:orders"]
query = { key = "${KEY}" }
user = "ann"
password = "very-secret"
cert_file = "client.pem"
key_file = "client.key"
reload = "5m"
`)
	if err != nil {
		t.Fatal(err)
	}
	specs, warnings, err := loaded.UpstreamSpecs(config.Environment{"KEY": "k1"})
	if err != nil || len(warnings) > 0 || len(specs) != 1 {
		t.Fatalf("specs %v, warnings %v, error %v", specs, warnings, err)
	}
	api := specs[0].API
	if api.Source != filepath.Join(folder, "shop.yaml") || api.CertFile != filepath.Join(folder, "client.pem") || api.Query["key"] != "k1" ||
		specs[0].Headers["X-Key"] != "k1" || api.Reload.String() != "5m0s" || api.Include[0] != "tag:orders" {
		t.Errorf("settings are %+v", api)
	}
	if known := loaded.KnownSecrets(config.Environment{}); !strings.Contains(strings.Join(known, " "), "very-secret") {
		t.Errorf("known secrets are %q", known)
	}
	for name, text := range map[string]string{
		"two places":       "[upstreams.a]\nopenapi = \"x\"\nurl = \"https://x.example\"",
		"a wrong selector": "[upstreams.a]\nopenapi = \"x\"\napi = { include = [\"orders\"] }",
		"no key file":      "[upstreams.a]\nopenapi = \"x\"\napi = { cert_file = \"c\" }",
		"no https":         "[upstreams.a]\nopenapi = \"x\"\napi = { base_url = \"shop.example\" }",
	} {
		wrong, err := load(text)
		if err == nil {
			_, _, err = wrong.UpstreamSpecs(nil)
		}
		if code := fault.CodeOf(err); code != fault.Config && code != fault.InvalidParams {
			t.Errorf("%s: %v", name, err)
		}
	}
}
