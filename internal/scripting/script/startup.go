package script

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/luanette/luanette/internal/scripting/host"
)

// Startup runs the script of the house's owner, and then its startup() if it has
// one. It is an ordinary run, except that upstreams may be given that accept
// commands, and that it stays: hooks and handlers it defined are there afterwards.
// Whatever is wrong with it is a warning with the traceback in the log, and not
// the end of the house; what it had defined until then stays all the same. Without
// a file there is nothing, and nil.
func (r *Runner) Startup(ctx context.Context, path string, upstreams host.Upstreams) *Resident {
	source, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	q := Request{
		Source: string(source), Name: filepath.Base(path), Creator: "startup",
		Upstreams: upstreams, entry: &entry{name: "startup", optional: true},
		Watch: r.logPrinted(ctx), stay: &stay{},
		Handler: host.Live(), // the owner has approved of it by putting it there
	}
	if err == nil {
		_, err = r.Run(context.WithValue(ctx, insideKey{}, true), q)
	}
	if err != nil {
		r.options.Log.WarnContext(ctx, "startup script", "file", path, "error", err)
	}
	return r.resident(q)
}

// logPrinted puts what a script prints into the log, where nobody waits for its
// outcome. Log lines are there already.
func (r *Runner) logPrinted(ctx context.Context) func(host.OutputLine) {
	return func(line host.OutputLine) {
		if line.Stream != "log" {
			r.options.Log.InfoContext(ctx, line.Text, "from", "startup script") //nolint:sloglint // the words are the script's
		}
	}
}
