package grpcapi_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/apis/apitest"
	"github.com/luanette/luanette/internal/apis/grpcapi"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// compiles checks the schemas of a tool.
func compiles(t *testing.T, definition string) {
	t.Helper()
	for _, kind := range []string{"inputSchema", "outputSchema"} {
		raw, _ := rawjson.Get([]byte(definition), kind)
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

// descriptors writes a descriptor set with comments, and further methods, as protoc makes it.
func descriptors(t *testing.T, file, methods string) {
	t.Helper()
	set := &descriptorpb.FileDescriptorSet{}
	err := protojson.Unmarshal([]byte(`{"file":[{"name":"ship.proto","package":"ship","syntax":"proto2",
		"messageType":[
			{"name":"Box","field":[
				{"name":"box_id","number":1,"label":"LABEL_REQUIRED","type":"TYPE_INT64","jsonName":"boxId"},
				{"name":"max_messages","number":2,"label":"LABEL_OPTIONAL","type":"TYPE_INT32","jsonName":"maxMessages"},
				{"name":"inside","number":3,"label":"LABEL_REPEATED","type":"TYPE_MESSAGE","typeName":".ship.Box","jsonName":"inside"},
				{"name":"by_air","number":4,"label":"LABEL_OPTIONAL","type":"TYPE_BOOL","oneofIndex":0,"jsonName":"byAir"},
				{"name":"by_sea","number":5,"label":"LABEL_OPTIONAL","type":"TYPE_STRING","oneofIndex":0,"jsonName":"bySea"}],
			 "oneofDecl":[{"name":"way"}]}],
		"service":[
			{"name":"Boxes","method":[{"name":"Send","inputType":".ship.Box","outputType":".ship.Box","options":{"deprecated":true}}`+methods+`]},
			{"name":"ABoxesServiceWithAVeryLongNameThatIsLongerThanToolNamesMayBe","method":[{"name":"List","inputType":".ship.Box","outputType":".ship.Box","serverStreaming":true}]}],
		"sourceCodeInfo":{"location":[
			{"path":[4,0],"span":[1,0,1],"leadingComments":" A box.\n"},
			{"path":[4,0,2,0],"span":[2,0,1],"trailingComments":" Its number.\n"},
			{"path":[4,0,2,3],"span":[3,0,1],"leadingComments":" Fast.\n"},
			{"path":[6,0,2,0],"span":[4,0,1],"leadingComments":" Sends a box\n to its place.\n"}]}}]}`), set)
	if err != nil {
		t.Fatal(err)
	}
	text, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDescriptorFile makes tools of a file, and again when it changes.
func TestDescriptorFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ship.binpb")
	descriptors(t, file, "")
	s := apitest.MustOpen(t, grpcapi.Open, api.Settings{Kind: api.GRPC, Source: "ship.example:443", SchemaFile: file}, nil)
	tools, _ := s.Tools(t)
	apitest.Has(t, tools["Boxes_Send"], `"description":"Deprecated. Sends a box\nto its place."`,
		`"inputSchema":{"type":"object","description":"A box.","properties":{"boxId":{"type":["string","integer"],"description":"Its number."}`,
		`"inside":{"type":"array","items":{"$ref":"#/$defs/ship.Box"}}`, `"byAir":{"type":"boolean","description":"Fast. Give only one of byAir, bySea."}`,
		`"required":["boxId"],"additionalProperties":false`, `"luanette/operation":"https://ship.example:443/ship.Boxes/Send"`,
		`"outputSchema":{"type":"object","properties":{"boxId":{"type":["string","integer"]}`)
	if len(tools) != 2 {
		t.Errorf("the tools are %v", tools)
	}
	for name, definition := range tools {
		compiles(t, definition)
		if len("shop__"+name) > 64 {
			t.Errorf("the name %s is too long", name)
		}
		if strings.HasPrefix(name, "ABoxes") { // its message has a field max_messages
			apitest.Has(t, definition, `"max_seconds":{`, `"complete":{"type":"boolean"}`)
			if strings.Contains(definition, `"max_messages":{"type":"integer","minimum"`) {
				t.Errorf("%s", definition)
			}
		}
	}
	descriptors(t, file, `,{"name":"Weigh","inputType":".ship.Box","outputType":".ship.Box"}`)
	clocktest.Await(t, func() bool { tools, _ := s.Tools(t); return tools["Boxes_Weigh"] != "" })
	<-s.Changed
	if err := os.WriteFile(file, []byte("no descriptors"), 0o600); err != nil {
		t.Fatal(err)
	}
	clocktest.Await(t, func() bool {
		_, leftOut := s.Tools(t)
		return strings.Contains(leftOut, "the changed schema is not used")
	})
	if tools, _ := s.Tools(t); tools["Boxes_Weigh"] == "" {
		t.Error("the tools are gone")
	}
}

func TestSelectors(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ship.binpb")
	descriptors(t, file, "")
	for selector, want := range map[string]int{"tag:Boxes": 1, "tag:ship.*": 2, "method:stream": 1, "path:/ship.Boxes/*": 1, "operation:Send": 1, "operation:none": 0} {
		settings := api.Settings{Kind: api.GRPC, Source: "ship.example:443", SchemaFile: file, Include: []string{selector}}
		if tools, _ := apitest.MustOpen(t, grpcapi.Open, settings, nil).Tools(t); len(tools) != want {
			t.Errorf("%s: %d tools", selector, len(tools))
		}
	}
}
