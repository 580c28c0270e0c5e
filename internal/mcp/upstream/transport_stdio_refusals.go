package upstream

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/sandbox/profile"
)

// maxRefusals is how many refusals of a process are remembered.
const maxRefusals = 100

// refusals are what the sandbox has refused a process. The sandbox reports each once, on
// a way of its own.
type refusals struct {
	mu   sync.Mutex
	list []profile.Refusal
	more chan struct{} // closed when there is another
}

func newRefusals() *refusals { return &refusals{more: make(chan struct{})} }

func (r *refusals) add(one profile.Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.list) < maxRefusals {
		r.list = append(r.list, one)
	}
	close(r.more)
	r.more = make(chan struct{})
}

// about lists the refusals since a time, and earlier ones that a text mentions.
func (r *refusals) about(text string, since time.Time) (lines []string, more <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.list {
		if one.Time.After(since) || strings.Contains(text, one.Object) {
			lines = append(lines, refusalLine(one))
		}
	}
	return lines, r.more
}

// refusalDelay is how far behind the answer of a process a report of its sandbox may be.
const refusalDelay = 5 * time.Millisecond

// explain adds to the result of a tool that failed what the sandbox has refused: since
// the call began, or earlier if the result mentions it. A process without a sandbox has
// no refusals, not even an empty list.
func (r *refusals) explain(ctx context.Context, result json.RawMessage, since time.Time) json.RawMessage {
	if r == nil || !rawjson.GetBool(result, "isError") {
		return result
	}
	lines, more := r.about(string(result), since)
	if len(lines) == 0 {
		timer := time.NewTimer(refusalDelay)
		defer timer.Stop()
		select {
		case <-more:
			lines, _ = r.about(string(result), since)
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	content, _ := rawjson.Get(result, "content")
	items, isList := rawjson.Items(content)
	if len(lines) == 0 || !isList {
		return result
	}
	block := rawjson.SetText(rawjson.SetText(nil, "type", "text"), "text", strings.Join(lines, "\n"))
	extended, err := json.Marshal(append(items, block))
	if err != nil {
		return result
	}
	return rawjson.Set(result, "content", extended)
}

// refusalLine says what was refused, and what would allow it.
func refusalLine(r profile.Refusal) string {
	line := "sandbox: " + r.String()
	if r.Allow != "" {
		line += "; this setting of the server would allow it: " + r.Allow
	}
	return line
}
