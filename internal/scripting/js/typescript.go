package js

import (
	"encoding/json"
	"fmt"

	"github.com/evanw/esbuild/pkg/api"
)

// maxTypeScript is the largest source whose types are stripped, in bytes.
const maxTypeScript = 128 << 10

// stripTypes converts TypeScript to JavaScript. A syntax error is an *Error with the
// position in source.
func stripTypes(source, name string) (string, sourceMap, error) {
	refuse := func(why string) error {
		return &Error{Name: "SyntaxError", Message: "TypeScript source " + why, Stack: []Frame{{File: name, Line: 1, Column: 1}}}
	}
	switch {
	case len(source) > maxTypeScript:
		return "", sourceMap{}, refuse(fmt.Sprintf("is larger than %d KiB", maxTypeScript>>10))
	case nesting(source) > maxNesting:
		return "", sourceMap{}, refuse("nests too deeply")
	}
	result := api.Transform(source, api.TransformOptions{
		Loader:      api.LoaderTS,
		Target:      api.ESNext,
		Sourcefile:  name,
		Sourcemap:   api.SourceMapExternal,
		LogLevel:    api.LogLevelSilent,
		TsconfigRaw: `{"compilerOptions":{"verbatimModuleSyntax":true}}`, // keep imports: they are refused, not lost
	})
	if len(result.Errors) > 0 {
		return "", sourceMap{}, typeScriptError(result.Errors[0])
	}
	var m sourceMap
	if err := json.Unmarshal(result.Map, &m); err != nil {
		return "", sourceMap{}, fmt.Errorf("read the source map: %w", err)
	}
	return string(result.Code), m, nil
}

func typeScriptError(m api.Message) *Error {
	e := &Error{Name: "SyntaxError", Message: m.Text}
	if at := m.Location; at != nil {
		e.Stack = []Frame{{File: at.File, Line: at.Line, Column: at.Column + 1}}
	}
	return e
}
