// Package embedding compares tools with queries by their meaning, with a model behind an
// endpoint that speaks OpenAI's embeddings API: Ollama, llama.cpp, vLLM or a vendor's.
//
// Tools are embedded in the background, once: vectors are stored in the database by the
// hash of what was embedded. A query waits a short time only. Without an answer, the
// caller does without.
package embedding

import (
	"context"
	"embed"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/store/db"
)

// Migrations create the tables of the package.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// Options configure a model. Zero fields mean the default beside them.
type Options struct {
	URL         string      // base of the API, such as http://127.0.0.1:11434/v1
	Model       string      // its name there
	Key         secret.Text // bearer token: none
	QueryPrefix string      // what the model wants before a query: nothing
	ToolPrefix  string      // what it wants before the text of a tool: nothing

	Client  *http.Client  // http.DefaultClient
	Wait    time.Duration // how long a query waits: 150 ms
	Timeout time.Duration // of a request: 30 s
	Batch   int           // texts in one request: 32
	Clock   clock.Clock   // the system clock
	Log     *slog.Logger  // discards
}

func (o Options) orDefault() Options {
	if o.Client == nil {
		o.Client = http.DefaultClient
	}
	if o.Wait == 0 {
		o.Wait = 150 * time.Millisecond
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.Batch == 0 {
		o.Batch = 32
	}
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Model embeds texts. It is safe for concurrent use.
type Model struct {
	db      *db.DB
	options Options
	queries queries

	ctx    context.Context //nolint:containedctx // ends the work in the background
	cancel context.CancelFunc
	wait   sync.WaitGroup

	mu      sync.Mutex // guards what follows
	closed  bool
	waiting []*Tools // to be embedded
	working bool
}

// Open opens a model whose vectors are stored in a database. Close ends its work.
func Open(ctx context.Context, database *db.DB, o Options) (*Model, error) {
	if err := database.Migrate(ctx, "embedding", Migrations); err != nil {
		return nil, err
	}
	m := &Model{db: database, options: o.orDefault(), queries: queries{known: map[string]Vector{}}}
	m.ctx, m.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return m, nil
}

// Close ends what runs in the background. A nil model has nothing to end, and knows no
// vectors.
func (m *Model) Close() {
	if m == nil {
		return
	}
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.cancel()
	m.wait.Wait()
}

// start runs f in the background, unless the model is closed.
func (m *Model) start(f func()) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.wait.Go(f)
	return true
}
