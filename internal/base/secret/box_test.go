package secret_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
)

type tokens struct {
	Access  string   `json:"access"`
	Refresh string   `json:"refresh,omitempty"`
	Scopes  []string `json:"scopes,omitempty"`
}

var credentials = tokens{Access: "a-very-secret-token", Refresh: "another", Scopes: []string{"mcp"}}

func box(key string) secret.Box {
	return secret.Box{Key: func() (secret.Text, error) { return secret.New(key), nil }, RecoveryHint: "log in again"}
}

func sealed(t *testing.T, b secret.Box, about ...string) []byte {
	t.Helper()
	raw, err := b.Seal(credentials, about...)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// wantRefused fails unless the box refuses to open, with a code, a hint, and nothing
// written to the value.
func wantRefused(t *testing.T, b secret.Box, raw []byte, about ...string) {
	t.Helper()
	var got tokens
	err := b.Open(raw, &got, about...)
	if fault.CodeOf(err) != fault.Config || !strings.Contains(fault.HintOf(err), "log in again") {
		t.Errorf("opened with %v: %v", about, err)
	}
	if got.Access != "" {
		t.Errorf("decrypted %+v", got)
	}
}

const goodKey = "0123456789abcdef0123456789abcdef"

func TestBoxRoundTrip(t *testing.T) {
	t.Parallel()
	b := box(goodKey)
	raw := sealed(t, b, "tokens", "github", "https://example.com")
	for _, word := range []string{credentials.Access, credentials.Refresh, "access", "mcp"} {
		if bytes.Contains(raw, []byte(word)) {
			t.Errorf("the sealed bytes contain %q", word)
		}
	}
	var got tokens
	if err := b.Open(raw, &got, "tokens", "github", "https://example.com"); err != nil || got.Access != credentials.Access || got.Refresh != credentials.Refresh || len(got.Scopes) != 1 {
		t.Errorf("opened %+v, %v", got, err)
	}
}

// TestBoxIsBoundToItsSubject checks that the order and the boundaries of the strings
// that a box is bound to matter.
func TestBoxIsBoundToItsSubject(t *testing.T) {
	t.Parallel()
	b := box(goodKey)
	raw := sealed(t, b, "tokens", "github", "x")
	for _, about := range [][]string{
		{"tokens", "gitlab", "x"}, {"client", "github", "x"}, {"tokens", "x", "github"}, {"tokens", "githubx"}, {"tokens", "github", "x", ""},
		{"tokensgithub", "x"}, {"tokens", "github"}, {"tokens"},
	} {
		wantRefused(t, b, raw, about...)
	}
}

func TestBoxWithAnotherKey(t *testing.T) {
	t.Parallel()
	raw := sealed(t, box(goodKey), "tokens", "github")
	for _, key := range []string{"0123456789abcdef0123456789abcdeF", goodKey + "x", goodKey[:16]} {
		wantRefused(t, box(key), raw, "tokens", "github")
	}
}

// TestBoxTampered checks that every byte is authenticated: the nonce, the text and the tag.
func TestBoxTampered(t *testing.T) {
	t.Parallel()
	b := box(goodKey)
	raw := sealed(t, b, "tokens", "github")
	for i := range raw {
		changed := bytes.Clone(raw)
		changed[i] ^= 1
		wantRefused(t, b, changed, "tokens", "github")
	}
	for _, cut := range [][]byte{nil, {}, raw[:1], raw[:12], raw[:len(raw)-1], raw[1:], append(bytes.Clone(raw), 0)} {
		wantRefused(t, b, cut, "tokens", "github")
	}
}

func TestBoxRefusesAShortKey(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"", "short", "123456789012345"} {
		if _, err := box(key).Seal(credentials, "tokens", "github"); fault.CodeOf(err) != fault.Config || !strings.Contains(fault.HintOf(err), "openssl rand") {
			t.Errorf("key of %d bytes: %v", len(key), err)
		}
		if err := box(key).Open(make([]byte, 64), new(tokens), "tokens", "github"); fault.CodeOf(err) != fault.Config {
			t.Errorf("key of %d bytes: %v", len(key), err)
		}
	}
	if _, err := box("1234567890123456").Seal(credentials, "tokens", "github"); err != nil {
		t.Error(err)
	}
}

// TestBoxNeverRepeatsANonce guards against a repeated nonce, with which GCM loses its
// secrecy.
func TestBoxNeverRepeatsANonce(t *testing.T) {
	t.Parallel()
	const nonce = 12
	b, seen := box(goodKey), map[string]bool{}
	for range 2000 {
		raw := sealed(t, b, "tokens", "github")
		if seen[string(raw[:nonce])] {
			t.Fatal("a nonce was used twice")
		}
		seen[string(raw[:nonce])] = true
	}
}

func TestBoxWithoutAKey(t *testing.T) {
	t.Parallel()
	missing := errors.New("no key file")
	b := secret.Box{Key: func() (secret.Text, error) { return secret.Text{}, missing }}
	if _, err := b.Seal(credentials, "tokens", "github"); !errors.Is(err, missing) {
		t.Errorf("sealed: %v", err)
	}
	if err := b.Open(nil, new(tokens), "tokens", "github"); !errors.Is(err, missing) {
		t.Errorf("opened: %v", err)
	}
	if _, err := box(goodKey).Seal(func() {}, "tokens", "github"); err == nil {
		t.Error("sealed a function")
	}
}
