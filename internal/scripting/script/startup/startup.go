// Package startup runs the startup script of the server, and calls its hooks.
package startup

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/script"
)

// Options are the options of a startup script. The zero value is ready to use.
type Options struct {
	Upstreams host.Upstreams // managed by the tools module; may accept commands; nil means the runner's
	Events    *event.Bus     // receives HookFailed; may be nil
	Log       *slog.Logger   // nil discards
	Clock     clock.Clock    // nil means the system clock
}

// maxWait is how long a call of a hook waits for earlier ones. Tests wait longer.
var maxWait = time.Second

// Script is a startup script that stays loaded: the hooks and handlers it defined remain.
type Script struct {
	*script.Resident
	options Options
}

// Run runs the startup script, and then its startup() if it has one. It is an ordinary run,
// except that the script stays loaded. An error is logged as a warning with the traceback;
// what the script defined before the error remains. It returns nil if nothing did.
func Run(ctx context.Context, runner *script.Runner, path string, o Options) *Script {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	source, err := os.ReadFile(path)
	var resident *script.Resident
	if err == nil {
		resident, err = runner.Load(ctx, script.Request{
			Source: string(source), Name: filepath.Base(path), Creator: "startup", Upstreams: o.Upstreams,
			Handler: host.Live(), // the owner of the server approved it by installing it
		}, script.ResidentOptions{Function: "startup", Wait: maxWait, Print: o.logPrinted})
	}
	if err != nil {
		o.Log.WarnContext(ctx, "startup script", "file", path, "error", err)
	}
	if resident == nil {
		return nil
	}
	return &Script{resident, o}
}

// Listens reports whether the script has event handlers.
func (s *Script) Listens() bool { return s != nil && s.Resident.Listens() }

// logPrinted writes what a script prints to the log, because no caller waits for it. Log
// lines are there already.
func (o *Options) logPrinted(ctx context.Context, line host.OutputLine) {
	if line.Stream != "log" {
		o.Log.InfoContext(ctx, line.Text, "from", "startup script") //nolint:sloglint // the words are the script's
	}
}
