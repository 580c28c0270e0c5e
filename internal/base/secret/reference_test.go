package secret_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/secret"
)

func TestReferences(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "token"), []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	finder := secret.Finder{
		Folder: folder,
		Getenv: func(name string) (string, bool) { return "from-env", name == "TOKEN" },
		Keyring: func(service, name string) (secret.Text, error) {
			if service+"/"+name != "luanette/token" {
				return secret.Text{}, errors.New("not in the keyring")
			}
			return secret.New("from-keyring"), nil
		},
	}
	for text, want := range map[string]string{
		"":                                   "",
		"plain":                              "plain",
		"${VAR} $TOKEN":                      "${VAR} $TOKEN",
		"${env:TOKEN}":                       "from-env",
		"Bearer ${env:TOKEN}":                "Bearer from-env",
		"${file:token}":                      "from-file",
		"${file:" + folder + "/token}":       "from-file",
		"${keyring:luanette/token}":          "from-keyring",
		"${env:TOKEN}:${file:token}":         "from-env:from-file",
		"postgres://u:${file:token}@host/db": "postgres://u:from-file@host/db",
	} {
		got, err := finder.Find(text)
		if err != nil || got.Reveal() != want {
			t.Errorf("%s: %q %v, want %q", text, got.Reveal(), err, want)
		}
	}
	for text, want := range map[string]string{
		"${env:OTHER}":                "not set",
		"${file:nowhere}":             "no such file",
		"${file:.}":                   "not a file",
		"${keyring:nothing}":          "SERVICE/NAME",
		"${keyring:luanette/other}":   "not in the keyring",
		"${env:TOKEN}${file:nowhere}": "${file:nowhere}",
	} {
		if got, err := finder.Find(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "from-env") || !got.IsZero() {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := (secret.Finder{}).Find("${keyring:a/b}"); err == nil {
		t.Error("a secret was found without a keyring")
	}
}

func TestWhatIsShown(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                           "",
		"s3cret":                     secret.Hidden,
		"${env:TOKEN}":               "${env:TOKEN}",
		"Bearer ${file:/run/secret}": "Bearer ${file:/run/secret}",
		"s3cret${env:TOKEN}":         secret.Hidden,
	} {
		if got := secret.Shown(text); got != want {
			t.Errorf("%s is shown as %s", text, got)
		}
	}
}
