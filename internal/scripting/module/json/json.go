// Package json is the json module of scripts. Each engine adds json.null and json.array
// itself, because the marks that distinguish arrays from objects and null from nil
// belong to the engine.
package json

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed json.md
var page string

// Module is the global json.
func Module() host.Module {
	return host.Module{Name: "json", LuaOnly: true, Text: host.Text{Page: page}, Funcs: []host.Func{
		{Name: "encode", Pure: encode},
		{Name: "decode", Pure: host.BindPure(decode)},
	}}
}

func encode(args host.Args) ([]host.Value, error) {
	text, ok := args.At(1).(json.RawMessage)
	if !ok {
		var err error
		if text, err = scalar(args.At(1)); err != nil {
			return nil, err
		}
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

// scalar encodes a value that is not a table as one inside a table is encoded: floats
// keep their point, and text is not escaped for HTML.
func scalar(value host.Value) (json.RawMessage, error) {
	switch v := value.(type) {
	case string:
		if !utf8.ValidString(v) {
			return nil, fault.New(fault.InvalidParams, "json.encode: the string is not UTF-8 text")
		}
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fault.New(fault.InvalidParams, "json.encode: %v is not a JSON number", v)
		}
		text := strconv.FormatFloat(v, 'g', -1, 64)
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		return json.RawMessage(text), nil
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimRight(out.Bytes(), "\n"), err
}

func decode(text string) (json.RawMessage, error) {
	var checked json.RawMessage
	if err := json.Unmarshal([]byte(text), &checked); err != nil {
		return nil, fault.New(fault.InvalidParams, "json.decode: %v", err)
	}
	return checked, nil
}
