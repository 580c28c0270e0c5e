package builtin_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/builtin/servertools"
)

// read reads a resource and returns its text.
func read(t *testing.T, r *builtin.Resources, uri string) string {
	t.Helper()
	raw, err := r.ReadResource(t.Context(), uri, nil)
	if err != nil {
		t.Fatalf("read %s: %v", uri, err)
	}
	var result struct {
		Contents []struct{ URI, MIMEType, Text string }
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		t.Fatal(err)
	}
	if c := result.Contents[0]; len(result.Contents) != 1 || c.URI != uri || c.MIMEType != "application/json" || !json.Valid([]byte(c.Text)) {
		t.Errorf("read %s: %s", uri, raw)
	}
	return result.Contents[0].Text
}

func TestResources(t *testing.T) {
	t.Parallel()
	h := open(t)
	r := builtin.NewResources(servertools.Resources(h.catalog, h.servers, h.catalog))
	for uri, wants := range map[string][]string{
		"lua://tools":         {`"lua_path": "mcp.fs.read_file"`, `"lua_path": "mcp.search_tools"`, `"total": `},
		"lua://tools/fs":      {`"lua_path": "mcp.fs[\"write-file\"]"`, `"input_schema"`, `"total": 2`},
		"lua://namespaces":    {`"namespace": "music"`, `"state": "connected"`, `"total": 2`},
		"lua://namespaces/fs": {`"url": "http://127.0.0.1:9/fs"`, `"tool_count": 2`, `"read_file"`},
	} {
		text := read(t, r, uri)
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %s:\n%s", uri, want, text)
			}
		}
	}
	for _, uri := range []string{"lua://tools/zzz", "lua://namespaces/zzz", "lua://nothing", "lua://tools/fs/more", "lua://tools/%zz", "lua://tools/"} {
		if _, err := r.ReadResource(t.Context(), uri, nil); fault.CodeOf(err) != fault.NotFound || fault.HintOf(err) == "" {
			t.Errorf("read %s: %v", uri, err)
		}
	}
}

func TestResourceLists(t *testing.T) {
	t.Parallel()
	h := open(t)
	r := builtin.NewResources(servertools.Resources(h.catalog, h.servers, h.catalog))
	resources, _ := r.ListResources(t.Context())
	templates, _ := r.ListTemplates(t.Context())
	var uris []string
	for _, raw := range slices.Concat(resources, templates) {
		var l struct{ URI, URITemplate, Name, Description string }
		if err := json.Unmarshal(raw, &l); err != nil || l.Name == "" || l.Description == "" {
			t.Errorf("%s: %v", raw, err)
		}
		uris = append(uris, l.URI+l.URITemplate)
	}
	if want := []string{"lua://tools", "lua://namespaces", "lua://tools/{namespace}", "lua://namespaces/{name}"}; !slices.Equal(uris, want) || len(templates) != 2 {
		t.Errorf("listed %v", uris)
	}
}

func TestCompletions(t *testing.T) {
	t.Parallel()
	h := open(t)
	c := builtin.NamespaceCompletions(h.catalog)
	for params, want := range map[string]string{
		`{"argument":{"name":"namespace","value":""}}`:      `{"completion":{"hasMore":false,"total":2,"values":["fs","music"]}}`,
		`{"argument":{"name":"name","value":"MU"}}`:         `{"completion":{"hasMore":false,"total":1,"values":["music"]}}`,
		`{"argument":{"name":"tool","value":"read_f"}}`:     `{"completion":{"hasMore":false,"total":1,"values":["fs.read_file"]}}`,
		`{"argument":{"name":"tool","value":"fs."}}`:        `{"completion":{"hasMore":false,"total":2,"values":["fs.read_file","fs.write-file"]}}`,
		`{"argument":{"name":"anything else","value":"x"}}`: `{"completion":{"hasMore":false,"total":0,"values":[]}}`,
	} {
		got, err := c.Complete(t.Context(), json.RawMessage(params))
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v, want %s", params, got, err, want)
		}
	}
	if _, err := c.Complete(t.Context(), json.RawMessage(`[]`)); fault.CodeOf(err) != fault.InvalidParams {
		t.Errorf("bad params: %v", err)
	}
}
