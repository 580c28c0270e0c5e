package server

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin/scripttools"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/scripting/memory"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/cas"
)

// codeOptions are the limits of execute_code.
func (srv *Server) codeOptions() scripttools.CodeOptions {
	c := &srv.config.Scripts
	return scripttools.CodeOptions{
		Time: time.Duration(c.CodeTime), LongestMS: time.Duration(c.Timeout).Milliseconds(), Memory: int64(c.CodeMB) << 20,
		Calls: int64(c.CodeCalls), ChatCalls: int64(c.ChatCalls),
	}
}

// scriptLanguage returns the language of a stored script.
func (srv *Server) scriptLanguage(ctx context.Context, hash cas.Ref) string {
	mime, err := srv.contents.MIMEOf(ctx, hash)
	if err != nil {
		return "" // as for one that was not stored
	}
	return script.LanguageOf(mime)
}

// openJavaScript opens the JavaScript engine. It caches compiled code, which saves a
// second of CPU at the next start, and runs what the cache holds. So only the owner may
// write to that folder.
func (srv *Server) openJavaScript(pool *memory.Pool) (*script.JavaScriptEngine, error) {
	folder := cmp.Or(srv.config.Scripts.Cache, filepath.Join(srv.config.Data, "cache", "javascript"))
	if info, err := os.Stat(folder); err == nil && !config.OnlyOwnerWrites(info) {
		return nil, fault.New(fault.Config, "other users may write to %s, which holds compiled code", folder).WithHint("chmod go-w %s", folder)
	}
	return script.NewJavaScript(script.JavaScriptOptions{
		CacheDir: folder, Log: srv.log, Pool: pool,
		Memory: max(int64(srv.config.Scripts.MemoryMB)<<20, script.DefaultLimits().Memory),
	})
}
