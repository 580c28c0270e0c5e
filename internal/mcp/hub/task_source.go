package hub

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// taskSource finds the tasks of an endpoint.
type taskSource struct {
	own     Tasks        // nil at the endpoints of upstreams
	relayed RelayedTasks // nil: none
	space   string       // only tasks of this upstream; "" for all
}

func newTaskSource(o Options, space string) taskSource {
	s := taskSource{own: o.Tasks, relayed: o.RelayedTasks, space: space}
	if space != "" {
		s.own = nil
	}
	return s
}

// any tells whether the endpoint can have tasks.
func (s taskSource) any() bool { return s.own != nil || s.relayed != nil }

// of is who has the task with an id.
func (s taskSource) of(id string) Tasks {
	if s.own == nil || s.relayed != nil && s.relayed.Relays(id) {
		return s.relayed
	}
	return s.own
}

func (s taskSource) get(ctx context.Context, id string) (tool.Task, error) {
	work, err := s.of(id).Task(ctx, id)
	if err == nil && s.space != "" && work.Space != s.space {
		err = fault.New(fault.NotFound, "no task %q", id)
	}
	return work, err
}

// relayedCursor begins the cursors of upstreams' tasks.
const relayedCursor = "relayed:"

// list returns a page of all tasks: those of upstreams, then our own.
func (s taskSource) list(ctx context.Context, cursor string) (all []tool.Task, next string, err error) {
	rest, relayed := strings.CutPrefix(cursor, relayedCursor)
	if s.relayed != nil && (relayed || cursor == "") {
		if all, next, err = s.relayed.ListTasks(ctx, rest); err != nil {
			return nil, "", err
		}
		if s.space != "" {
			all = slices.DeleteFunc(all, func(work tool.Task) bool { return work.Space != s.space })
		}
		if next != "" || s.own == nil {
			return all, strings.TrimSuffix(relayedCursor+next, relayedCursor), nil
		}
		cursor = ""
	}
	if s.own == nil {
		return nil, "", wire.Errorf(wire.CodeInvalidParams, "invalid cursor")
	}
	own, next, err := s.own.ListTasks(ctx, cursor)
	return append(all, own...), next, err
}

// listPage answers tasks/list.
func (s taskSource) listPage(ctx context.Context, req *request) (json.RawMessage, error) {
	cursor, _ := rawjson.GetText(req.params, "cursor")
	all, next, err := s.list(ctx, cursor)
	if err != nil {
		return nil, err
	}
	page := struct {
		Tasks []legacyTaskView `json:"tasks"`
		Next  string           `json:"nextCursor,omitempty"`
	}{[]legacyTaskView{}, next}
	for _, work := range all {
		page.Tasks = append(page.Tasks, viewLegacyTask(work))
	}
	return json.Marshal(page)
}

// tasksCapability is how a server declares the extension.
var tasksCapability = json.RawMessage(`{}`)

// offersTasks tells whether capabilities of either era say that calls of tools can be
// tasks.
func offersTasks(capabilities json.RawMessage) bool {
	extensions, _ := rawjson.Get(capabilities, "extensions")
	if _, found := rawjson.Get(extensions, wire.ExtensionTasks); found {
		return true
	}
	tasks, _ := rawjson.Get(capabilities, "tasks")
	requests, _ := rawjson.Get(tasks, "requests")
	tools, _ := rawjson.Get(requests, "tools")
	_, found := rawjson.Get(tools, "call")
	return found
}

// withOptionalTask is a tool's definition in which tasks are not required: a call that is
// made without one waits for the result.
func withOptionalTask(definition json.RawMessage) json.RawMessage {
	execution, _ := rawjson.Get(definition, "execution")
	if support, _ := rawjson.GetText(execution, "taskSupport"); support != "required" {
		return definition
	}
	return rawjson.Set(definition, "execution", rawjson.SetText(execution, "taskSupport", "optional"))
}
