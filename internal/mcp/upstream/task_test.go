package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstream/upstreamtest"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// keeper is a TaskKeeper that stores one task.
type keeper struct {
	mu   sync.Mutex
	kept upstream.StartedTask
	err  error
}

func (k *keeper) KeepTask(_ context.Context, task upstream.StartedTask) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept = task
	return "task-1", k.err
}

func (k *keeper) task() upstream.StartedTask {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.kept
}

// research is a call of a tool of the everything server that is always a task.
func research(topic string, caller *tool.Caller) tool.Call {
	args, _ := json.Marshal(map[string]any{"topic": topic, "ambiguous": true}) // plain values always encode
	return tool.Call{Ref: ref("simulate-research-query"), Args: args, Caller: caller}
}

// choosing is a caller who answers the question of that tool, and remembers its progress.
type choosing struct {
	mu       sync.Mutex
	messages []string
}

func (c *choosing) caller(choice string) *tool.Caller {
	return &tool.Caller{
		Capabilities: json.RawMessage(`{"elicitation":{}}`),
		Progress: func(p tool.Progress) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.messages = append(c.messages, p.Message)
		},
		Ask: func(_ context.Context, questions []tool.Question) ([]json.RawMessage, error) {
			if len(questions) != 1 || questions[0].Method != wire.MethodElicit {
				return nil, errors.New("it asks something else")
			}
			return []json.RawMessage{json.RawMessage(`{"action":"accept","content":{"interpretation":"` + choice + `"}}`)}, nil
		},
	}
}

func (c *choosing) seen() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.messages, "\n")
}

// A tool of a real server that can only be called as a task: its result is awaited for
// callers who ask for none, the questions of several tasks reach their own callers, and a
// caller who gives up cancels the task.
func TestTasksOfARealServer(t *testing.T) {
	t.Parallel()
	srv := nodeServer(t, "mcp-server-everything", "stdio")
	k := &keeper{}
	srv.Options.Tasks = k
	h := upstreamtest.Start(t, srv)
	peer, _ := h.Manager.Peer("test")
	t.Run("awaited", func(t *testing.T) {
		t.Parallel()
		for _, choice := range []string{"snake", "comedy"} {
			t.Run(choice, func(t *testing.T) {
				t.Parallel()
				c := &choosing{}
				result, err := h.Manager.Call(t.Context(), research("python "+choice, c.caller(choice)))
				if view, _ := result.View(); err != nil || !strings.Contains(view.Text(), "python "+choice+" ("+choice+")") {
					t.Errorf("result %s, %v", result.Raw, err)
				}
				if !strings.Contains(c.seen(), "Gathering sources...") || !strings.Contains(c.seen(), "Continuing with interpretation") {
					t.Errorf("progress %q", c.seen())
				}
			})
		}
	})
	t.Run("kept", func(t *testing.T) {
		t.Parallel()
		c := &choosing{}
		call := research("kept", c.caller("technical"))
		call.Task = &tool.TaskRequest{TTL: time.Minute}
		result, err := h.Manager.Call(t.Context(), call)
		if err != nil || result.Task != "task-1" || !strings.Contains(string(result.Raw), "task-1") {
			t.Fatalf("result %+v, %v", result, err)
		}
		kept := k.task()
		if kept.Ref != call.Ref || kept.Task.ID == "" || kept.Task.TTL != 5*time.Minute || kept.Task.Poll != time.Second || kept.Caller != call.Caller {
			t.Errorf("kept %+v", kept)
		}
		states := map[tool.TaskState]bool{}
		end, err := h.Manager.FollowTask(t.Context(), "test", kept.Task.ID, call.Caller, func(task tool.Task) { states[task.State] = true })
		if err != nil || end.State != tool.TaskCompleted || !strings.Contains(string(end.Result.Raw), "kept (technical)") || !states[tool.TaskWorking] {
			t.Errorf("it ended as %+v after %v, %v", end, states, err)
		}
		if _, err := h.Manager.FollowTask(t.Context(), "test", "unknown", nil, func(tool.Task) {}); fault.CodeOf(err) != fault.NotFound || fault.HintOf(err) == "" {
			t.Errorf("an unknown task: %v", err)
		}
	})
	t.Run("abandoned", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		caller := &tool.Caller{Progress: func(tool.Progress) { cancel() }}
		if _, err := h.Manager.Call(ctx, research("abandoned", caller)); fault.CodeOf(err) != fault.Cancelled {
			t.Errorf("a call that was given up: %v", err)
		}
		clocktest.Await(t, func() bool {
			list, err := peer.Request(t.Context(), wire.MethodTasksList, nil, nil)
			return err == nil && strings.Contains(string(list), `"status":"cancelled"`)
		})
	})
}

// A task that cannot be stored is cancelled, because nobody would read its result.
func TestTaskThatCannotBeStored(t *testing.T) {
	t.Parallel()
	srv := nodeServer(t, "mcp-server-everything", "stdio")
	srv.Options.Tasks = &keeper{err: fault.New(fault.Internal, "the disk is full")}
	h := upstreamtest.Start(t, srv)
	call := research("x", nil)
	call.Task = &tool.TaskRequest{}
	if _, err := h.Manager.Call(t.Context(), call); err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("the call ended with %v", err)
	}
	peer, _ := h.Manager.Peer("test")
	clocktest.Await(t, func() bool {
		list, err := peer.Request(t.Context(), wire.MethodTasksList, nil, nil)
		return err == nil && strings.Contains(string(list), `"status":"cancelled"`)
	})
}

// A task of a program that was restarted is lost, which is said at once.
func TestTaskOfARestartedServer(t *testing.T) {
	t.Parallel()
	srv := nodeServer(t, "mcp-server-everything", "stdio")
	pidFile := filepath.Join(t.TempDir(), "pid")
	srv.Spec.Command, srv.Spec.Args = "sh", append([]string{"-c", `echo $$ > "$0"; exec node "$@"`, pidFile}, srv.Spec.Args...)
	k := &keeper{}
	srv.Options.Tasks = k
	h := upstreamtest.Start(t, srv)
	call := research("x", (&choosing{}).caller("technical"))
	call.Task = &tool.TaskRequest{}
	if _, err := h.Manager.Call(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	began, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		var once sync.Once
		_, err := h.Manager.FollowTask(t.Context(), "test", k.task().Task.ID, nil, func(tool.Task) { once.Do(func() { close(began) }) })
		ended <- err
	}()
	<-began
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; fault.CodeOf(err) != fault.NotFound || !strings.Contains(err.Error(), "no longer has this task") {
		t.Errorf("following it ended with %v", err)
	}
}
