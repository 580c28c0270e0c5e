package command

import (
	"encoding/json"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
)

// inferred are the schemas of params that the configuration does not describe.
var inferred = map[kind]json.RawMessage{
	one:       json.RawMessage(`{"type":"string"}`),
	many:      json.RawMessage(`{"type":"array","items":{"type":"string"}}`),
	condition: json.RawMessage(`{"type":"boolean"}`),
}

// inputSchema returns the schema of the arguments, and the defaults among them.
func inputSchema(c api.CommandTool, t *template) (schema, defaults json.RawMessage, err error) {
	properties, required := json.RawMessage("{}"), []string{}
	add := func(name string, own json.RawMessage, needed bool) {
		if _, known := rawjson.Get(properties, name); !known {
			if given, ok := rawjson.Get(c.Params, name); ok {
				own = given
			}
			properties = rawjson.Set(properties, name, own)
			value, has := rawjson.Get(own, "default")
			if has {
				defaults = rawjson.Set(defaults, name, value)
			}
			if needed && !has {
				required = append(required, name)
			}
		}
	}
	t.params(func(p part, optional bool) {
		if !optional && p.kind != many {
			add(p.param, inferred[p.kind], true)
		}
	})
	t.params(func(p part, _ bool) { add(p.param, inferred[p.kind], false) })
	if c.Stdin != "" {
		add(c.Stdin, inferred[one], true)
	}
	rawjson.Each(c.Params, func(name string, _ json.RawMessage) bool {
		if _, used := rawjson.Get(properties, name); !used {
			err = fault.New(fault.Config, "params.%s: no argument uses it", name).WithHint("write {{%s}} where its value belongs", name)
		}
		return err == nil
	})
	schema = rawjson.Set(json.RawMessage(`{"type":"object"}`), "properties", properties)
	if len(required) > 0 {
		names, _ := json.Marshal(required) // texts always encode
		schema = rawjson.Set(schema, "required", names)
	}
	return rawjson.Set(schema, "additionalProperties", json.RawMessage("false")), defaults, err
}

// linesSchema is the schema of the result of a command whose output is lines.
const linesSchema = `{"type":"object","properties":{"lines":{"type":"array","items":{"type":"string"}},"truncated":{"type":"boolean","description":"true if the output was longer"}},"required":["lines","truncated"]}`

// definition returns the tool as in tools/list.
func definition(name string, c api.CommandTool, input json.RawMessage) json.RawMessage {
	tell := rawjson.SetText(nil, "name", name)
	tell = rawjson.SetText(tell, "description", c.Description)
	tell = rawjson.Set(tell, "inputSchema", input)
	if c.Output == api.OutputLines {
		tell = rawjson.Set(tell, "outputSchema", json.RawMessage(linesSchema))
	}
	hints, _ := json.Marshal(tool.Hints{ReadOnly: c.ReadOnly, Idempotent: c.Idempotent, NonDestructive: c.ReadOnly}.Annotations()) // it always encodes
	return rawjson.Set(tell, "annotations", hints)
}
