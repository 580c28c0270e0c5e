package builtin

import (
	"context"
	"path/filepath"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/cas"
)

// NewSourceWriter stores the scripts of a folder as script_store does, each with a tag that
// names its file.
func NewSourceWriter(r ScriptRunner, s ScriptStore) script.SourceWriter {
	return sourceWriter{scriptTools{runner: r, scripts: s}}
}

type sourceWriter struct{ tools scriptTools }

// storeLanguage returns script_store's name for the language of a file.
func storeLanguage(file string) string {
	if ext := filepath.Ext(file); ext == ".ts" || ext == ".mts" {
		return "typescript"
	}
	return script.LanguageOf(file)
}

// Store stores a script as derived from the one it replaces. If the replaced one is
// itself derived from this script, the stored relation stays unchanged.
func (k sourceWriter) Store(ctx context.Context, content []byte, file string, parent cas.Ref) (cas.Ref, error) {
	in := storeIn{Content: string(content), Tags: []string{"file:" + file}, Creator: "scripts folder", Language: storeLanguage(file)}
	if !parent.IsZero() {
		in.Parent = parent.String()
	}
	stored, err := k.tools.store(ctx, tool.Call{}, in)
	if fault.CodeOf(err) == fault.Conflict && in.Parent != "" {
		in.Parent = ""
		stored, err = k.tools.store(ctx, tool.Call{}, in)
	}
	if err != nil {
		return cas.Ref{}, err
	}
	return cas.Parse(stored.Hash)
}
