// Package embedding compares tools with queries by their meaning, with a model behind an
// endpoint that speaks OpenAI's embeddings API: Ollama, llama.cpp, vLLM or a vendor's.
//
// Tools are embedded in the background, once: vectors are stored in the database by the
// hash of what was embedded. A query waits a short time only. Without an answer, the
// caller does without.
package embedding

import (
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/core/tool"
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
	o.Client = cmp.Or(o.Client, http.DefaultClient)
	o.Wait = cmp.Or(o.Wait, 150*time.Millisecond)
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	o.Batch = cmp.Or(o.Batch, 32)
	o.Clock = cmp.Or(o.Clock, clock.Real())
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return o
}

// Model embeds texts. It is safe for concurrent use.
type Model struct {
	db      *db.DB
	options Options
	queries queries

	ctx    context.Context // ends the work in the background
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

// Limits of tools.
const (
	longestTool = 1500 // bytes of a tool's text that are embedded: models read little
	mostWaiting = 256  // namespaces that wait to be embedded
)

// Tools are tools that are being embedded in the background.
type Tools struct {
	texts   []string
	hashes  []string
	vectors []atomic.Pointer[direction]
}

// Prepare has tools embedded in the background, unless they are known.
func (m *Model) Prepare(tools []tool.Info) *Tools {
	if m == nil {
		return nil
	}
	t := &Tools{texts: make([]string, len(tools)), hashes: make([]string, len(tools)), vectors: make([]atomic.Pointer[direction], len(tools))}
	for i := range tools {
		t.texts[i] = m.options.ToolPrefix + textOf(&tools[i])
		sum := sha256.Sum256([]byte(t.texts[i]))
		t.hashes[i] = hex.EncodeToString(sum[:16])
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || len(tools) == 0 {
		return t
	}
	if len(m.waiting) >= mostWaiting { // the endpoint is down, and tools change
		m.waiting = slices.Delete(m.waiting, 1, 2)
	}
	m.waiting = append(m.waiting, t)
	if !m.working {
		m.working = true
		m.wait.Go(m.work)
	}
	return t
}

// Similar returns how similar each tool is to the nearest of some queries; 0 for a tool
// that is not embedded yet.
func (t *Tools) Similar(queries []Vector) []float32 {
	if t == nil || len(queries) == 0 {
		return nil
	}
	similar := make([]float32, len(t.vectors))
	for i := range t.vectors {
		if v := t.vectors[i].Load(); v != nil {
			for _, q := range queries {
				similar[i] = max(similar[i], cosine(q, v))
			}
		}
	}
	return similar
}

// textOf is what is embedded of a tool: its name as words, its texts and parameters.
func textOf(info *tool.Info) string {
	var b strings.Builder
	b.WriteString(strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == '.' {
			return ' '
		}
		return r
	}, info.Ref.String()))
	for _, text := range []string{info.Title, info.Description} {
		if text != "" {
			b.WriteString("\n" + text)
		}
	}
	properties, _ := rawjson.Get(info.Input, "properties")
	separator := "\nParameters: "
	rawjson.Each(properties, func(name string, _ json.RawMessage) bool {
		b.WriteString(separator + name)
		separator = ", "
		return b.Len() < longestTool
	})
	text := b.String()
	return strings.ToValidUTF8(text[:min(len(text), longestTool)], "")
}

// retries is how long the endpoint is left alone when it fails.
var retries = backoff.Policy{First: 5 * time.Second, Max: 5 * time.Minute, Jitter: 0.2}

// work embeds what waits, until nothing does.
func (m *Model) work() {
	for failures := 0; ; {
		m.mu.Lock()
		if len(m.waiting) == 0 || m.closed {
			m.working = false
			m.mu.Unlock()
			return
		}
		next := m.waiting[0]
		m.mu.Unlock()
		if err := m.complete(m.ctx, next); err != nil {
			if failures++; failures == 1 && m.ctx.Err() == nil {
				m.options.Log.Warn("tools are not embedded yet", "error", err)
			}
			_ = m.options.Clock.Sleep(m.ctx, retries.Delay(failures)) // it ends early when the model is closed
			continue
		}
		failures = 0
		m.mu.Lock()
		m.waiting = m.waiting[1:]
		m.mu.Unlock()
	}
}

// complete gives all tools their vectors: from the database, else from the endpoint.
func (m *Model) complete(ctx context.Context, t *Tools) error {
	if err := m.load(ctx, t); err != nil {
		return err
	}
	var missing []int
	for i := range t.vectors {
		if t.vectors[i].Load() == nil {
			missing = append(missing, i)
		}
	}
	for len(missing) > 0 {
		batch := missing[:min(len(missing), m.options.Batch)]
		missing = missing[len(batch):]
		texts := make([]string, len(batch))
		for n, i := range batch {
			texts[n] = t.texts[i]
		}
		vectors, err := m.embed(ctx, texts)
		if err != nil {
			return err
		}
		rows := make([]stored, len(batch))
		for n, i := range batch {
			rows[n] = stored{hash: t.hashes[i], vector: vectors[n]}
		}
		err = m.save(ctx, rows)
		for n, i := range batch { // also if they could not be stored
			t.vectors[i].Store(vectors[n])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Limits of what is stored.
const (
	loadedAtOnce = 100
	keepUnused   = 30 * 24 * time.Hour
	touchAfter   = 24 * time.Hour
)

// loadQuery has a fixed number of hashes, so that it is one statement to prepare.
var loadQuery = `SELECT hash, vector, used FROM embeddings WHERE model = $1 AND hash IN (` + marks(2, loadedAtOnce) + `)`

func marks(first, count int) string {
	all := make([]string, count)
	for i := range all {
		all[i] = fmt.Sprint("$", first+i)
	}
	return strings.Join(all, ", ")
}

type stored struct {
	hash   string
	vector Vector
	used   time.Time
}

// load gives tools the vectors that are stored.
func (m *Model) load(ctx context.Context, t *Tools) error {
	for from := 0; from < len(t.hashes); from += loadedAtOnce {
		part := t.hashes[from:min(from+loadedAtOnce, len(t.hashes))]
		rows, err := m.read(ctx, part)
		if err != nil {
			return err
		}
		isOld := func(row stored) bool { return m.options.Clock.Now().Sub(row.used) > touchAfter }
		if slices.ContainsFunc(rows, isOld) {
			if err := m.save(ctx, rows); err != nil {
				return err
			}
		}
		for _, row := range rows {
			for i, hash := range part {
				if hash == row.hash {
					t.vectors[from+i].Store(row.vector)
				}
			}
		}
	}
	return nil
}

func (m *Model) read(ctx context.Context, hashes []string) (rows []stored, err error) {
	args := []any{m.options.Model}
	for _, hash := range append(slices.Clone(hashes), make([]string, loadedAtOnce-len(hashes))...) {
		args = append(args, hash)
	}
	rows, err = db.Find(ctx, m.db, func(row db.Scanner) (s stored, err error) {
		var raw []byte
		var used int64
		err = row.Scan(&s.hash, &raw, &used)
		s.vector, s.used = vectorFrom(raw), time.UnixMicro(used)
		return s, err
	}, loadQuery, args...)
	return slices.DeleteFunc(rows, func(s stored) bool { return s.vector == nil }), err
}

// save stores vectors as used now, and removes those that nobody has used for long.
func (m *Model) save(ctx context.Context, rows []stored) error {
	now := m.options.Clock.Now()
	return m.db.Write(ctx, func(tx *db.Tx) error {
		for _, row := range rows {
			if _, err := tx.Exec(ctx, `INSERT INTO embeddings (model, hash, vector, used) VALUES ($1, $2, $3, $4)
				ON CONFLICT (model, hash) DO UPDATE SET used = excluded.used`,
				m.options.Model, row.hash, row.vector.bytes(), now.UnixMicro()); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, `DELETE FROM embeddings WHERE used < $1`, now.Add(-keepUnused).UnixMicro())
		return err
	})
}
