package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// TestConfigurationPage checks that docs/configuration.md matches the settings; UPDATE=1
// rewrites it.
func TestConfigurationPage(t *testing.T) {
	t.Parallel()
	const path = "../../docs/configuration.md"
	page := configurationPage()
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	onDisk, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(onDisk) != page {
		t.Error("docs/configuration.md does not match the settings; run `make golden`")
	}
}

func configurationPage() string {
	var out strings.Builder
	out.WriteString(`# Configuration

Settings come from ` + "`luanette.toml`" + ` (in the working folder, else in ` + "`$XDG_CONFIG_HOME/luanette`" + `, else where ` + "`--config` or `LUANETTE_CONFIG`" + ` says), from the environment, and from flags; later ones win. An unknown key or a value of the wrong type is an error that names its place. ` + "`luanette config show`" + ` prints what is in force. This page is generated.

A running server reads the file again when it changes, and with ` + "`luanette reload`" + `. SIGHUP does the same, except to a server in a terminal, which ends when the terminal is closed. Settings marked *live* take effect at once, and so do all tables of upstreams, commands, webhooks and secrets, and ` + "`[policy]`, `[accepts]` and `[approvals]`" + `; everything else at the next start. Until then the log, ` + "`/health`, `luanette hud`" + ` and the web page name the settings that wait for a restart, and the event ` + "`config.update`" + ` has ` + "`restart_needed`" + `. A mistake in the file is logged, and nothing changes.

| key | variable | type | default | live | meaning |
|---|---|---|---|---|---|
`)
	config := defaults(Environment{"HOME": "~"})
	for _, s := range settingsOf(&config) {
		fmt.Fprintf(&out, "| `%s` | `%s` | %s | %s | %s | %s |\n", s.key, s.variable(), typeName(s.field.Type()), defaultText(s), liveText(s), s.help)
	}
	out.WriteString(`
## Upstreams

One table per tool server, ` + "`[upstreams.NAME]`" + `; NAME is its namespace in scripts and tool names.

| key | type | meaning |
|---|---|---|
`)
	for field := range reflect.TypeFor[Upstream]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("toml"), ",")
		if field.Type.Kind() == reflect.Struct {
			for part := range field.Type.Fields() {
				key, _, _ := strings.Cut(part.Tag.Get("toml"), ",")
				if key == "-" {
					continue
				}
				fmt.Fprintf(&out, "| `%s.%s` | %s | %s |\n", name, key, typeName(part.Type), part.Tag.Get("help"))
			}
			continue
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", name, typeName(field.Type), field.Tag.Get("help"))
	}
	fmt.Fprintf(&out, "\nA server that is added while Luanette runs can have %s.\n", strings.Join(addedKeys(), ", "))
	out.WriteString(`
## Secrets

One table per secret, ` + "`[secrets.NAME]`" + `. The variables of an upstream's program refer to it: ` + "`env = { GITHUB_TOKEN = \"secret:NAME\" }`" + `.
`)
	writeKeys(&out, reflect.TypeFor[Secret]())
	out.WriteString(`
## Commands

One table per program that is a tool, ` + "`[tools.NAME]`" + ` ([commands.md](commands.md)).
`)
	writeKeys(&out, reflect.TypeFor[Tool]())
	out.WriteString(`
## Webhooks

One table per webhook, ` + "`[hooks.NAME]`" + `: ` + "`POST /hooks/NAME`" + ` starts a job ([webhooks.md](webhooks.md)).
`)
	writeKeys(&out, reflect.TypeFor[Hook]())
	return out.String()
}

// addedKeys are the settings that a server which is added at run time can have.
func addedKeys() (keys []string) {
	for field := range reflect.TypeFor[Upstream]().Fields() {
		if field.Tag.Get("added") != "" {
			keys = append(keys, "`"+keyOf(field)+"`")
		}
	}
	return keys
}

func writeKeys(out *strings.Builder, table reflect.Type) {
	out.WriteString("\n| key | type | meaning |\n|---|---|---|\n")
	for field := range table.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("toml"), ",")
		fmt.Fprintf(out, "| `%s` | %s | %s |\n", name, typeName(field.Type), field.Tag.Get("help"))
	}
}

func liveText(s setting) string {
	if s.live {
		return "live"
	}
	return ""
}

func typeName(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[Duration]():
		return "duration"
	case t == reflect.TypeFor[map[string]string]():
		return "table of strings"
	case t == reflect.TypeFor[upstream.Expose](), t == reflect.TypeFor[upstream.Names]():
		return "string or list"
	case t.Kind() == reflect.Slice:
		return "list of strings"
	case t.Kind() == reflect.Pointer:
		return t.Elem().String()
	default:
		return t.String()
	}
}

func defaultText(s setting) string {
	if s.field.IsZero() {
		return ""
	}
	if d, ok := s.field.Interface().(Duration); ok {
		text, _ := d.MarshalText()
		return "`" + string(text) + "`"
	}
	return fmt.Sprintf("`%v`", s.field.Interface())
}

// TestUpstreamsPage checks that every configuration in docs/upstreams.md is read without
// an error or a warning.
func TestUpstreamsPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/upstreams.md")
	if err != nil {
		t.Fatal(err)
	}
	files, imports := configtest.CodeBlocks(string(page), "toml"), configtest.CodeBlocks(string(page), "json")
	if len(files) == 0 || len(imports) != 1 {
		t.Fatalf("the page shows %d files and %d imports", len(files), len(imports))
	}
	env := Environment{"HOME": "/home/ann", "NOTES_KEY": "x"}
	for _, text := range files {
		file := configtest.WriteFile(t, text)
		configtest.ReplaceFile(t, filepath.Join(filepath.Dir(file), ".mcp.json"), imports[0])
		loaded, err := Load(Sources{File: file})
		if err != nil {
			t.Errorf("%s\n%v", text, err)
			continue
		}
		specs, warnings, err := loaded.UpstreamSpecs(env)
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s\n%v %q", text, err, warnings)
		}
		if strings.Contains(text, "import") && len(specs) != 2 {
			t.Errorf("imported %v", specs)
		}
	}
}

// TestCodeModePage checks the settings in docs/code_mode.md.
func TestCodeModePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/code_mode.md")
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := Load(Sources{File: configtest.WriteFile(t, configtest.CodeBlocks(string(page), "toml")[0])})
	if err != nil || len(loaded.MCP.Pinned) != 2 || loaded.MCP.ListScripts != builtin.DefaultScripts {
		t.Errorf("%+v, %v", loaded, err)
	}
	for _, wrong := range []string{"menu = 'cod'", "list_scripts = -1", "list_apps = -1", "result_kb = 0"} {
		if _, err := Load(Sources{File: configtest.WriteFile(t, "[mcp]\n"+wrong)}); fault.CodeOf(err) != fault.Config {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

// TestConfigurationInOtherPages checks that the configurations in other pages are valid.
func TestConfigurationInOtherPages(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"audit", "backends", "jobs", "music", "network", "oauth", "policy", "security", "trust"} {
		page, err := os.ReadFile("../../docs/" + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		files := configtest.CodeBlocks(string(page), "toml")
		if len(files) == 0 {
			t.Errorf("%s.md shows no configuration", name)
		}
		for _, text := range files {
			loaded, err := Load(Sources{File: configtest.WriteFile(t, text)})
			if err != nil {
				t.Errorf("%s.md: %s\n%v", name, text, err)
				continue
			}
			if _, warnings, err := loaded.UpstreamSpecs(Environment{}); err != nil || len(warnings) > 0 {
				t.Errorf("%s.md: %s\n%v %q", name, text, err, warnings)
			}
		}
	}
}
