package host

import (
	"encoding/json"
	"fmt"
)

// start plans a job that would be started. The script gets a made-up id, which tells it
// nothing; it looks into a mock when it asks for the job's result.
func (r *Rehearsal) start(e Effect, mock json.RawMessage) []Value {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(planned(e), mock)
	id := fmt.Sprintf("planned-%d", len(r.plan))
	if r.started == nil {
		r.started = map[string]json.RawMessage{}
	}
	r.started[id] = mock
	return []Value{id}
}

// resultOf answers a question for the result of a job that was only planned.
func (r *Rehearsal) resultOf(e Effect) ([]Value, bool) {
	id, _ := argument(e, 0).(string)
	r.mu.Lock()
	defer r.mu.Unlock()
	mock, ok := r.started[id]
	if e.Name != resultEffect || !ok {
		return nil, false
	}
	r.looked = true
	if mock == nil {
		return []Value{nil, "complete"}, true
	}
	return []Value{mock, "complete"}, true
}

// The effects that start a job, and ask for its result.
const (
	startCallEffect = "tools.mcp_call"
	startEffect     = "__background"
	resultEffect    = "tools.mcp_result"
)
