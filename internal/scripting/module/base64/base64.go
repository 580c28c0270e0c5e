// Package base64 is the base64 module of scripts. JavaScript has atob, btoa and
// Uint8Array.fromBase64.
package base64

import (
	_ "embed"
	"encoding/base64"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed base64.md
var page string

// Module is the global base64.
func Module() host.Module {
	return host.Module{Name: "base64", LuaOnly: true, Text: host.Text{Page: page}, Funcs: []host.Func{
		{Name: "encode", Pure: host.BindPure(func(data string) string { return base64.StdEncoding.EncodeToString([]byte(data)) })},
		{Name: "decode", Pure: host.BindPure(decode)},
	}}
}

// urlLetters are the letters in which the alphabet for URLs differs.
var urlLetters = strings.NewReplacer("-", "+", "_", "/")

func decode(text string) ([]byte, error) {
	letters := urlLetters.Replace(strings.Join(strings.Fields(text), ""))
	data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(letters, "="))
	if err != nil {
		return nil, fault.New(fault.InvalidParams, "base64.decode: %v", err)
	}
	return data, nil
}
