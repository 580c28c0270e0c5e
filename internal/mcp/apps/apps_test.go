package apps_test

import (
	"encoding/json"
	"testing"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/apps"
)

func TestOf(t *testing.T) {
	t.Parallel()
	for definition, want := range map[string]tool.App{
		`{"name":"a"}`:                                                          {},
		`{"_meta":{"other":{"x":1}}}`:                                           {},
		`{"_meta":{"ui":{"resourceUri":"ui://a/b"}}}`:                           {Page: "ui://a/b"},
		`{"_meta":{"ui/resourceUri":"ui://a/b"}}`:                               {Page: "ui://a/b"},
		`{"_meta":{"ui":{"visibility":["app"]}}}`:                               {Hidden: true},
		`{"_meta":{"ui":{"visibility":["model"]},"ui/resourceUri":"ui://a/b"}}`: {Page: "ui://a/b", Closed: true},
		`{"_meta":{"ui":{"visibility":["model","app"]}}}`:                       {},
		`{"_meta":{"ui":{"visibility":[]}}}`:                                    {Hidden: true, Closed: true},
		`{"_meta":{"ui":7}}`:                                                    {},
	} {
		if got := apps.Of(json.RawMessage(definition)); got != want {
			t.Errorf("%s: %+v", definition, got)
		}
	}
}

func TestWithPage(t *testing.T) {
	t.Parallel()
	const both = `{"name":"a","_meta":{"ui":{"resourceUri":"ui://x","visibility":["model"]},"ui/resourceUri":"ui://x","n":12345678901234567890}}`
	for uri, want := range map[string]string{
		"ui://y": `{"name":"a","_meta":{"ui":{"resourceUri":"ui://y","visibility":["model"]},"ui/resourceUri":"ui://y","n":12345678901234567890}}`,
		"":       `{"name":"a","_meta":{"ui":{"visibility":["model"]},"n":12345678901234567890}}`,
	} {
		if got := string(apps.WithPage(json.RawMessage(both), uri)); got != want {
			t.Errorf("with %q: %s", uri, got)
		}
	}
	if got := string(apps.WithPage(json.RawMessage(`{"_meta":{"ui":{"resourceUri":"ui://x"}}}`), "ui://y")); got != `{"_meta":{"ui":{"resourceUri":"ui://y"}}}` {
		t.Errorf("a key that was not there was added: %s", got)
	}
	if got := string(apps.ForModels(json.RawMessage(`{"name":"a","_meta":{"k":1}}`))); got != `{"name":"a","_meta":{"k":1,"ui":{"visibility":["model"]}}}` {
		t.Errorf("for models: %s", got)
	}
}

func TestDeclared(t *testing.T) {
	t.Parallel()
	for capabilities, want := range map[string]bool{
		``: false, `{}`: false, `{"extensions":{}}`: false, `{"extensions":{"io.modelcontextprotocol/ui":true}}`: false,
		`{"extensions":{"io.modelcontextprotocol/ui":{}}}`:                              true,
		`{"extensions":{"io.modelcontextprotocol/ui":` + string(apps.Capability) + `}}`: true,
	} {
		if got := apps.Declared(json.RawMessage(capabilities)); got != want {
			t.Errorf("%s: %v", capabilities, got)
		}
	}
}
