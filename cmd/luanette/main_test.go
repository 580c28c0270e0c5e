package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/luanette/luanette/internal/access/owner"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/npmtest"
	"github.com/luanette/luanette/internal/base/programtest"
	"github.com/luanette/luanette/internal/scripting/js/jstest"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestMain lets the test binary run as the program, too.
func TestMain(m *testing.M) {
	clocktest.SetParallel()
	if filepath.Base(os.Args[0]) != "luanette" { // the tests, not the program
		if err := os.Setenv(programtest.ScriptsCache, jstest.Cache()); err != nil {
			panic(err)
		}
	}
	testscript.Main(m, map[string]func(){"luanette": main})
}

// TestStories runs examples/*.txtar, which are scripts for testscript. Documentation shows
// parts of them.
func TestStories(t *testing.T) {
	t.Parallel()
	stories := storyParams(t, db.SQLite)
	stories.Dir = "../../examples"
	testscript.Run(t, stories)
}

// TestStoriesOnPostgres runs the stories that need Postgres. That stores and whole servers do
// the same on it as on SQLite is proven in internal.
func TestStoriesOnPostgres(t *testing.T) {
	t.Parallel()
	dbtest.Postgres(t) // skips the test if there is none
	stories := storyParams(t, db.Postgres)
	stories.Files = []string{"../../examples/move.txtar", "../../examples/operate.txtar"}
	setup := stories.Setup
	stories.Setup = func(env *testscript.Env) error {
		env.Setenv("LUANETTE_DATABASE", dbtest.Postgres(t))
		return setup(env)
	}
	testscript.Run(t, stories)
}

// storyParams returns the parameters of stories, which may use the conditions [postgres] and
// [soundfont].
func storyParams(t *testing.T, kind db.Kind) testscript.Params {
	return testscript.Params{
		RequireExplicitExec: true,
		Condition: func(name string) (bool, error) {
			if name == "soundfont" {
				_, err := os.Stat("/usr/share/sounds/sf2/TimGM6mb.sf2")
				return err == nil, nil
			}
			return name == string(kind), nil
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv(programtest.ScriptsCache, jstest.Cache())
			env.Setenv("SERVERS", npmtest.Folder(t))
			examples, err := filepath.Abs("../../examples")
			if err != nil {
				return err
			}
			env.Setenv("EXAMPLES", examples)
			env.Values[serverKey{}] = &serverProcess{}
			env.Values[modelsKey{}] = &models{}
			env.Values[testKey{}] = t
			env.Values[registryKey{}] = &storyRegistry{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serve":        serve,
			"halt":         halt,
			"http":         request,
			"await":        await,
			"await-day":    awaitDay,
			"model":        model,
			"capture":      capture,
			"login-server": loginServer,
			"browse":       browse,
			"new-database": func(ts *testscript.TestScript, _ bool, args []string) { ts.Setenv(args[0], dbtest.Postgres(t)) },
			"newer-tables": newerTables,
			"registry":     startRegistry,
			"publish":      publish,
			"rest":         rest,
			"service":      service,
		},
	}
}

// newerTables implements newer-tables ADDRESS: tables of a database are at a version that this
// program does not know, as after a start of a newer one.
func newerTables(ts *testscript.TestScript, _ bool, args []string) {
	ctx := context.Background()
	store, err := db.Open(ctx, args[0], db.Options{})
	ts.Check(err)
	ran := store.Exec(ctx, "INSERT INTO migrations_job (version_id, is_applied) VALUES (9999, true)")
	ts.Check(errors.Join(ran, store.Close()))
}

// serverProcess is a server that a story started.
type serverProcess struct {
	cmd    *exec.Cmd
	output <-chan string
	log    string // its standard error, once it has ended
}

// serverKey is the key of the server in a story's values.
type serverKey struct{}

// serve implements serve [ARGS]: it starts `luanette serve` on a free port, waits until it
// listens, and sets $URL and the data folder of the commands that follow. Unless the folder is called empty, the database has its tables
// already.
func serve(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("serve cannot be negated")
	}
	env, data := []string{"PATH=" + ts.Getenv("PATH")}, programtest.DataFolder
	if at := slices.Index(args, "--data"); at >= 0 {
		data = args[at+1]
	}
	if data != "empty" && ts.Getenv("LUANETTE_DATABASE") == "" {
		ts.Check(programtest.CopyDatabase(ts.MkAbs(filepath.Join(ts.Getenv("WORK"), data))))
	}
	for _, name := range []string{"LUANETTE_DATABASE", "LUANETTE_JOBS_TIMEOUT", "LUANETTE_CHAT_BASE_URL", "ANTHROPIC_API_KEY", "ENGINE_API_KEY"} {
		if value := ts.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	cmd := programtest.Command(context.Background(), ts.Getenv("WORK"), env, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	url, output, err := programtest.Listen(cmd)
	ts.Check(err)
	s := ts.Value(serverKey{}).(*serverProcess)
	*s = serverProcess{cmd: cmd, output: output}
	ts.Defer(func() { _ = s.end(os.Kill) })
	ts.Setenv("URL", url)
	ts.Setenv("LUANETTE_DATA", ts.MkAbs(filepath.Join(ts.Getenv("WORK"), data)))
}

// halt implements halt [-kill]: it stops the server, or kills it, and writes its standard
// error to stderr. (The command stop of testscript ends a story.)
func halt(ts *testscript.TestScript, neg bool, args []string) {
	s := ts.Value(serverKey{}).(*serverProcess)
	var sig os.Signal = syscall.SIGTERM
	if len(args) == 1 && args[0] == "-kill" {
		sig = os.Kill
	}
	err := s.end(sig)
	fmt.Fprint(ts.Stderr(), s.log)
	if failed := err != nil && sig != os.Kill; failed != neg {
		ts.Fatalf("halt: %v\n%s", err, s.log)
	}
}

func (s *serverProcess) end(sig os.Signal) error {
	if err := s.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	if log, open := <-s.output; open {
		s.log = log
	}
	return s.cmd.Wait()
}

// request implements http METHOD PATH [BODY]: it sends a request, with $KEY if set, and prints
// the status line and the body.
func request(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: http METHOD PATH [BODY]")
	}
	ctx, cancel := context.WithTimeout(context.Background(), clocktest.Timeout)
	defer cancel()
	resp, err := send(ctx, ts, args[0], args[1], strings.Join(args[2:], " "))
	if err != nil {
		if neg {
			return
		}
		ts.Fatalf("%v", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%s\n%s\n", resp.Status, text)
	if neg != (resp.StatusCode >= 400) {
		ts.Fatalf("status %s:\n%s", resp.Status, text)
	}
}

// send sends a request to the server: with $KEY if set, or as the owner of its machine as long
// as it needs no key, or as a guest if that is the key.
func send(ctx context.Context, ts *testscript.TestScript, method, path, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, ts.Getenv("URL")+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
	}
	key := ts.Getenv("KEY")
	_, guarded := os.Stat(filepath.Join(ts.Getenv("LUANETTE_DATA"), "keys_required"))
	if own, err := owner.Read(ts.Getenv("LUANETTE_DATA")); key == "" && err == nil && guarded != nil {
		key = own.Reveal()
	}
	if key != "" && key != "guest" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	return httpjsontest.Client.Do(req)
}

// capture implements capture NAME REGEXP: it sets a variable to the match in the last
// output.
func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: capture NAME REGEXP")
	}
	want, err := regexp.Compile(args[1])
	ts.Check(err)
	found := want.FindString(ts.ReadFile("stdout"))
	if found == "" {
		ts.Fatalf("%s is not in the last output", want)
	}
	ts.Setenv(args[0], found)
}

// awaitDay implements await-day DURATION, for stories that use something up for the day: if
// the day ends, in UTC, before they would have ended, it waits for the next.
func awaitDay(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: await-day DURATION")
	}
	needed, err := time.ParseDuration(args[0])
	ts.Check(err)
	now := time.Now()
	if left := now.Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now); left < needed {
		<-time.After(left)
	}
}

// await implements await PATH [BODY] REGEXP: it requests a path until the response matches,
// and prints that.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 && len(args) != 3 {
		ts.Fatalf("usage: await PATH [BODY] REGEXP")
	}
	method, body := http.MethodGet, ""
	if len(args) == 3 {
		method, body = http.MethodPost, args[1]
	}
	want, err := regexp.Compile(args[len(args)-1])
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), clocktest.Timeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var last []byte
	for {
		resp, err := send(ctx, ts, method, args[0], body)
		if err == nil {
			last, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		if ctx.Err() != nil {
			ts.Fatalf("%s never matched %s; last:\n%s", args[0], want, last)
		}
		ts.Check(err)
		if want.Match(last) {
			fmt.Fprintf(ts.Stdout(), "%s\n", last)
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}
