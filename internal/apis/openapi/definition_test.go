package openapi

import (
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// loadTest reads a document of testdata.
func loadTest(t *testing.T, file string, change func(*api.Settings)) *service {
	t.Helper()
	env := api.Environment{Name: "shop", Settings: api.Settings{Kind: api.OpenAPI, Source: "testdata/" + file}, Header: http.Header{"X-Tenant": {"t1"}}}
	if change != nil {
		change(&env.Settings)
	}
	s, err := load(env, os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// tools are the definitions by name.
func tools(s *service) map[string]json.RawMessage {
	found := map[string]json.RawMessage{}
	for _, definition := range s.listing.Tools {
		name, _ := rawjson.GetText(definition, "name")
		found[name] = definition
	}
	return found
}

func names(s *service) (list []string) {
	for name := range tools(s) {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

func TestNamesAreUniqueAndShort(t *testing.T) {
	t.Parallel()
	got := strings.Join(names(loadTest(t, "shop.yaml", nil)), " ")
	want := "orders_attach orders_create orders_delete orders_get orders_invoice orders_list " +
		"patch_a_very_long_path_without_an_operation_id_fi_039fe5ef pay put_orders_id"
	if got != want {
		t.Errorf("names are\n%s, want\n%s", got, want)
	}
	old := names(loadTest(t, "swagger.json", nil))
	if len(old) != 3 || !strings.HasPrefix(old[0], "listPods_") || !strings.HasPrefix(old[1], "listPods_") {
		t.Errorf("two operations of one id are %q", old)
	}
}

func TestSelection(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		include, exclude []string
		want             string
	}{
		{[]string{"tag:files"}, nil, "orders_attach orders_invoice"},
		{[]string{"path:/orders*"}, []string{"method:get", "operation:*_attach", "operation:orders/create"}, "orders_delete put_orders_id"},
		{[]string{"operation:pay", "method:DELETE"}, nil, "orders_delete pay"},
	} {
		s := loadTest(t, "shop.yaml", func(set *api.Settings) { set.Include, set.Exclude = c.include, c.exclude })
		if got := strings.Join(names(s), " "); got != c.want {
			t.Errorf("%v without %v is %s, want %s", c.include, c.exclude, got, c.want)
		}
	}
}

func TestDefinitions(t *testing.T) {
	t.Parallel()
	shop := tools(loadTest(t, "shop.yaml", nil))
	fresh := tools(loadTest(t, "new.json", nil))
	old := tools(loadTest(t, "swagger.json", nil))
	order := `"Order":{"type":"object","required":["items"],"properties":{"note":{"type":["string","null"]},"state":{"type":["string","null"],"enum":["open","closed",null]},` +
		`"parent":{"$ref":"#/$defs/Order"},"owner":{"anyOf":[{"allOf":[{"$ref":"#/$defs/Person"}]},{"type":"null"}]},` +
		`"count":{"type":"integer","exclusiveMinimum":0},"code":{"type":"string"},"items":{"type":"array","items":{"$ref":"#/$defs/Item"}}}}`
	for _, c := range []struct {
		definition json.RawMessage
		want       []string
	}{
		{shop["orders_create"], []string{
			`"properties":{"body":{"$ref":"#/$defs/Order"}},"required":["body"],"additionalProperties":false`, order,
			`"allOf":[{"$ref":"#/$defs/Toy"}],"properties":{"kind":{"const":"toy"}},"required":["kind"]`,
			`"annotations":{"readOnlyHint":false}`, `"luanette/operation":"POST https://eu.shop.example/v1/orders"`,
		}},
		{shop["orders_list"], []string{
			`"title":"List orders","description":"List orders"`, `"page_token":{"type":"string"`,
			`"outputSchema":{"type":"object","properties":{"items":{"type":"array","items":{"type":"object","properties":{"id":{"type":"integer"}`,
			`"readOnlyHint":true`,
		}},
		{shop["orders_get"], []string{`"id__path":{"type":"integer"}`, `"id__query":{"type":"string"}`, `"required":["id__path"]`}},
		{shop["orders_delete"], []string{`"description":"Deprecated. DELETE /orders/{id}"`, `"properties":{"id":{"type":"integer"}}`, `"destructiveHint":true`}},
		{shop["orders_attach"], []string{`"file":{"type":"string","description":"A file: cas:HASH`, `"id":{"type":"string"}`}},
		{shop["pay"], []string{`"amount":{"$ref":"#/$defs/Amount"}`, `"Amount":{"type":"integer","minimum":1}`, `"luanette/operation":"POST https://pay.shop.example/payments"`}},
		{shop["patch_a_very_long_path_without_an_operation_id_fi_039fe5ef"], []string{`"content_type":{"type":"string","enum":["application/merge-patch+json","application/json-patch+json"]`}},
		{fresh["find_things"], []string{`"body":{"$ref":"#/$defs/Tree","description":"where to look"}`, `"children":{"type":"array","items":{"$ref":"#/$defs/Tree"}}`, `"readOnlyHint":true`}},
		{fresh["link"], []string{`"luanette/operation":"LINK https://new.example/things/{id}"`}},
		{old["upload"], []string{`"body":{"type":"object","properties":{"file":{"type":"string","description":"A file`, `"required":["file"]`, `POST https://old.example/api/files`}},
	} {
		for _, want := range c.want {
			if !strings.Contains(string(c.definition), want) {
				t.Errorf("%s\nlacks\n%s", c.definition, want)
			}
		}
	}
	for _, hidden := range []string{"api_key", "X-Tenant", "x-internal", `"example"`, `"title":"Note"`} {
		if strings.Contains(string(shop["orders_list"]), hidden) || strings.Contains(string(shop["orders_create"]), hidden) {
			t.Errorf("definitions show %s", hidden)
		}
	}
}

func TestServers(t *testing.T) {
	t.Parallel()
	if s := loadTest(t, "shop.yaml", func(set *api.Settings) { set.Variables = map[string]string{"region": "us"} }); s.base != "https://us.shop.example/v1" {
		t.Errorf("base is %s", s.base)
	}
	fixed := loadTest(t, "shop.yaml", func(set *api.Settings) { set.BaseURL = "http://127.0.0.1:9/x/" })
	if fixed.base != "http://127.0.0.1:9/x" || fixed.operations["pay"].base != "" {
		t.Errorf("base is %s, that of pay %q", fixed.base, fixed.operations["pay"].base)
	}
	for name, text := range map[string]string{
		"a variable that is not allowed": `{"openapi":"3.0.0","servers":[{"url":"https://{r}.x","variables":{"r":{"default":"eu","enum":["eu"]}}}],"paths":{}}`,
		"no server":                      `{"openapi":"3.0.0","paths":{}}`,
		"no document":                    `{"name":"x"}`,
		"another version":                `{"openapi":"4.0.0","paths":{}}`,
		"no JSON":                        `{"openapi":`,
	} {
		env := api.Environment{Settings: api.Settings{Kind: api.OpenAPI, Source: "x.json", Variables: map[string]string{"r": "evil.example/"}}}
		if _, err := load(env, func(string) ([]byte, error) { return []byte(text), nil }); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// TestReferencesStayBeside checks that a document cannot make us read other files or ask
// other hosts.
func TestReferencesStayBeside(t *testing.T) {
	t.Parallel()
	for location, refs := range map[string][]string{
		"docs/api.json":            {"../secret.json#/A", "/etc/passwd#/A", "http://evil.example/x.json#/A"},
		"https://a.example/x.json": {"https://evil.example/x.json#/A", "//evil.example/x#/A", "http://a.example/x.json#/A", "file:///etc/passwd#/A"},
	} {
		for _, ref := range refs {
			var asked []string
			env := api.Environment{Settings: api.Settings{Kind: api.OpenAPI, Source: location, BaseURL: "https://a.example"}}
			s, err := load(env, func(location string) ([]byte, error) {
				asked = append(asked, location)
				return []byte(`{"openapi":"3.1.0","paths":{"/a":{"get":{"parameters":[{"$ref":"` + ref + `"}]}}}}`), nil
			})
			if err != nil || len(asked) != 1 || len(s.listing.Tools) != 0 || len(s.listing.LeftOut) != 1 {
				t.Errorf("%s in %s: asked for %q, error %v", ref, location, asked, err)
			}
		}
	}
}

// TestListsThatABodyContinues checks which operations take a page token for their body:
// those that answer with a list.
func TestListsThatABodyContinues(t *testing.T) {
	t.Parallel()
	for name, definition := range tools(loadTest(t, "search.json", nil)) {
		properties, _ := rawjson.Path(definition, "inputSchema/properties")
		if _, takes := rawjson.Get(properties, api.PageToken); takes != (name != "create") {
			t.Errorf("%s takes %s", name, properties)
		}
	}
}
