package embedding

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
)

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
