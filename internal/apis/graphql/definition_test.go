package graphql_test

import (
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/apis/apitest"
	"github.com/luanette/luanette/internal/apis/graphql"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// compiles checks the schemas of a tool.
func compiles(t *testing.T, definition string) {
	t.Helper()
	for _, kind := range []string{"inputSchema", "outputSchema"} {
		raw, ok := rawjson.Get([]byte(definition), kind)
		if !ok {
			continue
		}
		schema, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
		if err != nil {
			t.Fatalf("%s: %v\n%s", kind, err, raw)
		}
		compiler := jsonschema.NewCompiler()
		if err := compiler.AddResource("tool:schema", schema); err != nil {
			t.Errorf("%s: %v\n%s", kind, err, raw)
		} else if _, err := compiler.Compile("tool:schema"); err != nil {
			t.Errorf("%s: %v\n%s", kind, err, raw)
		}
	}
}

// offline opens the shop by its schema in a file.
func offline(t *testing.T, change func(*api.Environment)) *apitest.Service {
	t.Helper()
	settings := api.Settings{Kind: api.GraphQL, Source: "https://shop.example/graphql?sig=1", SchemaFile: "testdata/shop.graphql"}
	return apitest.MustOpen(t, graphql.Open, settings, change)
}

func TestDefinitions(t *testing.T) {
	t.Parallel()
	tools, leftOut := offline(t, nil).Tools(t)
	if len(tools) != 13 {
		t.Errorf("%d tools", len(tools))
	}
	apitest.Has(t, leftOut, "subscriptions are not supported: 1")
	for name, definition := range tools {
		compiles(t, definition)
		if strings.Contains(definition, "sig=1") {
			t.Errorf("%s shows the query of the URL", name)
		}
	}
	for name, wants := range map[string][]string{
		"product": {
			`"description":"Finds a product by its id."`, `"required":["id"]`, `"annotations":{"readOnlyHint":true`,
			`"luanette/operation":"query product https://shop.example/graphql"`,
			`Default: id name price state tags added maker { id name secret } reviews { stars text author { name email city } }"`,
			`"state":{"type":"string"}`, `"price":{"type":["number","null"]}`, `"added":{}`,
			`"reviews":{"type":"array","items":{"type":"object","properties":{"stars":{"type":"integer"}`,
		},
		"products": {
			`"filter":{"$ref":"#/$defs/Filter"}`, `"not":{"$ref":"#/$defs/Filter"}`, `"any":{"type":"array","items":{"$ref":"#/$defs/Filter"}}`,
			`"minPrice":{"type":"number","default":0.5}`, `"minProperties":1,"maxProperties":1`, `"enum":["AVAILABLE","SOLD_OUT","GONE"]`,
			`20 if neither first nor last is given.`, `"page_token":{`, `"next_page_token":{"type":"string"}`,
			`Default: totalCount pageInfo { hasNextPage endCursor } nodes { id name`,
		},
		"search":     {`"fields":{"type":"array"`, `"select_fields":{"type":"string"`, `__typename ... on Product { id name`, `{"type":"object","properties":{"items":{"type":"array"`},
		"count":      {`"default":"AVAILABLE"`, `"result":{"type":"integer"}`},
		"oldVersion": {`"description":"Deprecated: use version The query oldVersion`},
		"addProduct": {
			`"annotations":{"readOnlyHint":false}`, `"required":["input"]`, `"price":{"type":["number","null"]}`, `"required":["name"]`, `"default":["new"]`,
			`product { id name`, `problems { field message }`,
		},
		"query_version":    {`"query version`},
		"mutation_version": {`"mutation version`},
		"graphql_query":    {`"annotations":{"readOnlyHint":true`},
	} {
		apitest.Has(t, tools[name], wants...)
	}
}

// TestSelectors offers only some operations; documents reach no others.
func TestSelectors(t *testing.T) {
	t.Parallel()
	for selectors, want := range map[string]int{
		"include method:query":                   10,
		"include operation:prod*":                4,
		"include operation:addProduct":           1,
		"exclude method:mutation":                10,
		"exclude operation:graphql_query":        11,
		"include operation:prod* exclude path:*": 0,
	} {
		tools, _ := offline(t, func(env *api.Environment) {
			words := strings.Fields(selectors)
			for i := 0; i < len(words); i += 2 {
				if words[i] == "include" {
					env.Settings.Include = append(env.Settings.Include, words[i+1])
				} else {
					env.Settings.Exclude = append(env.Settings.Exclude, words[i+1])
				}
			}
		}).Tools(t)
		if len(tools) != want {
			t.Errorf("%s: %d tools, want %d", selectors, len(tools), want)
		}
	}
}
