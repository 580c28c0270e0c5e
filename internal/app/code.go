package app

import (
	"context"
	"path/filepath"
	"time"

	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/cas"
	"github.com/luanette/luanette/internal/script"
)

// codeOptions are the bounds of execute_code.
func (h *House) codeOptions() builtin.CodeOptions {
	c := &h.config.Scripts
	return builtin.CodeOptions{
		Time: time.Duration(c.CodeTime), LongestMS: time.Duration(c.Timeout).Milliseconds(), Memory: int64(c.CodeMB) << 20,
		Calls: int64(c.CodeCalls), ChatCalls: int64(c.ChatCalls),
	}
}

// scriptLanguage is the language a stored script was stored in.
func (h *House) scriptLanguage(ctx context.Context, hash cas.Ref) string {
	a, err := h.contents.store.Get(ctx, hash)
	if err != nil {
		return "" // one that was not stored
	}
	return script.LanguageOf(a.MIME)
}

// openJavaScript makes the engine of scripts in JavaScript. What it compiles is kept
// in the data folder: the next start is quicker by a second of work.
func (h *House) openJavaScript() (*script.JavaScriptEngine, error) {
	return script.NewJavaScript(script.JavaScriptOptions{
		CacheDir: filepath.Join(h.config.Data, "cache", "javascript"),
		Memory:   max(int64(h.config.Scripts.MemoryMB)<<20, script.DefaultLimits().Memory),
	})
}
