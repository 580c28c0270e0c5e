package config

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/tagged/taggedtest"
	"github.com/luanette/luanette/internal/config/clientfile"
	"github.com/luanette/luanette/internal/config/configtest"
)

// TestTagsOfUpstreams checks for every text of an upstream's settings that its tags secret,
// file and trust have their effect: it is not shown, but known as a secret; it is looked up
// beside the file; it is part of what is trusted. Package upstream checks the other tags.
func TestTagsOfUpstreams(t *testing.T) {
	t.Parallel()
	fields := taggedtest.Fields(reflect.TypeFor[Upstream]())
	for _, f := range fields {
		const text = "https://h.example/?q=canary-of-a-test"
		u := Upstream{Command: "x"}
		switch field := reflect.ValueOf(&u).Elem().FieldByIndex(f.Index); v := field.Addr().Interface().(type) {
		case *string:
			*v = text
		case *map[string]string:
			*v = map[string]string{"x": text}
		default:
			continue
		}
		kind, secret := f.Tag.Lookup("secret")
		if shown := fmt.Sprint(hidden(u)); strings.Contains(shown, "canary") == secret {
			t.Errorf("%s (secret %q) is shown as %s", f.Name, kind, shown)
		}
		l := &Loaded{Config: Config{Upstreams: map[string]Upstream{"a": u}}}
		if known := l.KnownSecrets(nil); slices.ContainsFunc(known, func(s string) bool { return strings.Contains(s, "canary") }) != secret {
			t.Errorf("%s (secret %q): the known secrets are %q", f.Name, kind, known)
		}
		item, _ := l.trustItem("a")
		l.Upstreams["a"] = Upstream{Command: "x"}
		before, _ := l.trustItem("a")
		if f.Tag.Get("trust") != "" && item.Hash == before.Hash {
			t.Errorf("%s: a change needs no new trust", f.Name)
		}
	}
	l := &Loaded{File: "/etc/luanette/luanette.toml"}
	for _, f := range fields {
		u := Upstream{}
		field := reflect.ValueOf(&u).Elem().FieldByIndex(f.Index)
		if field.Kind() != reflect.String {
			continue
		}
		field.SetString("a/b")
		found := reflect.ValueOf(l.withFiles(u)).FieldByIndex(f.Index).String()
		if want := f.Tag.Get("file") != ""; (found == filepath.FromSlash("/etc/luanette/a/b")) != want {
			t.Errorf("%s: file %v, found at %s", f.Name, want, found)
		}
	}
}

// TestImportKeepsSettings checks that a server of another client is imported with all of its
// settings.
func TestImportKeepsSettings(t *testing.T) {
	t.Parallel()
	servers, err := clientfile.Parse([]byte(`{"mcpServers": {"files": {
		"command": "files", "startTimeout": "3m", "inheritEnv": ["GIT_*"], "cleanEnv": true,
		"oauth": {"clientId": "me", "scopes": ["a"]}
	}}}`), clientfile.Source{})
	if err != nil {
		t.Fatal(err)
	}
	sources := Sources{File: configtest.WriteFile(t, ""), Env: Environment{"HOME": t.TempDir()}}
	if _, err := Import(context.Background(), sources, Candidate{Server: servers[0], Name: "files", State: ImportNew}, nil); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(sources.File)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"start_timeout = '3m0s'", "inherit_env = ['GIT_*']", "clean_env = true", "client_id = 'me'", "scopes = ['a']"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is missing:\n%s", want, text)
		}
	}
}
