package secret_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/secret"
)

const key = "sk-ant-0123456789"

type provider struct {
	Name string
	Key  secret.Text
	old  secret.Text
}

func TestNothingShowsASecret(t *testing.T) {
	t.Parallel()
	p := provider{"claude", secret.New(key), secret.New(key)}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+"\n"+verb+"\n", p, p.Key)
	}
	for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(h).Info("configured", "key", p.Key, "provider", p)
	}
	if err := json.NewEncoder(&out).Encode(p); err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(&out).Encode(map[secret.Text]string{p.Key: "as a key"}); err != nil {
		t.Fatal(err)
	}
	hexed := fmt.Sprintf("%x", key)
	if s := out.String(); strings.Contains(s, key) || strings.Contains(s, hexed) {
		t.Errorf("the secret shows in:\n%s", s)
	}
	if got := fmt.Sprintf("%v", p.Key); got != secret.Hidden {
		t.Errorf("shown as %q, want %q", got, secret.Hidden)
	}
}

func TestReveal(t *testing.T) {
	t.Parallel()
	var p provider
	if err := json.Unmarshal([]byte(`{"Key":"`+key+`"}`), &p); err != nil {
		t.Fatal(err)
	}
	if got := p.Key.Reveal(); got != key || p.Key.IsZero() {
		t.Errorf("Reveal = %q, want %q", got, key)
	}
}

func TestNoSecretShowsAsNothing(t *testing.T) {
	t.Parallel()
	for _, none := range []secret.Text{{}, secret.New("")} {
		if got := none.String() + none.Reveal(); got != "" || !none.IsZero() {
			t.Errorf("an absent secret shows as %q", got)
		}
	}
}
