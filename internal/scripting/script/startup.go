package script

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/luanette/luanette/internal/scripting/host"
)

// Startup runs the startup script, and then its startup() if it has one. It is an
// ordinary run, except that upstreams may accept commands and that the script stays
// loaded: the hooks and handlers it defined remain. An error is logged as a warning with
// the traceback; what the script defined before the error remains as well. Without a
// file it returns nil.
func (r *Runner) Startup(ctx context.Context, path string, upstreams host.Upstreams) *Resident {
	source, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	q := Request{
		Source: string(source), Name: filepath.Base(path), Creator: "startup",
		Upstreams: upstreams, entry: &entry{name: "startup", optional: true},
		Watch: r.logPrinted(ctx), residentState: &residentState{},
		Handler: host.Live(), // the owner of the server approved it by installing it
	}
	if err == nil {
		_, err = r.Run(context.WithValue(ctx, hookKey{}, true), q)
	}
	if err != nil {
		r.options.Log.WarnContext(ctx, "startup script", "file", path, "error", err)
	}
	return r.resident(q)
}

// logPrinted writes what a script prints to the log, because no caller waits for it. Log
// lines are there already.
func (r *Runner) logPrinted(ctx context.Context) func(host.OutputLine) {
	return func(line host.OutputLine) {
		if line.Stream != "log" {
			r.options.Log.InfoContext(ctx, line.Text, "from", "startup script") //nolint:sloglint // the words are the script's
		}
	}
}
