// Package description has the newest usable description of a service, which it reads again
// when it changes: a file at once, what the service says from time to time.
package description

import (
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/filewatch"
)

// MaxSize is the largest description in bytes.
const MaxSize = 64 << 20

// Description is the description of a service as a value of type S.
type Description[S any] struct {
	env    api.Environment
	source Source[S]
	stop   context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex
	hash    [sha256.Size]byte // of the text that the value was made of
	value   S
	problem string // why the newest text is not used
}

// Source is where a description comes from.
type Source[S any] struct {
	// Ask asks the service. It is used if the settings name no file.
	Ask func(ctx context.Context) ([]byte, error)
	// Parse makes the value of a text.
	Parse func(text []byte) (S, error)
}

// Open reads a description and watches it for changes.
func Open[S any](ctx context.Context, env api.Environment, source Source[S]) (*Description[S], error) {
	d := &Description[S]{env: env, source: source}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	d.stop = stop
	watch := d.poll
	if file := env.Settings.SchemaFile; file != "" {
		watch = d.watchFile(watching, file) // before the first reading, so that no change is missed
	}
	text, err := d.read(ctx)
	if err == nil {
		d.hash = sha256.Sum256(text)
		d.value, err = source.Parse(text)
	}
	d.done.Go(func() { watch(watching) })
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// Value is the newest usable value, and why a newer text is not used.
func (d *Description[S]) Value() (value S, problem string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.value, d.problem
}

// Close ends the watching and waits for that.
func (d *Description[S]) Close() {
	d.stop()
	d.done.Wait()
}

func (d *Description[S]) read(ctx context.Context) ([]byte, error) {
	file := d.env.Settings.SchemaFile
	if file == "" {
		return d.source.Ask(ctx)
	}
	text, err := os.ReadFile(file)
	switch {
	case err != nil:
		return nil, fault.Wrap(fault.Config, err, "read the schema of the API").WithHint("schema_file is the path of a file, relative to the configuration file")
	case len(text) > MaxSize:
		return nil, fault.New(fault.Limit, "the schema of the API has more than %d bytes", MaxSize)
	}
	return text, nil
}

func (d *Description[S]) watchFile(ctx context.Context, file string) func(context.Context) {
	watcher := filewatch.New(ctx, d.env.Log)
	if watcher == nil {
		return func(context.Context) {}
	}
	if absolute, err := filepath.Abs(file); err == nil { // else it cannot be read either
		watcher.AddFiles(ctx, map[string]bool{absolute: true})
	}
	return func(ctx context.Context) { watcher.Run(ctx, watcher.HasFile, d.reload) }
}

// poll asks the service from time to time.
func (d *Description[S]) poll(ctx context.Context) { d.env.Settings.Poll(ctx, d.reload) }

// reload reads the description again. One that cannot be used changes nothing.
func (d *Description[S]) reload(ctx context.Context) {
	text, err := d.read(ctx)
	if err != nil && d.env.Settings.SchemaFile == "" {
		return // the service does not answer: what is known stays
	}
	hash := sha256.Sum256(text)
	d.mu.Lock()
	same := err == nil && hash == d.hash && d.problem == ""
	d.mu.Unlock()
	if same {
		return
	}
	var fresh S
	if err == nil {
		fresh, err = d.source.Parse(text)
	}
	d.mu.Lock()
	if err != nil {
		d.problem = "the changed schema is not used: " + err.Error()
	} else {
		d.hash, d.value, d.problem = hash, fresh, ""
	}
	problem := d.problem
	d.mu.Unlock()
	if problem != "" {
		d.env.Log.WarnContext(ctx, "API schema is not used", "upstream", d.env.Name, "reason", problem)
	}
	d.env.Changed()
}

// Listing is a listing with the problem of the newest description in front of what is left
// out.
func Listing(listing api.Listing, problem string) api.Listing {
	if problem != "" {
		listing.LeftOut = slices.Insert(slices.Clone(listing.LeftOut), 0, problem)
	}
	return listing
}
