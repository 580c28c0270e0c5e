package graphql_test

import (
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/apis/apitest"
	"github.com/luanette/luanette/internal/apis/graphql"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/npmtest"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// shop opens the shop of testdata, which a real server serves, and asks it for its schema.
func shop(t *testing.T, change func(*api.Environment)) *apitest.Service {
	t.Helper()
	url := npmtest.Serve(t, "testdata/shop.mjs", "testdata/shop.graphql")
	return apitest.MustOpen(t, graphql.Open, api.Settings{Kind: api.GraphQL, Source: url}, change)
}

// TestCalls calls tools of a real server.
func TestCalls(t *testing.T) {
	t.Parallel()
	s := shop(t, nil)
	for _, c := range []struct {
		tool, arguments string
		wants           []string
	}{
		{"product", `{"id":"p2"}`, []string{`"name":"Thing 2"`, `"state":"SOLD_OUT"`, `"maker":{"id":"m1"`, `"reviews":[{"stars":4`, `"author":{"name":"Ann"`}},
		{"product", `{"id":"p2","fields":"name similar(first: 1) { id }"}`, []string{`{"name":"Thing 2","similar":[{"id":"p1"}]}`}},
		{"product", `{"id":"p2","fields":"{ label: name }"}`, []string{`{"label":"Thing 2"}`}},
		{"product", `{"id":"none"}`, []string{`{"result":null}`}},
		{"products", `{"first":1,"filter":{"not":{"state":"SOLD_OUT"},"name":{"contains":"3"}}}`, []string{`"id":"p3"`, `"totalCount":`}},
		{"search", `{"text":"Anvil"}`, []string{`{"items":[{"__typename":"Maker","id":"m1","name":"Anvil & Co"`}},
		{"search", `{"text":"Thing 1","select_fields":"__typename ... on Product { price }"}`, []string{`{"items":[{"__typename":"Product","price":0.5}`}},
		{"node", `{"id":"m1"}`, []string{`{"__typename":"Maker","id":"m1"}`}},
		{"query_version", `{}`, []string{`{"result":"1"}`}},
		{"count", `{}`, []string{`{"result":23}`}},
		{"count", `{"state":"SOLD_OUT"}`, []string{`{"result":22}`}},
		{"addProduct", `{"input":{"name":"Nail","price":null,"maker":"m1"}}`, []string{`"name":"Nail","price":null`, `"problems":[]`, `"tags":["new"]`}},
		{"addProduct", `{"input":{"name":""}}`, []string{`"product":null`, `"message":"is empty"`}},
		{"setPrice", `{"id":"p9","price":null,"fields":"price"}`, []string{`{"price":null}`}},
		{"mutation_version", `{"next":"2"}`, []string{`{"result":"2"}`}},
		{"graphql_query", `{"query":"query A($n: Int!) { a: products(first: $n) { nodes { ...P } } version } fragment P on Product { id }","variables":{"n":1}}`,
			[]string{`{"a":{"nodes":[{"id":"p1"}]},"version":"2"}`}},
		{"graphql_query", `{"query":"query A { version } query B { count }","operation_name":"B"}`, []string{`{"count":`}},
		{"graphql_types", `{}`, []string{`products(first: Int, after: String, last: Int, filter: Filter): ProductConnection!  # Lists products.`}},
		{"graphql_types", `{"names":["State","Found"],"search":"price"}`, []string{`SOLD_OUT`, `union Found = Product | Maker`, `Product.price: Float`, `Filter.minPrice`}},
	} {
		result := s.MustCall(t, c.tool, c.arguments)
		if result.Failed {
			t.Errorf("%s %s failed: %s", c.tool, c.arguments, result.Text)
		}
		structured := strings.ReplaceAll(result.Structured, `\n`, "\n")
		apitest.Has(t, structured, c.wants...)
	}
}

// TestErrors sees what a real server reports.
func TestErrors(t *testing.T) {
	t.Parallel()
	s := shop(t, func(env *api.Environment) { env.Header.Del("Authorization") })
	result := s.MustCall(t, "whoami", `{}`)
	if !result.Failed {
		t.Errorf("a failure is %+v", result)
	}
	apitest.Has(t, result.Text, "log in first (at whoami) [UNAUTHENTICATED]", "credentials of upstream shop")
	apitest.Has(t, result.Structured, `{"errors":[{"message":"log in first"`)

	partial := s.MustCall(t, "node", `{"id":"m1","fields":"id ... on Maker { name secret }"}`)
	if partial.Failed {
		t.Errorf("a partial answer is %+v", partial)
	}
	apitest.Has(t, partial.Text, "A part of the answer is missing: not for you (at node.secret) [FORBIDDEN]")
	apitest.Has(t, partial.Structured, `{"id":"m1","name":"Anvil & Co","secret":null,"graphql_errors":[{`)

	missing := s.MustCall(t, "products", `{"last":3}`)
	apitest.Has(t, missing.Text, "give first (at products) [MISSING_PAGE]")
	if !missing.Failed {
		t.Errorf("a call without data is %+v", missing)
	}
}

// TestPages follows a list to its end.
func TestPages(t *testing.T) {
	t.Parallel()
	s := shop(t, nil)
	token, seen := "", 0
	for page := 1; ; page++ {
		arguments := rawjson.SetText(nil, "fields", "edges { node { id } }")
		if token != "" {
			arguments = rawjson.SetText(arguments, api.PageToken, token)
		}
		result := s.MustCall(t, "products", string(arguments))
		seen += strings.Count(result.Structured, `"node"`)
		var more bool
		if token, more = rawjson.GetText([]byte(result.Structured), api.NextPageToken); !more {
			if page != 3 || seen != 45 {
				t.Errorf("%d pages with %d items", page, seen)
			}
			return
		}
		apitest.Has(t, result.Text, api.NextPageToken)
	}
}

// TestRefused refuses what does not fit the schema, before it is sent.
func TestRefused(t *testing.T) {
	t.Parallel()
	s := shop(t, func(env *api.Environment) { env.Settings.Exclude = []string{"operation:whoami"} })
	for _, c := range []struct{ tool, arguments, want string }{
		{"product", `{"id":"p1","fields":"nam"}`, `Cannot query field "nam" on type "Product"`},
		{"product", `{"id":"p1","fields":"id } version query_b: product(id: 1) { id"}`, "is not a selection on Product"},
		{"product", `{"id":"p1","fields":"id } } mutation { version(next: \"x\")"}`, "GraphQL"},
		{"product", `{"id":"p1","fields":"id } } query B { version"}`, "GraphQL"},
		{"product", `{"id":"p1","fields":"...P } } fragment P on Product { id"}`, "GraphQL"},
		{"product", `{"id":"p1","fields":"id # }"}`, "comment"},
		{"product", `{"id":"p1","fields":"name: id"}`, "the alias name is the name of another field"},
		{"whoami", `{}`, "there is no tool"},
		{"graphql_query", `{"query":"{ whoami }"}`, "the field whoami is not offered"},
		{"graphql_query", `{"query":"{ ... { ...Q } } fragment Q on Query { whoami }"}`, "the field whoami is not offered"},
		{"graphql_query", `{"query":"mutation { version(next: \"3\") }"}`, "the document has a mutation"},
		{"graphql_query", `{"query":"query A { version } mutation B { version(next: \"3\") }","operation_name":"A"}`, "the document has a mutation"},
		{"graphql_query", `{"query":"subscription { added { id } }"}`, "the document has a subscription"},
		{"graphql_query", `{"query":"query A { version } query B { count }"}`, "operation_name names none of the 2 operations"},
		{"graphql_query", `{"query":"query($id: ID!) { product(id: $id) { id } }"}`, "must be defined"},
		{"graphql_query", `{"query":"query($f: Filter) { products(first: 1, filter: $f) { totalCount } }","variables":{"f":{"price":1}}}`, "unknown field"},
		{"graphql_query", `{"query":"{ version"}`, "not valid"},
		{"graphql_types", `{"names":["Nothing"]}`, "there is no type Nothing"},
	} {
		result, err := s.Call(t.Context(), c.tool, c.arguments)
		if fault.CodeOf(err) != fault.InvalidParams {
			t.Errorf("%s %s: %+v, %v", c.tool, c.arguments, result, err)
			continue
		}
		apitest.Has(t, err.Error(), c.want)
	}
	if result := s.MustCall(t, "query_version", `{}`); result.Structured != `{"result":"1"}` {
		t.Errorf("something was changed: %+v", result)
	}
}
