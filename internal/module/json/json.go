// Package json is the json module of scripts. The marks that tell arrays from
// objects and null from nil belong to each engine, which adds json.null and
// json.array itself.
package json

import (
	"bytes"
	_ "embed"
	"encoding/json"

	"github.com/luanette/luanette/internal/fault"
	"github.com/luanette/luanette/internal/host"
)

//go:embed json.md
var page string

// Module is the global json.
func Module() host.Module {
	return host.Module{Name: "json", Page: page, Funcs: []host.Func{
		{Name: "encode", Pure: encode},
		{Name: "decode", Pure: decode},
	}}
}

func encode(args host.Args) ([]host.Value, error) {
	text, ok := args.At(1).(json.RawMessage)
	if !ok {
		raw, err := json.Marshal(args.At(1))
		if err != nil {
			return nil, fault.New(fault.InvalidParams, "json.encode: %v", err)
		}
		text = raw
	}
	if pretty, _ := args.At(2).(bool); pretty {
		var indented bytes.Buffer
		if err := json.Indent(&indented, text, "", "  "); err != nil {
			return nil, fault.New(fault.InvalidParams, "json.encode: %v", err)
		}
		text = indented.Bytes()
	}
	return []host.Value{string(text)}, nil
}

func decode(args host.Args) ([]host.Value, error) {
	text, err := args.String(1)
	if err != nil {
		return nil, err
	}
	var checked json.RawMessage
	if err := json.Unmarshal([]byte(text), &checked); err != nil {
		return nil, fault.New(fault.InvalidParams, "json.decode: %v", err)
	}
	return []host.Value{checked}, nil
}
