package apikey_test

import (
	"testing"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
)

func TestParseHash(t *testing.T) {
	t.Parallel()
	hash, err := apikey.ParseHash("sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")
	if err != nil || hash != apikey.HashOf("test") {
		t.Errorf("%x, %v", hash, err)
	}
	for _, bad := range []string{"", "test", "sha256:", "sha256:zz", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"} {
		if _, err := apikey.ParseHash(bad); fault.CodeOf(err) != fault.Config {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	good := apikey.Key{Name: "web", Rights: apikey.Rights{Scopes: []principal.Scope{principal.Chat}}}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*apikey.Key){
		"no name":             func(k *apikey.Key) { k.Name = "" },
		"a name with a space": func(k *apikey.Key) { k.Name = "my key" },
		"no scope":            func(k *apikey.Key) { k.Scopes = nil },
		"an unknown scope":    func(k *apikey.Key) { k.Scopes = []principal.Scope{"root"} },
		"org without one":     func(k *apikey.Key) { k.Scopes = []principal.Scope{principal.Org} },
		"a negative rate":     func(k *apikey.Key) { k.Rate = -1 },
		"an empty namespace":  func(k *apikey.Key) { k.Namespaces = []string{" "} },
	} {
		bad := good
		change(&bad)
		if err := bad.Check(); fault.CodeOf(err) != fault.InvalidParams || fault.HintOf(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
