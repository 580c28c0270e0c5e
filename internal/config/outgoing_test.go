package config

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestOutgoingSecrets checks that docs/security.md says of every secret of the configuration
// where it goes and who chooses the address. If you add a secret: think about it, and add it
// to the table there.
func TestOutgoingSecrets(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "## Secrets in outgoing requests")
	table, _, _ := strings.Cut(after, "\n## ")
	all := secretsIn(reflect.TypeFor[Config](), "")
	if len(all) < 15 {
		t.Fatalf("found only %q", all)
	}
	for _, name := range all {
		if !strings.Contains(table, "`"+strings.TrimPrefix(name, "orgs.NAME.")+"`") {
			t.Errorf("the table of docs/security.md does not say where %s goes", name)
		}
	}
}

// secretsIn returns the keys with secrets in a table of the configuration.
func secretsIn(table reflect.Type, prefix string) (keys []string) {
	for field := range table.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("toml"), ",")
		if kind := field.Tag.Get("secret"); kind == "all" || kind == "values" {
			keys = append(keys, prefix+name)
		}
		inner, path := field.Type, prefix+name+"."
		if field.Anonymous {
			path = prefix
		}
		if inner.Kind() == reflect.Map {
			inner, path = inner.Elem(), path+"NAME."
		}
		if inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && strings.HasPrefix(inner.PkgPath(), "github.com/luanette/") {
			keys = append(keys, secretsIn(inner, path)...)
		}
	}
	return keys
}
