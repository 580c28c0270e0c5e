package upstream

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/sandbox/profile"
)

// maxRefusals is how many refusals of a process are remembered.
const maxRefusals = 100

// refusals are what the sandbox has refused a process. The sandbox reports each once.
type refusals struct {
	mu   sync.Mutex
	list []profile.Refusal
}

func (r *refusals) add(one profile.Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.list) < maxRefusals {
		r.list = append(r.list, one)
	}
}

// explain adds to the result of a tool that failed what the sandbox has refused: since
// the call began, or earlier if the result mentions it.
func (r *refusals) explain(result json.RawMessage, since time.Time) json.RawMessage {
	r.mu.Lock()
	list := slices.Clone(r.list)
	r.mu.Unlock()
	if len(list) == 0 || !rawjson.GetBool(result, "isError") {
		return result
	}
	var lines []string
	for _, one := range list {
		if one.Time.After(since) || strings.Contains(string(result), one.Object) {
			lines = append(lines, refusalLine(one))
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
