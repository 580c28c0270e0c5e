package toolsapi

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
)

// document is an OpenAPI 3.1 document.
type document struct {
	OpenAPI    string                `json:"openapi"`
	Info       information           `json:"info"`
	Servers    []server              `json:"servers"`
	Security   []map[string][]string `json:"security"`
	Tags       []tag                 `json:"tags"`
	Paths      map[string]pathItem   `json:"paths"`
	Components components            `json:"components"`
}

type information struct {
	Title       string `json:"title"`
	Description string `json:"description"`
	Version     string `json:"version"`
}

type server struct {
	URL string `json:"url"`
}

type tag struct {
	Name string `json:"name"`
}

type pathItem struct {
	Post operation `json:"post"`
}

type operation struct {
	OperationID string              `json:"operationId"`
	Summary     string              `json:"summary,omitempty"`
	Description string              `json:"description,omitempty"`
	Tags        []string            `json:"tags"`
	Deprecated  bool                `json:"deprecated,omitempty"`
	RequestBody requestBody         `json:"requestBody"`
	Responses   map[string]response `json:"responses"`
	Annotations tool.Annotations    `json:"x-mcp-annotations"`
}

type requestBody struct {
	Required bool                 `json:"required,omitempty"`
	Content  map[string]mediaType `json:"content"`
}

type response struct {
	Ref         string               `json:"$ref,omitempty"`
	Description string               `json:"description,omitempty"`
	Content     map[string]mediaType `json:"content,omitempty"`
}

type mediaType struct {
	Schema json.RawMessage `json:"schema"`
}

type components struct {
	Schemas         map[string]json.RawMessage `json:"schemas"`
	Responses       map[string]response        `json:"responses"`
	SecuritySchemes map[string]securityScheme  `json:"securitySchemes"`
}

type securityScheme struct {
	Type        string `json:"type"`
	Scheme      string `json:"scheme"`
	Description string `json:"description"`
}

// problemSchema is the schema of Problem.
const problemSchema = `{"type":"object","required":["type","title","status","detail","code"],"properties":{` +
	`"type":{"type":"string"},"title":{"type":"string"},"status":{"type":"integer"},"detail":{"type":"string"},` +
	`"code":{"type":"string"},"hint":{"type":"string","description":"what to do about it"},"details":{}}}`

// ownTag groups the tools without a namespace.
const ownTag = "luanette"

// newDocument describes tools.
func newDocument(tools []tool.Info, version string, keyRequired bool) document {
	d := document{
		OpenAPI:  "3.1.0",
		Info:     information{"Luanette", "Tools as HTTP operations, as many as the caller may call.", version},
		Servers:  []server{{"/"}},
		Security: []map[string][]string{},
		Paths:    map[string]pathItem{},
		Components: components{
			Schemas:         map[string]json.RawMessage{"Problem": json.RawMessage(problemSchema)},
			Responses:       map[string]response{"Problem": {Description: "why the call failed", Content: map[string]mediaType{"application/problem+json": {schemaRef("Problem")}}}},
			SecuritySchemes: map[string]securityScheme{"key": {"http", "bearer", "a key with the scope mcp"}},
		},
	}
	if keyRequired {
		d.Security = append(d.Security, map[string][]string{"key": {}})
	}
	ids := map[string]bool{"Problem": true}
	for i := range tools {
		d.add(&tools[i], uniqueID(tools[i].Ref, ids))
	}
	return d
}

// add adds a tool under an operation id.
func (d *document) add(info *tool.Info, id string) {
	group := info.Space
	if group == "" {
		group = ownTag
	}
	if !slices.Contains(d.Tags, tag{group}) {
		d.Tags = append(d.Tags, tag{group})
	}
	_, required := rawjson.Get(info.Input, "required")
	output := json.RawMessage(`{}`)
	if len(info.Output) > 0 {
		output = d.schema(id, "output", info.Output)
	}
	d.Paths[pathOf(info.Ref)] = pathItem{operation{
		OperationID: id, Summary: info.Title, Description: info.Description, Tags: []string{group}, Deprecated: info.Deprecated(),
		RequestBody: requestBody{Required: required, Content: map[string]mediaType{"application/json": {d.schema(id, "input", info.Input)}}},
		Responses: map[string]response{
			"200":     {Description: "the result", Content: map[string]mediaType{"application/json": {output}}},
			"default": {Ref: "#/components/responses/Problem"},
		},
		Annotations: info.Hints.Annotations(),
	}}
}

// schema adds a schema with its definitions to the components, and returns a reference.
func (d *document) schema(id, kind string, schema json.RawMessage) json.RawMessage {
	m := mover{prefix: id + "." + kind, into: d.Components.Schemas}
	m.into[m.prefix] = m.root(schema)
	return schemaRef(m.prefix)
}

func schemaRef(name string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"$ref":"#/components/schemas/%s"}`, name)) // names need no escapes
}

// pathOf is the path of a tool. Braces would be parameters.
func pathOf(ref tool.Ref) string {
	escaped := strings.NewReplacer("{", "%7B", "}", "%7D")
	path := "/tools/"
	if ref.Space != "" {
		path += escaped.Replace(url.PathEscape(ref.Space)) + "/"
	}
	return path + escaped.Replace(url.PathEscape(ref.Name))
}

var notInID = lazyregexp.New(`[^A-Za-z0-9_-]`)

// uniqueID is the operation id of a tool: its name, after its namespace if it has one.
// Generators make function names of it.
func uniqueID(ref tool.Ref, taken map[string]bool) string {
	name := ref.Name
	if ref.Space != "" {
		name = ref.Space + "__" + ref.Name
	}
	name = notInID().ReplaceAllString(name, "_")
	id := name
	for n := 2; taken[id]; n++ {
		id = fmt.Sprintf("%s_%d", name, n)
	}
	taken[id] = true
	return id
}

// selected returns the tools of some namespaces; without any, all.
func selected(tools []tool.Info, namespaces []string) []tool.Info {
	if len(namespaces) == 0 {
		return tools
	}
	return slices.DeleteFunc(slices.Clone(tools), func(info tool.Info) bool { return !slices.Contains(namespaces, info.Space) })
}
