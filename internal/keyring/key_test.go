package keyring_test

import (
	"testing"

	"github.com/luanette/luanette/internal/access"
	"github.com/luanette/luanette/internal/fault"
	"github.com/luanette/luanette/internal/keyring"
)

func TestParseHash(t *testing.T) {
	t.Parallel()
	hash, err := keyring.ParseHash("sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")
	if err != nil || hash != keyring.HashOf("test") {
		t.Errorf("%x, %v", hash, err)
	}
	for _, bad := range []string{"", "test", "sha256:", "sha256:zz", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"} {
		if _, err := keyring.ParseHash(bad); fault.CodeOf(err) != fault.Config {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	good := keyring.Key{Name: "web", Rights: keyring.Rights{Scopes: []access.Scope{access.Chat}}}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*keyring.Key){
		"no name":             func(k *keyring.Key) { k.Name = "" },
		"a name with a space": func(k *keyring.Key) { k.Name = "my key" },
		"no scope":            func(k *keyring.Key) { k.Scopes = nil },
		"an unknown scope":    func(k *keyring.Key) { k.Scopes = []access.Scope{"root"} },
		"org without one":     func(k *keyring.Key) { k.Scopes = []access.Scope{access.Org} },
		"a negative rate":     func(k *keyring.Key) { k.Rate = -1 },
		"an empty namespace":  func(k *keyring.Key) { k.Namespaces = []string{" "} },
	} {
		bad := good
		change(&bad)
		if err := bad.Check(); fault.CodeOf(err) != fault.InvalidParams || fault.HintOf(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
