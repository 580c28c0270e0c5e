package hub

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// awaitTask answers tasks/result: it waits for the end of a task, and asks the client on
// the same stream what the task asks meanwhile.
func (req *request) awaitTask(ctx context.Context, id string) (json.RawMessage, error) {
	tasks := req.ep.tasks.of(id)
	for {
		work, err := tasks.WaitTask(ctx, id, true)
		switch {
		case err != nil:
			return nil, taskFailure(err)
		case work.State.Final():
			return taskResult(work)
		}
		if err := req.askForTask(ctx, tasks, work); err != nil {
			return nil, taskFailure(err)
		}
	}
}

// errTaskEnded is why a question of a task needs no answer any more.
var errTaskEnded = fault.New(fault.Cancelled, "the task has ended")

// askForTask asks the client the questions of a task. If the client cannot be asked, it
// waits for the end of the task: others may answer.
func (req *request) askForTask(ctx context.Context, tasks Tasks, work tool.Task) error {
	questions := taskQuestions(work)
	if checkDeclared(req.caps, questions) != nil {
		_, err := tasks.WaitTask(ctx, work.ID, false)
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if _, err := tasks.WaitTask(ctx, work.ID, false); err == nil {
			cancel(errTaskEnded)
		}
	}()
	replies, err := req.ask(ctx, questions)
	ended := errors.Is(context.Cause(ctx), errTaskEnded)
	cancel(nil)
	<-watched
	if err != nil && ended {
		return nil
	}
	if err != nil {
		return err
	}
	answers := map[string]json.RawMessage{}
	for i, q := range questions {
		answers[q.Key] = replies[i]
	}
	return tasks.AnswerTask(context.WithoutCancel(ctx), work.ID, answers)
}

// taskQuestions are the questions of a task in the form of revision 2025-11-25, which
// names the task in each.
func taskQuestions(work tool.Task) []tool.Question {
	related := rawjson.Set(nil, wire.MetaRelatedTask, rawjson.SetText(nil, "taskId", work.ID))
	var questions []tool.Question
	for _, key := range slices.Sorted(maps.Keys(work.Questions)) {
		q := tool.Question{Key: key}
		q.Method, _ = rawjson.GetText(work.Questions[key], "method")
		params, _ := rawjson.Get(work.Questions[key], "params")
		q.Params = wire.SetMeta(params, related)
		questions = append(questions, q)
	}
	return questions
}

// answerable is a task as a client with these capabilities sees it. For one that cannot be
// asked, a task that waits for input works: others may answer.
func answerable(work tool.Task, caps json.RawMessage) tool.Task {
	if work.State == tool.TaskInputRequired && checkDeclared(caps, taskQuestions(work)) != nil {
		work.State, work.Questions = tool.TaskWorking, nil
	}
	return work
}

// maxFollowedTasks is how many tasks a session is notified of.
const maxFollowedTasks = 1000

// followTask has a session of the sessions era notified of changes of a task.
func (s *session) followTask(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tasks == nil {
		s.tasks = map[string]bool{}
	}
	if len(s.tasks) < maxFollowedTasks {
		s.tasks[id] = true
	}
}

// notifyTask sends the session the state of a task that it follows.
func (s *session) notifyTask(work tool.Task) {
	s.mu.Lock()
	follows := s.tasks[work.ID]
	if work.State.Final() {
		delete(s.tasks, work.ID)
	}
	s.mu.Unlock()
	if !follows {
		return
	}
	if raw, err := json.Marshal(viewLegacyTask(work)); err == nil { // it consists of texts and numbers
		note := wire.Notification(wire.NoteTaskStatus, raw)
		s.main.offer(note.Append(nil))
	}
}

// relayedTaskChanged notifies the clients that follow a task of an upstream.
func (h *Hub) relayedTaskChanged(work tool.Task) {
	for _, e := range h.endpoints() {
		if e.name != "" && e.name != work.Space {
			continue
		}
		e.taskChanged(work.ID)
		for _, s := range e.sessions.list() {
			s.notifyTask(work)
		}
	}
}
